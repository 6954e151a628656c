"""`moldau delegation-tokens`: create, renew, expire and describe tokens that log in for their owners."""

from __future__ import annotations

from argparse import Namespace
from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from moldau.cli.failures import OK
from moldau.cli.kafka.bootstrap import open_patiently
from moldau.client.cluster import Cluster, check
from moldau.wire.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from moldau.wire.messages.create_delegation_token import CreatableRenewers
from moldau.wire.messages.describe_delegation_token import DescribeDelegationTokenOwner

HEADS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)


def run(options: Namespace) -> int:
    action = {"--create": create, "--renew": renew, "--expire": expire, "--describe": describe}[options.chosen]
    with open_patiently(options) as client:
        action(client, options)
    return OK


def _listed(principals: Iterable[tuple[str, str]]) -> str:
    return f"[{', '.join(':'.join(each) for each in principals)}]"


def create(client: Cluster, options: Namespace) -> None:
    renewers = options.renewer_principal
    print(
        f"Calling create token operation with renewers :{_listed(renewers)} ,"
        f" max-life-time-period :{options.max_life_time_period}"
    )
    owner_type, owner = options.owner_principal[0] if options.owner_principal else ("", "")
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner_type,
        owner_principal_name=owner,
        renewers=[CreatableRenewers(*each) for each in renewers],
        max_lifetime_ms=options.max_life_time_period,
    )
    found = client.ask_controller(request, CreateDelegationTokenResponse, codes=lambda answer: [answer.error_code])
    check(found.error_code)
    print(f"Created delegation token with tokenId : {found.token_id}")
    times = (found.issue_timestamp_ms, found.expiry_timestamp_ms, found.max_timestamp_ms)
    print_tokens([_row(found, found.hmac, renewers, times)])


def _row(
    token: Any, hmac: bytes | memoryview, renewers: Iterable[tuple[str, str]], times_ms: Iterable[int]
) -> list[str]:
    owner = f"{token.principal_type}:{token.principal_name}"
    # Brokers of old do not say who asked for it: it was the owner.
    requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
    return [
        token.token_id,
        b64encode(hmac).decode(),
        owner,
        owner if requester == ":" else requester,
        _listed(renewers),
        *(local_time(each) for each in times_ms),
    ]


def local_time(timestamp_ms: int) -> str:
    """As people here read their clocks."""
    return datetime.fromtimestamp(timestamp_ms / 1_000, tz=UTC).astimezone().strftime("%Y-%m-%dT%H:%M")


def print_tokens(rows: Sequence[Sequence[str]]) -> None:
    for row in (HEADS, *rows):
        print("\n" + " ".join(f"{cell:<{width}}" for cell, width in zip(row, WIDTHS, strict=True)))


def renew(client: Cluster, options: Namespace) -> None:
    print(f"Calling renew token operation with hmac :{options.hmac} , renew-time-period :{options.renew_time_period}")
    request = RenewDelegationTokenRequest(hmac=options.secret, renew_period_ms=options.renew_time_period)
    found = client.ask_controller(request, RenewDelegationTokenResponse, codes=lambda answer: [answer.error_code])
    check(found.error_code)
    print(f"Completed renew operation. New expiry date : {local_time(found.expiry_timestamp_ms)}")


def expire(client: Cluster, options: Namespace) -> None:
    print(
        f"Calling expire token operation with hmac :{options.hmac} , expire-time-period :{options.expiry_time_period}"
    )
    request = ExpireDelegationTokenRequest(hmac=options.secret, expiry_time_period_ms=options.expiry_time_period)
    found = client.ask_controller(request, ExpireDelegationTokenResponse, codes=lambda answer: [answer.error_code])
    check(found.error_code)
    print(f"Completed expire operation. New expiry date : {local_time(found.expiry_timestamp_ms)}")


def describe(client: Cluster, options: Namespace) -> None:
    owners = options.owner_principal
    if owners:
        print(f"Calling describe token operation for owners: {_listed(owners)}")
    else:
        print("Calling describe token operation for current user.")
    request = DescribeDelegationTokenRequest(owners=[DescribeDelegationTokenOwner(*each) for each in owners])
    found = client.ask(request, DescribeDelegationTokenResponse)
    check(found.error_code)
    print(f"Total number of tokens : {len(found.tokens)}", end="")
    print_tokens(
        [
            _row(
                each,
                each.hmac,
                [(renewer.principal_type, renewer.principal_name) for renewer in each.renewers],
                (each.issue_timestamp, each.expiry_timestamp, each.max_timestamp),
            )
            for each in found.tokens
        ]
    )

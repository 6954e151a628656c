"""`moldau delegation-tokens`: create, renew, expire and describe tokens that log in for their owners."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import OK, UsageError
from moldau.cli.kafka.bootstrap import open_patiently
from moldau.cli.parsing import Parser, whole
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

EXAMPLES = """\
Tokens are handled by users who have logged in: --command-config says as whom. -1 is the broker's own period.

examples:
  moldau delegation-tokens --create --max-life-time-period -1 --renewer-principal User:bob --command-config alice.conf
  moldau delegation-tokens --describe --owner-principal User:alice --command-config alice.conf
  moldau delegation-tokens --renew --renew-time-period -1 --hmac HMAC --command-config bob.conf
  moldau delegation-tokens --expire --expiry-time-period -1 --hmac HMAC --command-config alice.conf
"""
HEADS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)
LONG_MAX = 2**63 - 1
NEEDED: Mapping[str, tuple[str, ...]] = {
    "--create": ("--max-life-time-period",),
    "--renew": ("--hmac", "--renew-time-period"),
    "--expire": ("--hmac", "--expiry-time-period"),
    "--describe": (),
}
REFUSED: Mapping[str, tuple[str, ...]] = {
    "--create": ("--hmac", "--renew-time-period", "--expiry-time-period"),
    "--renew": ("--renewer-principal", "--max-life-time-period", "--expiry-time-period", "--owner-principal"),
    "--expire": ("--max-life-time-period", "--renew-time-period", "--owner-principal"),
    "--describe": ("--renew-time-period", "--max-life-time-period", "--hmac", "--expiry-time-period"),
}


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    action = {"--create": create, "--renew": renew, "--expire": expire, "--describe": describe}[options.chosen]
    with open_patiently(options) as client:
        action(client, options)
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau delegation-tokens",
        description="This tool helps to create, renew, expire, or describe delegation tokens.",
        epilog=EXAMPLES,
    )
    actions = parser.add_argument_group("actions, of which one is needed")
    for name, told in (
        ("--create", "a new token"),
        ("--renew", "a later end for a token"),
        ("--expire", "an earlier end for a token"),
        ("--describe", "the tokens of owners, or all that you may see"),
    ):
        actions.add_argument(name, action="store_true", help=told)
    several: dict[str, Any] = {"action": "append", "default": [], "metavar": "TYPE:NAME", "type": principal}
    period: dict[str, Any] = {"metavar": "MS", "type": whole(-LONG_MAX, LONG_MAX, "number of milliseconds")}
    parser.add_argument("--owner-principal", help="whose tokens", **several)
    parser.add_argument("--renewer-principal", help="who may renew it, besides its owner", **several)
    parser.add_argument("--max-life-time-period", help="after which it cannot be renewed", **period)
    parser.add_argument("--renew-time-period", help="until its new end", **period)
    parser.add_argument("--expiry-time-period", help="until its end; -1 is now", **period)
    parser.add_argument("--hmac", help="the token's own, which --create and --describe print")
    add_kafka_connection_options(parser)
    options = parser.parse_args(arguments)
    _check(options)
    return options


def _check(options: Namespace) -> None:
    chosen = [each for each in NEEDED if _given(options, each)]
    if len(chosen) != 1:
        raise UsageError("Command must include exactly one action: --create, --renew, --expire or --describe")
    action = options.chosen = chosen[0]
    for each in NEEDED[action]:
        if not _given(options, each):
            raise UsageError(f'Missing required argument "[{each[2:]}]"')
    for each in REFUSED[action]:
        if _given(options, each):
            raise UsageError(f'Option "[{action[2:]}]" can\'t be used with option "[{each[2:]}]"')
    if options.hmac is not None:
        try:
            options.secret = b64decode(options.hmac, validate=True)
        except (NoBase64, ValueError):
            raise UsageError("--hmac: expected what --create printed, in Base64") from None


def _given(options: Namespace, option: str) -> bool:
    return getattr(options, option.removeprefix("--").replace("-", "_")) not in (None, False, [])


def principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.strip().partition(":")
    if not (kind and colon and name):
        raise ArgumentTypeError(f"expected a string in format principalType:principalName but got {text}")
    return kind, name


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

"""`moldau users`: list, add and delete users who log in with SCRAM, and change their passwords."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Sequence

from moldau.cli.failures import OK, CommandFailed
from moldau.cli.output import Change, print_changes, print_rows
from moldau.cli.questions import ask
from moldau.cli.users.passwords import new_password
from moldau.cli.wire import open_cluster, refusal
from moldau.client.cluster import Cluster
from moldau.core.errors import ErrorCode
from moldau.security.sasl.scram.credential import ITERATIONS_MIN, ScramMechanism
from moldau.security.sasl.scram.keys import salted_password
from moldau.wire.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from moldau.wire.messages.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion
from moldau.wire.messages.describe_user_scram_credentials import UserName

SALT_BYTES = 32
Credentials = dict[ScramMechanism, int]
"""The iterations of each mechanism that a user has a password for."""
MECHANISMS = {each.mechanism_name: each for each in ScramMechanism}


def list_users(options: Namespace) -> int:
    with open_cluster(options) as client:
        found = described(client, options.users)
    missing = [user for user in options.users if not found.get(user)]
    if missing:
        raise CommandFailed(f"there is no user {missing[0]!r}")
    rows = [
        {"user": user, "mechanism": mechanism.mechanism_name, "iterations": found[user][mechanism]}
        for user in sorted(found)
        for mechanism in sorted(found[user])
    ]
    print_rows(rows, columns=("user", "mechanism", "iterations"), output=options.output)
    return OK


def add_user(options: Namespace) -> int:
    mechanism = MECHANISMS[options.mechanism]
    with open_cluster(options) as client:
        if mechanism in credentials_of(client, options.user):
            advice = f"change it with: moldau users password {options.user}"
            raise CommandFailed(f"user {options.user!r} has a password of {options.mechanism} already; {advice}")
        password = new_password(options)
        alter(client, options.user, upserted(options, {mechanism: ITERATIONS_MIN}, password))
    return told("added", [mechanism], password, options)


def change_password(options: Namespace) -> int:
    with open_cluster(options) as client:
        wanted = chosen(client, options)
        password = new_password(options)
        alter(client, options.user, upserted(options, wanted, password))
    return told("changed", wanted, password, options)


def delete_user(options: Namespace) -> int:
    with open_cluster(options) as client:
        wanted = chosen(client, options)
        ask(f"delete {names_of(wanted)} of user {options.user}, who then can't log in by it?", yes=options.yes)
        alter(client, options.user, [ScramCredentialDeletion(options.user, each) for each in sorted(wanted)])
    return told("deleted", wanted, None, options)


def told(done: str, mechanisms: Iterable[ScramMechanism], password: str | None, options: Namespace) -> int:
    """With the password if nobody else knows it."""
    row = {"user": options.user, "mechanisms": names_of(mechanisms).split(), "done": done}
    changes = [Change(row, f"{done} {options.user} {names_of(mechanisms)}")]
    if password is not None and options.generate:
        changes = [Change({**row, "password": password}, f"{changes[0].line}\npassword {password}")]
    print_changes(changes, output=options.output)
    return OK


def chosen(client: Cluster, options: Namespace) -> Credentials:
    """The mechanisms that the user has and that are meant."""
    there = credentials_of(client, options.user)
    if not there:
        raise CommandFailed(f"there is no user {options.user!r}; add one with: moldau users add {options.user}")
    if options.mechanism is None:
        return there
    mechanism = MECHANISMS[options.mechanism]
    if mechanism not in there:
        raise CommandFailed(f"user {options.user!r} has no password of {options.mechanism}, only of {names_of(there)}")
    return {mechanism: there[mechanism]}


def names_of(credentials: Iterable[ScramMechanism]) -> str:
    return " ".join(each.mechanism_name for each in sorted(credentials))


def upserted(options: Namespace, wanted: Credentials, password: str) -> list[ScramCredentialUpsertion]:
    made = []
    for mechanism, known in sorted(wanted.items()):
        salt, rounds = os.urandom(SALT_BYTES), options.iterations or known
        salted = salted_password(mechanism, password, salt, rounds)
        made.append(ScramCredentialUpsertion(options.user, mechanism, rounds, salt, salted))
    return made


def credentials_of(client: Cluster, user: str) -> Credentials:
    return described(client, [user]).get(user, {})


def described(client: Cluster, users: Sequence[str]) -> dict[str, Credentials]:
    """Of these users, or of all; one that does not exist is left out."""
    wanted = [UserName(each) for each in dict.fromkeys(users)] or None
    answer = client.ask(DescribeUserScramCredentialsRequest(users=wanted), DescribeUserScramCredentialsResponse)
    check(answer.error_code, answer.error_message)
    found = {}
    for result in answer.results:
        if result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            check(result.error_code, result.error_message)
            infos = {ScramMechanism(each.mechanism): each.iterations for each in result.credential_infos}
            found[result.user] = infos
    return found


def alter(client: Cluster, user: str, changes: Iterable[ScramCredentialUpsertion | ScramCredentialDeletion]) -> None:
    """One after the other: brokers take a user once in a request."""
    for each in changes:
        request = AlterUserScramCredentialsRequest()
        if isinstance(each, ScramCredentialUpsertion):
            request.upsertions = [each]
        else:
            request.deletions = [each]
        for result in client.ask(request, AlterUserScramCredentialsResponse).results:
            check(result.error_code, result.error_message, about=f"user {user!r}: ")


def check(code: int, message: str | None, *, about: str = "") -> None:
    if code != ErrorCode.NONE:
        raise CommandFailed(about + refusal(code, message))

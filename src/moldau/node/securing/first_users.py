"""The way to a cluster's first SCRAM credentials, by the words of `kafka-storage format --add-scram`.

    SCRAM-SHA-256=[name=admin,password=secret]
    SCRAM-SHA-512=[name=admin,iterations=8192,salt="c2FsdA==",saltedpassword="..."]

A value that begins with @ names a file with one of these on each line, or standard input, @-: the command line is seen
by others. They are written with the cluster's metadata, when that begins: a user who was taken away since does not come
back.
"""

from __future__ import annotations

import logging
import os
import sys
from base64 import b64decode
from collections.abc import Sequence
from functools import partial
from secrets import randbits
from typing import NamedTuple

from moldau.controller.runtime import Controller
from moldau.controller.settings.scram_credentials import (
    SECRET_BYTES,
    CredentialUpsertion,
    decide_alter_scram_credentials,
)
from moldau.core.config.definitions import UnreadableInput
from moldau.core.errors import ErrorCode
from moldau.core.limits import KIB
from moldau.security.sasl.scram.credential import ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism
from moldau.security.sasl.scram.keys import SALT_BITS, kafka_salt, salted_password

LOGGER = logging.getLogger(__name__)

OPTION = "--add-scram"
FILE_BYTES_MAX = 256 * KIB  # some thousand users
_FORM = "expected SCRAM-SHA-256=[name=NAME,password=PASSWORD] or the same of SCRAM-SHA-512"
_PARTS = ("name", "password", "iterations", "salt", "saltedpassword")


def read_credentials(given: Sequence[str]) -> list[CredentialUpsertion]:
    """UnreadableInput, which quotes nothing but the name of a file."""
    return [parse_credential(each) for text in given for each in (_lines(text[1:]) if text[:1] == "@" else [text])]


def _lines(name: str) -> list[str]:
    try:
        with open(sys.stdin.fileno() if name == "-" else name, "rb", closefd=name != "-") as file:
            content = file.read(FILE_BYTES_MAX + 1).decode()
    except (OSError, ValueError) as wrong:
        raise _wrong(
            f"{name or 'a file'} can't be read: {getattr(wrong, 'strerror', None) or 'it is no text'}"
        ) from None
    if len(content) > FILE_BYTES_MAX:
        raise _wrong(f"{name} has more than {FILE_BYTES_MAX} bytes")
    lines = [line for each in content.splitlines() if (line := each.strip()) and not line.startswith("#")]
    if not lines:
        raise _wrong(f"{name} has nobody in it")
    return lines


def parse_credential(text: str) -> CredentialUpsertion:
    """UnreadableInput, which never quotes the text: there is a password in it."""
    name, _, rest = text.strip().partition("=")
    mechanism = next((each for each in ScramMechanism if each.mechanism_name == name), None)
    if mechanism is None or not (rest.startswith("[") and rest.endswith("]")):
        raise _wrong(_FORM)
    parts: dict[str, str] = {}
    for part in rest[1:-1].split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or key not in _PARTS:
            raise _wrong(f"the parts in brackets are {', '.join(_PARTS)}, each with = and a value")
        is_quoted = len(value) >= 2 and value[0] == value[-1] == '"'
        parts[key] = value[1:-1] if is_quoted else value
    if not parts.get("name"):
        raise _wrong("there is no name in it")
    salt = _decoded("salt", parts["salt"]) if "salt" in parts else kafka_salt(randbits(SALT_BITS))
    iterations = _iterations(parts.get("iterations", str(ITERATIONS_MIN)))
    return CredentialUpsertion(parts["name"], mechanism, iterations, salt, _salted(mechanism, parts, salt, iterations))


def _salted(mechanism: ScramMechanism, parts: dict[str, str], salt: bytes, iterations: int) -> bytes:
    if parts.get("password"):
        return salted_password(mechanism, parts["password"], salt, iterations)
    if not parts.get("saltedpassword") or "salt" not in parts:
        raise _wrong("it needs a password, or a saltedpassword with its salt")
    return _decoded("saltedpassword", parts["saltedpassword"])


def _iterations(text: str) -> int:
    if not text.isdecimal() or not ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX:
        raise _wrong(f"iterations are {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    return int(text)


def _decoded(key: str, text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise _wrong(f"{key} is not base64") from None


def _wrong(why: str) -> UnreadableInput:
    return UnreadableInput(OPTION, "[hidden]", f"Invalid value for {OPTION}: {why}")


class FirstUsers(NamedTuple):
    of_a_new_cluster: Sequence[CredentialUpsertion]
    standing: Sequence[CredentialUpsertion]
    """Made in any cluster that lacks them; one who is there keeps the password that they have by then."""


async def add_first_users(controller: Controller, users: FirstUsers) -> None:
    """Before the first broker of the cluster is written down."""
    if not controller.is_active:
        return
    known = controller.image.scram_credentials
    wanted = [each for each in users.standing if each.mechanism not in known.get(each.user, {})]
    if not controller.image.brokers:
        wanted += users.of_a_new_cluster
    elif users.of_a_new_cluster:
        LOGGER.info("%s is for a cluster that begins; this one has its users", OPTION)
    for credential in wanted:
        decide = partial(
            decide_alter_scram_credentials,
            deletions=(),
            upsertions=[credential],
            new_secret=os.urandom(SECRET_BYTES),
        )
        for result in await controller.write(decide):
            assert result.error is ErrorCode.NONE, "the argument was checked"
        mechanism = ScramMechanism(credential.mechanism).mechanism_name
        LOGGER.info("user %s may log in by %s", credential.user, mechanism)

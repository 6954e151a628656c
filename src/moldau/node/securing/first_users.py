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
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hmac import compare_digest
from pathlib import Path
from secrets import randbits
from typing import NamedTuple

from moldau.controller.image import ClusterImage
from moldau.controller.runtime import Controller
from moldau.controller.settings.scram_credentials import (
    NOBODY,
    SECRET_BYTES,
    CredentialDeletion,
    CredentialUpsertion,
    decide_alter_scram_credentials,
)
from moldau.core.config.definitions import UnreadableInput
from moldau.core.errors import ErrorCode
from moldau.core.limits import KIB
from moldau.security.sasl.scram.credential import ITERATIONS_MAX, ITERATIONS_MIN, ScramCredential, ScramMechanism
from moldau.security.sasl.scram.keys import SALT_BITS, credential_of, kafka_salt, salted_password

LOGGER = logging.getLogger(__name__)

OPTION = "--add-scram"
STANDING = ScramMechanism.SHA_512
TOLD_MAX = 20
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


class StandingUser(NamedTuple):
    """Of `--secure`, with a password that is in a file."""

    name: str
    password: str
    file: Path
    is_new: bool
    """Whether the cluster has not taken this password over yet: what it knows was set by somebody else."""
    is_ours: bool
    """Whether only brokers log in as this user, with the file's password and no other."""
    on_taken: Callable[[], None]

    @property
    def upsertion(self) -> CredentialUpsertion:
        salt = kafka_salt(randbits(SALT_BITS))
        salted = salted_password(STANDING, self.password, salt, ITERATIONS_MIN)
        return CredentialUpsertion(self.name, STANDING, ITERATIONS_MIN, salt, salted)

    def logs_in(self, known: ScramCredential) -> bool:
        salted = salted_password(STANDING, self.password, known.salt, known.iterations)
        found = credential_of(STANDING, salted, known.salt, known.iterations)
        return compare_digest(found.stored_key, known.stored_key)


class FirstUsers(NamedTuple):
    of_a_new_cluster: Sequence[CredentialUpsertion]
    standing: Sequence[StandingUser]


async def add_first_users(controller: Controller, users: FirstUsers) -> None:
    """Before the first broker of the cluster is written down."""
    if not controller.is_active:
        return
    is_new_cluster = not controller.image.brokers
    _warn_of_strangers(controller.image, users.standing)
    for user in users.standing:
        known = controller.image.scram_credentials.get(user.name, {})
        for other in [each for each in known if user.is_new and each != STANDING]:
            await _alter(controller, deletions=[CredentialDeletion(user.name, other)])
        if _is_to_be_made(known, user):
            await _set(controller, user.upsertion)
        if user.is_new:
            user.on_taken()
    if is_new_cluster:
        for each in users.of_a_new_cluster:
            await _set(controller, each)
    elif users.of_a_new_cluster:
        LOGGER.info("%s is for a cluster that begins; this one has its users", OPTION)


def _is_to_be_made(known: Mapping[ScramMechanism, ScramCredential], user: StandingUser) -> bool:
    if user.is_new or (STANDING in known and user.logs_in(known[STANDING])):
        return user.is_new
    if user.is_ours:
        LOGGER.warning("user %s had another password than brokers log in with; it has that of %s", user.name, user.file)
        return True
    LOGGER.warning(
        "user %s was deleted, or has another password than %s: the settings that are printed do not log in; write the"
        " new password into it, or remove the file, and the next start makes the user with a new one",
        user.name,
        user.file,
    )
    return False


def _warn_of_strangers(image: ClusterImage, standing: Sequence[StandingUser]) -> None:
    """Data that was open before may have users whom anybody made."""
    if not any(user.is_new for user in standing):
        return
    others = sorted(set(image.scram_credentials) - {user.name for user in standing} - {NOBODY})
    if others:
        shown = ", ".join(map(repr, others[:TOLD_MAX])) + (", ..." if len(others) > TOLD_MAX else "")
        LOGGER.warning(
            "%d users have passwords that anybody could set while nobody had to log in: %s;"
            " set them again or delete them, with: moldau users",
            len(others),
            shown,
        )


async def _set(controller: Controller, wanted: CredentialUpsertion) -> None:
    await _alter(controller, upsertions=[wanted])
    LOGGER.info("user %s may log in by %s", wanted.user, ScramMechanism(wanted.mechanism).mechanism_name)


async def _alter(
    controller: Controller,
    *,
    deletions: Sequence[CredentialDeletion] = (),
    upsertions: Sequence[CredentialUpsertion] = (),
) -> None:
    decide = partial(
        decide_alter_scram_credentials,
        deletions=deletions,
        upsertions=upsertions,
        new_secret=os.urandom(SECRET_BYTES),
    )
    for result in await controller.write(decide):
        assert result.error is ErrorCode.NONE, "the argument was checked"

"""Who may come in: users with hashed passwords in a file, and what each may do.

A line is Jetty's, which Confluent's servers read: `NAME: HASH, ROLE...`, for example

    anna: scrypt:16384:8:1:c2FsdA==:4mF...=, admin
    bob:  scrypt:16384:8:1:c2FsdA==:9qR...=, read, write=payments-
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from moldau.security.principals import USER_TYPE, Principal
from moldau.web.errors import ApiError

COST, BLOCK, PARALLEL, SALT_BYTES, HASH_BYTES = 1 << 14, 8, 1, 16, 32
COST_MAX, BLOCK_MAX, PARALLEL_MAX = 1 << 20, 32, 16
MEMORY_BYTES_MAX = 256 << 20
THREADS = 1  # that judge passwords: each takes 16 MB and tens of milliseconds, and anybody can have that done
WAITING_MAX = 100  # to be judged, some seconds: those who asked and went are judged, too
REMEMBERED_MAX = 1_000
REMEMBERED_S = 300.0
PASSWORD_CHARS_MAX = 1_024


class InvalidUsers(ValueError):
    """One line that says where, without a secret."""


class Action(IntEnum):
    """Whoever may do one of these may do those below it."""

    READ = 1
    WRITE = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True)
class Grant:
    action: Action
    prefix: str = ""
    """Of the names for which it is given."""


@dataclass(frozen=True, slots=True)
class Login:
    """Somebody who came in."""

    principal: Principal
    grants: tuple[Grant, ...]

    def may(self, action: Action, name: str = "") -> bool:
        """An empty name stands for what is nobody's, such as the configuration for all: a prefix covers it not."""
        return any(each.action >= action and name.startswith(each.prefix) for each in self.grants)

    def may_some(self, action: Action) -> bool:
        return any(each.action >= action for each in self.grants)


EVERYTHING = (Grant(Action.ADMIN),)


class Judge(Protocol):
    async def judge(self, user: str, password: str) -> Login | None:
        """None for an unknown user or a wrong password, which take the same time."""


@dataclass(frozen=True, slots=True)
class Hashed:
    cost: int
    block: int
    parallel: int
    salt: bytes
    digest: bytes

    def fits(self, password: str) -> bool:
        return hmac.compare_digest(_scrypt(password, self.salt, self.cost, self.block, self.parallel), self.digest)

    def __str__(self) -> str:
        salt, digest = (base64.b64encode(each).decode() for each in (self.salt, self.digest))
        return f"scrypt:{self.cost}:{self.block}:{self.parallel}:{salt}:{digest}"


def hashed(password: str) -> Hashed:
    salt = os.urandom(SALT_BYTES)
    return Hashed(COST, BLOCK, PARALLEL, salt, _scrypt(password, salt, COST, BLOCK, PARALLEL))


def _scrypt(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    return hashlib.scrypt(
        password.encode(), salt=salt, n=cost, r=block, p=parallel, maxmem=MEMORY_BYTES_MAX, dklen=HASH_BYTES
    )


@dataclass(frozen=True, slots=True)
class User:
    hashed: Hashed
    grants: tuple[Grant, ...]


def read_users(text: str) -> dict[str, User]:
    """Raises InvalidUsers."""
    found: dict[str, User] = {}
    for at, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, colon, rest = line.partition(": ")
        first, *roles = (each.strip() for each in rest.split(","))
        try:
            if not colon or not name.strip() or name.strip() in found:
                raise ValueError
            found[name.strip()] = User(_parsed(first), tuple(_grant(each) for each in roles if each))
        except ValueError:
            raise InvalidUsers(
                f"line {at}: expected NAME: scrypt:..., ROLE..., each name once, and as roles read, write, admin,"
                " or with the beginning of names: write=payments-"
            ) from None
    return found


def _parsed(text: str) -> Hashed:
    kind, cost, block, parallel, salt, digest = text.split(":")
    made = Hashed(int(cost), int(block), int(parallel), base64.b64decode(salt), base64.b64decode(digest))
    is_possible = 2 <= made.cost <= COST_MAX and 0 < made.block <= BLOCK_MAX and 0 < made.parallel <= PARALLEL_MAX
    if kind != "scrypt" or not is_possible or made.cost & (made.cost - 1) or len(made.digest) != HASH_BYTES:
        raise ValueError
    if 128 * made.cost * made.block > MEMORY_BYTES_MAX // 2:
        raise ValueError
    return made


def _grant(text: str) -> Grant:
    action, _, prefix = text.partition("=")
    try:
        return Grant(Action[action.strip().upper()], prefix.strip())
    except KeyError:
        raise ValueError from None


class FileJudge:
    """A right password is remembered for a while, by a digest that only this process can make."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self.users = users
        self._nobody = hashed(os.urandom(SALT_BYTES).hex())
        self._threads = ThreadPoolExecutor(THREADS, "passwords")
        self._waiting = 0

    async def judge(self, user: str, password: str) -> Login | None:
        """Raises 503 if too many wait."""
        if self._waiting >= WAITING_MAX:
            raise ApiError(503, "too many logins are being checked; try again", headers={"Retry-After": "1"})
        known = self.users.get(user)
        expected = self._nobody if known is None else known.hashed
        self._waiting += 1
        try:
            fits = await asyncio.get_running_loop().run_in_executor(self._threads, expected.fits, password)
        finally:
            self._waiting -= 1
        if known is None or not fits:
            return None
        return Login(Principal(USER_TYPE, user), known.grants)


class Remembering:
    """Any judge, asked once in a while about those who are let in, and each time about the others."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._secret = os.urandom(HASH_BYTES)
        self._known: OrderedDict[bytes, tuple[Login, float]] = OrderedDict()

    async def judge(self, user: str, password: str, now_s: float) -> Login | None:
        if len(password) > PASSWORD_CHARS_MAX or len(user) > PASSWORD_CHARS_MAX:
            return None
        pair = len(user).to_bytes(4, "big") + user.encode() + password.encode()
        digest = hmac.digest(self._secret, pair, "sha256")
        remembered = self._known.get(digest)
        if remembered is not None and now_s < remembered[1]:
            return remembered[0]
        login = await self._judge.judge(user, password)
        self._known.pop(digest, None)
        if login is not None:
            self._known[digest] = (login, now_s + REMEMBERED_S)
            if len(self._known) > REMEMBERED_MAX:
                self._known.popitem(last=False)
        return login

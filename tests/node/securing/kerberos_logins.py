"""Logins by GSSAPI, one token at a time, good ones and others: what a broker answers, whichever broker it is."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from moldau.core.errors import ErrorCode
from moldau.security.sasl.kerberos.library import Initiator
from moldau.wire.codec import decode, encode_parts, is_flexible
from moldau.wire.frame import RequestHeader, read_response_header, request_parts
from moldau.wire.messages import (
    MetadataRequest,
    MetadataResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from moldau.wire.schema import Message
from tests.kerberos import Realm

CLOSED = "closed"
ANSWER_S_MAX = 20.0
SKEW_S = 2  # that brokers allow in `strict_config`; what is to be refused is older
SHORTLY_S = 2
NO_LAYER = b"\x01\0\0\0"


class Answer(NamedTuple):
    error: str
    message: str | None = None


class Login:
    """One connection."""

    def __init__(self, address: tuple[str, int], version: int = 1) -> None:
        """After version 0 of the handshake, tokens are frames without a header."""
        self.address = address
        self._socket = socket.create_connection(address, timeout=ANSWER_S_MAX)
        self.last = b""
        """The token of the broker's last answer."""
        response: SaslHandshakeResponse = self._ask(SaslHandshakeRequest("GSSAPI"), SaslHandshakeResponse, version)
        assert response.error_code == ErrorCode.NONE

    def close(self) -> None:
        self._socket.close()

    def send(self, token: bytes) -> Answer | str:
        response = self._ask(SaslAuthenticateRequest(token), SaslAuthenticateResponse, 2)
        if response is None:
            return CLOSED
        self.last = bytes(response.auth_bytes)
        return Answer(ErrorCode(response.error_code).name, response.error_message or None)

    def send_bare(self, token: bytes) -> None:
        self._socket.sendall(len(token).to_bytes(4, "big") + token)

    def receive_bare(self) -> bytes | str:
        try:
            return self._exactly(int.from_bytes(self._exactly(4), "big"))
        except ConnectionError:
            return CLOSED

    def ask_something(self) -> str:
        response = self._ask(MetadataRequest(topics=[]), MetadataResponse, 1)
        return CLOSED if response is None else "answered"

    def _ask(self, request: Message, response: type[Message], version: int) -> Any:
        header = RequestHeader(request.API_KEY, version, 1, "test")
        parts = request_parts(header, encode_parts(request, version), is_flexible=is_flexible(type(request), version))
        try:
            self._socket.sendall(b"".join(parts))
            frame = memoryview(self._exactly(int.from_bytes(self._exactly(4), "big")))
        except ConnectionError:
            return None
        return decode(response, version, frame, read_response_header(frame, response, version)[1])[0]

    def _exactly(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            more = self._socket.recv(size - len(received))
            if not more:
                raise ConnectionError
            received += more
        return received


@dataclass(frozen=True)
class Users:
    """Caches with tickets, of this realm and of another one whose service has the same name."""

    alice: Path
    unmapped: Path
    shortly: Path
    """Whose ticket lasts for SHORTLY_S."""
    stranger: Path
    strangers_config: Path


class Initiating:
    """A client's context, of the kind that Java's clients have (no proof of the server) or with one."""

    def __init__(self, cache: Path, *, is_mutual: bool = False) -> None:
        from gssapi import raw

        self._raw = raw
        who = Initiator(None, ticket_cache=str(cache))
        credentials = raw.acquire_cred_from(who._store(), None, None, [raw.MechType.kerberos], "initiate").creds
        target = raw.import_name(b"kafka@localhost", raw.NameType.hostbased_service)
        flags = [raw.RequirementFlag.integrity]
        flags += [raw.RequirementFlag.mutual_authentication] if is_mutual else []
        self._begin: Any = lambda context, token: raw.init_sec_context(
            target, credentials, context, raw.MechType.kerberos, flags, input_token=token
        )
        begun = self._begin(None, None)
        self._context, self.token = begun.context, bytes(begun.token)

    def proven(self, token: bytes) -> None:
        self._begin(self._context, token)

    def agreeing(self, offer: bytes, message: bytes) -> bytes:
        offered = self._raw.unwrap(self._context, offer).message
        assert (len(offered), offered[0]) == (4, 1)
        return bytes(self._raw.wrap(self._context, message, False).message)


Case = Callable[[Login, Users], Any]


def _plain(login: Login, users: Users, message: bytes = NO_LAYER, of: str = "alice") -> Any:
    who = Initiating(getattr(users, of))
    said = [login.send(who.token)]
    said.append(login.send(who.agreeing(login.last, message)))
    return [*said, login.ask_something()]


def _mutual(login: Login, users: Users, *, nothing: bytes = b"") -> Any:
    who = Initiating(users.alice, is_mutual=True)
    said = [login.send(who.token)]
    who.proven(login.last)
    said.append(login.send(nothing))
    if nothing:
        return said
    said.append(login.send(who.agreeing(login.last, NO_LAYER)))
    return [*said, login.ask_something()]


def _bare(login: Login, users: Users, *, message: bytes = NO_LAYER) -> Any:
    """The broker says nothing after the last token, neither that it is content nor that it is not."""
    who = Initiating(users.alice)
    with closing(Login(login.address, version=0)) as other:
        other.send_bare(who.token)
        offer = other.receive_bare()
        assert isinstance(offer, bytes)
        other.send_bare(who.agreeing(offer, message))
        return other.ask_something()


def _token(token: bytes, login: Login, _: Users) -> Any:
    return login.send(token)


def _late(login: Login, users: Users, *, of: str, age_s: float) -> Any:
    token, ripe_s = Initiating(getattr(users, of)).token, time.monotonic() + age_s
    while time.monotonic() < ripe_s:
        time.sleep(0.05)
    return login.send(token)


def _changed(login: Login, users: Users) -> Any:
    token = bytearray(Initiating(users.alice).token)
    token[-20] ^= 1
    return login.send(bytes(token))


def _replayed(login: Login, users: Users) -> Any:
    token = Initiating(users.alice).token
    with closing(Login(login.address)) as other:
        first = other.send(token)
    return [first, login.send(token)]


def _of_another_realm(login: Login, users: Users) -> Any:
    before = os.environ["KRB5_CONFIG"]
    os.environ["KRB5_CONFIG"] = str(users.strangers_config)
    try:
        token = Initiating(users.stranger).token
    finally:
        os.environ["KRB5_CONFIG"] = before
    return login.send(token)


NONE = Answer("NONE")
FAILED = Answer(
    "SASL_AUTHENTICATION_FAILED",
    "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI",
)

# What Apache Kafka 4.3.1 answers; `test_apache_kafka_answers_so` looks.
CASES: Mapping[str, tuple[Case, Any]] = {
    "no proof of the server": (_plain, [NONE, NONE, "answered"]),
    "a proof of the server": (_mutual, [NONE, NONE, NONE, "answered"]),
    "its own authorization id": (partial(_plain, message=NO_LAYER + b"alice@MOLDAU.TEST"), [NONE, NONE, "answered"]),
    "another authorization id": (partial(_plain, message=NO_LAYER + b"admin"), [NONE, NONE, "answered"]),
    "two security layers": (partial(_plain, message=b"\x03\0\x10\0"), [NONE, NONE, "answered"]),
    "a layer that was not offered": (partial(_plain, message=b"\x02\0\x10\0"), [NONE, FAILED, CLOSED]),
    "no layer at all": (partial(_plain, message=b"\0\0\0\0"), [NONE, FAILED, CLOSED]),
    "bytes for nothing to say": (partial(_mutual, nothing=b"abc"), [NONE, FAILED]),
    "bare tokens": (_bare, "answered"),
    "bare tokens for another layer": (partial(_bare, message=b"\x02\0\x10\0"), CLOSED),
    "an empty token": (partial(_token, b""), FAILED),
    "no token of GSSAPI": (partial(_token, b"abc"), FAILED),
    "a long token of nothing": (partial(_token, b"`" * 100_000), FAILED),
    "a changed token": (_changed, FAILED),
    "a replay": (_replayed, [NONE, FAILED]),
    "a ticket of another realm": (_of_another_realm, FAILED),
}
# Some seconds later: these need brokers that allow clocks to differ by SKEW_S only.
LATE: Mapping[str, tuple[Case, Any]] = {
    "a ticket that has ended": (partial(_late, of="shortly", age_s=SHORTLY_S + SKEW_S + 1.5), FAILED),
    "a clock that is wrong": (partial(_late, of="alice", age_s=SKEW_S + 1.5), FAILED),
}
# Apache Kafka lets it log in, and closes the connection at its first request.
UNMAPPED: Case = partial(_plain, of="unmapped")
UNMAPPED_HERE, UNMAPPED_APACHE = [NONE, FAILED, CLOSED], [NONE, NONE, CLOSED]


def outcome(address: tuple[str, int], case: Case, users: Users) -> Any:
    with closing(Login(address)) as login:
        return case(login, users)


def strict_config(realm: Realm) -> Path:
    """Of brokers in the realm that allow clocks to differ by a second or two."""
    path = realm.folder / "strict.conf"
    path.write_text(realm.config.read_text().replace("[libdefaults]", f"[libdefaults]\n    clockskew = {SKEW_S}"))
    return path


def make_users(realm: Realm, other: Realm) -> Users:
    """The short ticket begins to end at once."""
    return Users(
        alice=realm.ticket("alice", realm.add("alice")),
        unmapped=realm.ticket("un/mapped", realm.add("un/mapped")),
        shortly=realm.ticket("shortly", realm.add("shortly"), "-l", f"{SHORTLY_S}s"),
        stranger=other.ticket("stranger", other.add("stranger")),
        strangers_config=other.config,
    )

"""A client's login by Kafka's protocol: the frames to send, and what their answers mean (KIP-43, 152, 368).

Each step is a value: a frame, and what takes its answer. Whoever owns the connection sends the frame, with nothing
behind it, and gives the answer to `answered` until that says how long the session lasts:

    asking = begin_login(credentials, client_id="broker-1")
    while isinstance(asking, Asking):
        asking = asking.answered(exchange(asking.frame))

A session that has an end is renewed on the same connection, by the same steps, before `reauthenticate_after_ms`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.text import cut
from moldau.security.sasl.mechanism import Response, SaslClient, SaslError
from moldau.wire.codec import decoder, encode_parts, is_flexible
from moldau.wire.frame import RequestHeader, read_response_header, request_parts
from moldau.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from moldau.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from moldau.wire.schema import Message

HANDSHAKE_VERSION: Final = 1  # the first after which tokens have frames, and a failure a reason
AUTHENTICATE_VERSION: Final = 2
# Kafka's: of what is left of a session when it is renewed, for the network's delays and clocks that differ; the spread
# keeps connections that were made together from logging in together.
RENEWED_AT: Final = 0.85
RENEWED_SPREAD: Final = 0.10
TOLD_BYTES_MAX: Final = 500  # of a server's words, in a log of this side
ANSWER_BYTES_MAX: Final = 524_288  # as much as a server takes of a client: sasl.server.max.receive.size


class LoginFailed(Exception):
    """There is no session. The text says why, and holds no secret."""


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """Who logs in, and how."""

    mechanism: str
    begin: Callable[[str], SaslClient] = field(repr=False)
    """A new exchange with the server of a host. LoginFailed if there is nothing to log in with, as without a token."""
    is_slow: bool = False
    """Whether `begin` and the exchange's steps may wait for somebody else, such as a KDC: nothing for an event loop."""


@dataclass(frozen=True, slots=True)
class Authenticated:
    session_lifetime_ms: int | None
    """From the moment of the answer; None for a session without an end."""

    def reauthenticate_after_ms(self, chance: float) -> int | None:
        """When to log in again, from the moment of the answer; `chance` is from 0 to 1."""
        if self.session_lifetime_ms is None:
            return None
        return int(self.session_lifetime_ms * (RENEWED_AT + RENEWED_SPREAD * chance))


class _Taking(Protocol):
    def __call__(self, frame: memoryview) -> Asking | Authenticated: ...


@dataclass(frozen=True, slots=True)
class Asking:
    """A frame with its size, and the state that takes the answer."""

    frame: bytes = field(repr=False)
    correlation_id: int
    _take: _Taking = field(repr=False)

    def answered(self, frame: memoryview) -> Asking | Authenticated:
        """The answer, without its size. LoginFailed if the login is refused, or the other end proves nothing."""
        return self._take(frame)


def begin_login(credentials: ClientCredentials, *, client_id: str | None, host: str = "") -> Asking:
    """`host` is the server's name as this side knows it, for mechanisms by which it proves that it is the one."""
    return _Login(credentials, client_id, host).handshake()


@dataclass(frozen=True, slots=True)
class _Login:
    credentials: ClientCredentials
    client_id: str | None
    host: str
    asked: int = 0

    def handshake(self) -> Asking:
        return self._ask(SaslHandshakeRequest(self.credentials.mechanism), HANDSHAKE_VERSION, self._agreed)

    def _agreed(self, frame: memoryview) -> Asking:
        response: SaslHandshakeResponse = self._decoded(frame, SaslHandshakeResponse, HANDSHAKE_VERSION)
        if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            enabled = ", ".join(_shown(each) for each in response.mechanisms[:10]) or "none"
            raise self._failed(f"the mechanism is not enabled there; enabled are {enabled}")
        if response.error_code != ErrorCode.NONE:
            raise self._failed(f"the handshake was refused: {_name(response.error_code)}")
        return self._next()._respond(self.credentials.begin(self.host), b"")

    def _respond(self, exchange: SaslClient, challenge: bytes) -> Asking:
        response = self._evaluated(exchange, challenge)
        if response is None:
            raise self._failed("there is nothing to say to the server")
        return self._send(response)

    def _send(self, response: Response) -> Asking:
        following = self._next()

        def answered(frame: memoryview) -> Asking | Authenticated:
            return following._challenged(response.next, frame)

        return self._ask(SaslAuthenticateRequest(response.token), AUTHENTICATE_VERSION, answered)

    def _challenged(self, exchange: SaslClient, frame: memoryview) -> Asking | Authenticated:
        answer: SaslAuthenticateResponse = self._decoded(frame, SaslAuthenticateResponse, AUTHENTICATE_VERSION)
        if answer.error_code != ErrorCode.NONE:
            raise self._failed(_shown(answer.error_message or "") or _name(answer.error_code))
        response = self._evaluated(exchange, bytes(answer.auth_bytes))
        if response is not None:
            return self._send(response)
        return Authenticated(answer.session_lifetime_ms if answer.session_lifetime_ms > 0 else None)

    def _next(self) -> _Login:
        return replace(self, asked=self.asked + 1)

    def _evaluated(self, exchange: SaslClient, challenge: bytes) -> Response | None:
        try:
            return exchange.evaluate(challenge)
        except SaslError as wrong:
            raise self._failed(str(wrong)) from None

    def _ask(self, request: Message, version: int, take: _Taking) -> Asking:
        header = RequestHeader(request.API_KEY, version, self.asked, self.client_id)
        parts = request_parts(header, encode_parts(request, version), is_flexible=is_flexible(type(request), version))
        return Asking(b"".join(parts), self.asked, take)

    def _decoded(self, frame: memoryview, response: type[Message], version: int) -> Any:
        try:
            return decoder(response, version)(frame, read_response_header(frame, response, version)[1])[0]
        except ProtocolViolation as violation:
            raise self._failed(f"what came is no {response.__name__} v{version}: {violation}") from None

    def _failed(self, why: str) -> LoginFailed:
        return LoginFailed(f"SASL {self.credentials.mechanism}: {why}")


def _shown(told: str) -> str:
    """Another process's words, which must neither fill nor end a line of a log."""
    return cut("".join(each if each.isprintable() else " " for each in told), TOLD_BYTES_MAX).strip()


def _name(error_code: int) -> str:
    try:
        return ErrorCode(error_code).name
    except ValueError:
        return f"error {error_code}"

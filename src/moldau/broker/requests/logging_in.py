"""The gate before a SASL listener's requests: until a client has logged in, nothing else of it is decoded.

Each connection has a gate, which keeps its `Login`. Work that takes long, such as the signature of a token, is done by
a thread. A failed login is answered after `connection.failed.authentication.delay.ms`, which holds nothing but a timer;
whoever has the connection then closes it.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from struct import Struct

from moldau.broker.context import Peer
from moldau.broker.handlers.sasl_authenticate import sasl_authenticate
from moldau.broker.handlers.sasl_handshake import sasl_handshake
from moldau.broker.network.outbox import Part
from moldau.broker.network.secured.authentications import Authentications
from moldau.broker.network.secured.login_inbox import LoginInbox
from moldau.broker.requests.answers import Relayed
from moldau.broker.requests.dispatch import Begun, Dispatch, Route, Unanswered
from moldau.core.clock import Clock
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.limits import LARGE_REQUEST_BYTES
from moldau.core.text import cut
from moldau.security.principals import Principal
from moldau.security.sasl.login import Login, LoginSettings, Refusal, Step
from moldau.wire.api import ApiKey
from moldau.wire.codec import encode_parts
from moldau.wire.frame import SIZE_BYTES, RequestHeader, response_parts
from moldau.wire.messages.api_versions import ApiVersionsResponse
from moldau.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from moldau.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from moldau.wire.request_header import read_request_header

_KEY_VERSION_CORRELATION = Struct(">hhi")
_SIZE_CORRELATION_ERROR = Struct(">iih")  # how an answer to ApiVersions begins, whose header is always the oldest
_APIS = {int(row.key): row for row in (sasl_handshake, sasl_authenticate)}
CHECKS_MAX = 128  # each keeps its client's token; a thread is through with so many in a tenth of a second
CLIENT_ID_BYTES_MAX = 64  # of what a line of the log says about a failed login
_NO_HEADER = RequestHeader(ApiKey.SASL_AUTHENTICATE, 0, 0, None)

Answer = list[Part] | Unanswered | None
Response = SaslHandshakeResponse | SaslAuthenticateResponse | Relayed | None


@dataclass(slots=True)
class Checks:
    """Logins of a mechanism whose work would hold the loop, in threads."""

    executor: Executor
    count: int = 0
    """How many they have, or are to have: those of clients who hung up, too."""

    def begin(self, work: Callable[[], Step]) -> Future[Step]:
        checked = _loop().run_in_executor(self.executor, work)
        self.count += 1
        checked.add_done_callback(self._end)
        return checked

    def _end(self, _: object) -> None:
        self.count -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Logins:
    """What all gates of one listener share."""

    settings: LoginSettings
    clock: Clock
    failure_delay_s: float
    in_threads: Mapping[str, Checks] = field(default_factory=dict)
    authentications: Authentications = field(default_factory=Authentications)


class LoginGate:
    __slots__ = ("_clock", "_dispatch", "_expires_ms", "_inbox", "_login", "_logins", "failure", "is_open", "on_login")

    def __init__(self, logins: Logins, dispatch: Dispatch, inbox: LoginInbox) -> None:
        self._logins = logins
        self._clock = logins.clock
        self._dispatch = dispatch
        self._inbox = inbox
        self.failure: str | None = None
        """Why the connection is to be closed when what waits is answered."""
        self.on_login: Callable[[Principal], None] | None = None
        self._take(Login(logins.settings))

    @property
    def is_known(self) -> bool:
        """Also while a client logs in again, when strangers must not be able to end its connection."""
        return self._login.session is not None

    def answer(self, frame: memoryview, peer: Peer) -> Answer:
        """As Dispatch's own, once the client has logged in."""
        if self._login.takes_raw_tokens:
            return self._follow(self._evaluate(self._login.raw_token, frame), None, _NO_HEADER)
        key, version, correlation_id = _KEY_VERSION_CORRELATION.unpack_from(frame)
        now_ms = self._clock.elapsed_ms()
        is_valid = self.is_open and (self._expires_ms is None or now_ms <= self._expires_ms)
        # Of a login only its renewal is taken here. The rest has a handler that refuses it, and counts in quotas.
        if is_valid and (key != ApiKey.SASL_HANDSHAKE or not self._login.may_renew(now_ms)):
            return self._dispatch.answer(frame, peer)
        refusal = self._login.refusal(key, now_ms)
        if refusal is not None:
            return self._refuse(refusal, key, version, correlation_id)
        if key == ApiKey.API_VERSIONS:
            return self._tell_versions(frame, peer)
        route = _route(key, version)
        header, at = read_request_header(frame)
        request, _ = route.decode(frame, at)
        if isinstance(request, SaslHandshakeRequest):
            step = self._login.handshake(request.mechanism, version=version, now_ms=now_ms)
            return self._followed(step, route, header)
        assert isinstance(request, SaslAuthenticateRequest)
        return self._follow(self._evaluate(self._login.authenticate, request.auth_bytes), route, header)

    def _take(self, login: Login) -> None:
        self._login = login
        self.is_open = login.is_complete
        self._expires_ms = None if login.session is None else login.session.expires_ms
        self._inbox.expect(login.receive_bytes_max, is_token=login.takes_raw_tokens, is_known=self.is_known)

    def _tell_versions(self, frame: memoryview, peer: Peer) -> Answer:
        """Outside of quotas: whose they would be is known after the login, and others of that name must not pay."""
        if len(frame) > LARGE_REQUEST_BYTES:
            raise ProtocolViolation(f"API_VERSIONS of {len(frame)} bytes; allowed {LARGE_REQUEST_BYTES}")
        begun = self._dispatch.begun(frame, peer)
        parts = (
            begun.route.reply(begun.answer, begun.context.header.correlation_id) if isinstance(begun, Begun) else begun
        )
        if _SIZE_CORRELATION_ERROR.unpack_from(b"".join(parts))[2] == ErrorCode.NONE:  # type: ignore[arg-type]
            self._take(self._login.versions_told())
        return parts

    def _evaluate(self, evaluate: Callable[..., Step], token: bytes | memoryview) -> Step | Future[Step]:
        now_ms, wall_ms = self._clock.elapsed_ms(), self._clock.now_ms()
        checks = self._logins.in_threads.get(self._login.mechanism or "")
        if checks is None:
            return evaluate(token, now_ms=now_ms, wall_ms=wall_ms)
        if checks.count >= CHECKS_MAX and not self.is_known:
            raise ProtocolViolation(f"{CHECKS_MAX} other logins wait to be checked; try again later")
        token = bytes(token)  # the frame's memory is used again while the thread works
        return checks.begin(partial(evaluate, token, now_ms=now_ms, wall_ms=wall_ms))

    def _follow(self, step: Step | Future[Step], route: Route | None, header: RequestHeader) -> Answer:
        if isinstance(step, Step):
            return self._followed(step, route, header)
        return Unanswered(asyncio.ensure_future(self._followed_later(step, header)), _or_raw(route), header)

    def _followed(self, step: Step, route: Route | None, header: RequestHeader) -> Answer:
        response = self._outcome(step)
        if step.failure is not None:
            return self._fail(step.failure, response, route, header)
        return None if response is None else _or_raw(route).reply(response, header.correlation_id)

    async def _followed_later(self, step: Future[Step], header: RequestHeader) -> Response:
        found = await step
        response = self._outcome(found)
        if found.failure is not None:
            self._note_failure(found.failure, header)
            await asyncio.sleep(self._logins.failure_delay_s)
        return response

    def _outcome(self, step: Step) -> Response:
        self._take(step.login)
        if step.login.is_complete:
            self._logins.authentications.succeeded += 1
            if self.on_login is not None:
                self.on_login(step.login.principal)
        return step.response if step.token is None else Relayed(step.token)

    def _refuse(self, refusal: Refusal, key: int, version: int, correlation_id: int) -> Unanswered:
        """In the form of ApiVersions, which a client may well ask for too late; other requests get no answer."""
        if self.is_open:
            raise ProtocolViolation(refusal.reason)
        response = None
        if refusal.is_answered and key == ApiKey.API_VERSIONS and 0 <= version <= ApiVersionsResponse.VERSIONS[1]:
            body = encode_parts(ApiVersionsResponse(error_code=refusal.error), version)
            frame = b"".join(response_parts(correlation_id, body, is_flexible=False))
            response = Relayed(frame[SIZE_BYTES:])
        self._take(self._login.refused())
        return self._fail(refusal.reason, response, None, _NO_HEADER)

    def _fail(self, why: str, response: Response, route: Route | None, header: RequestHeader) -> Unanswered:
        self._note_failure(why, header)
        loop = _loop()
        told: Future[Response] = loop.create_future()
        loop.call_later(self._logins.failure_delay_s, _settle, told, response)
        return Unanswered(told, _or_raw(route), header)

    def _note_failure(self, why: str, header: RequestHeader) -> None:
        self._logins.authentications.fail_login(header.client_id)
        self.failure = self._told(why, header)

    def _told(self, why: str, header: RequestHeader) -> str:
        """With what finds the client. Not its user, as in Apache Kafka: that may be a password in the wrong field."""
        found = [f"SASL mechanism {self._login.mechanism}"] if self._login.mechanism else []
        if header.client_id:
            found.append(f"client id {cut(header.client_id, CLIENT_ID_BYTES_MAX)!r}")
        return f"{why} ({', '.join(found)})" if found else why


def _settle(told: Future[Response], response: Response) -> None:
    if not told.done():
        told.set_result(response)


def _or_raw(route: Route | None) -> Route:
    """What a `Relayed` is sent by: any route does."""
    return _route(int(ApiKey.SASL_AUTHENTICATE), 0) if route is None else route


def _route(key: int, version: int) -> Route:
    known = _ROUTES.get((key, version))
    if known is None:
        raise ProtocolViolation(f"{ApiKey(key).name} version {version} is not supported")
    return known


def _loop() -> AbstractEventLoop:
    return asyncio.get_running_loop()


_ROUTES = {
    (key, version): Route(row, version)
    for key, row in _APIS.items()
    for version in range(row.versions[0], row.versions[1] + 1)
}

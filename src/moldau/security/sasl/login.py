"""A connection's login: handshake, exchange, principal, and the same again before the session ends (KIP-43, 152, 368).

A `Login` is a value. Each method takes what the client sent and gives a `Step`: what to answer, whether to close the
connection after that, and the login as it is then. GSSAPI tokens without a handshake, from clients of 0.9, are refused.

`now_ms` is of a clock that nobody sets, by which a session ends; `wall_ms` is what credentials are dated by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from types import MappingProxyType

from moldau.core.errors import ErrorCode
from moldau.core.text import cut
from moldau.security.principals import ANONYMOUS, Principal
from moldau.security.sasl.mechanism import SaslAuthenticationError, SaslError, SaslServer, Success
from moldau.wire.api import ApiKey
from moldau.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from moldau.wire.messages.sasl_handshake import SaslHandshakeResponse


class State(Enum):
    INITIAL_REQUEST = auto()
    HANDSHAKE_REQUEST = auto()
    AUTHENTICATE = auto()
    AUTHENTICATE_RAW = auto()
    COMPLETE = auto()
    REAUTHENTICATE = auto()
    REAUTHENTICATE_RAW = auto()
    FAILED = auto()


class Event(Enum):
    VERSIONS_TOLD = auto()
    MECHANISM_AGREED = auto()
    MECHANISM_AGREED_RAW = auto()  # by SaslHandshake v0, which bare tokens follow
    CHALLENGED = auto()
    AUTHENTICATED = auto()
    REFUSED = auto()


NEXT: Mapping[tuple[State, Event], State] = MappingProxyType(
    {
        (State.INITIAL_REQUEST, Event.VERSIONS_TOLD): State.HANDSHAKE_REQUEST,
        (State.INITIAL_REQUEST, Event.MECHANISM_AGREED): State.AUTHENTICATE,
        (State.INITIAL_REQUEST, Event.MECHANISM_AGREED_RAW): State.AUTHENTICATE_RAW,
        (State.INITIAL_REQUEST, Event.REFUSED): State.FAILED,
        (State.HANDSHAKE_REQUEST, Event.MECHANISM_AGREED): State.AUTHENTICATE,
        (State.HANDSHAKE_REQUEST, Event.MECHANISM_AGREED_RAW): State.AUTHENTICATE_RAW,
        (State.HANDSHAKE_REQUEST, Event.REFUSED): State.FAILED,
        (State.AUTHENTICATE, Event.CHALLENGED): State.AUTHENTICATE,
        (State.AUTHENTICATE, Event.AUTHENTICATED): State.COMPLETE,
        (State.AUTHENTICATE, Event.REFUSED): State.FAILED,
        (State.AUTHENTICATE_RAW, Event.CHALLENGED): State.AUTHENTICATE_RAW,
        (State.AUTHENTICATE_RAW, Event.AUTHENTICATED): State.COMPLETE,
        (State.AUTHENTICATE_RAW, Event.REFUSED): State.FAILED,
        (State.COMPLETE, Event.MECHANISM_AGREED): State.REAUTHENTICATE,
        (State.COMPLETE, Event.MECHANISM_AGREED_RAW): State.REAUTHENTICATE_RAW,
        (State.COMPLETE, Event.REFUSED): State.FAILED,
        (State.REAUTHENTICATE, Event.CHALLENGED): State.REAUTHENTICATE,
        (State.REAUTHENTICATE, Event.AUTHENTICATED): State.COMPLETE,
        (State.REAUTHENTICATE, Event.REFUSED): State.FAILED,
        (State.REAUTHENTICATE_RAW, Event.CHALLENGED): State.REAUTHENTICATE_RAW,
        (State.REAUTHENTICATE_RAW, Event.AUTHENTICATED): State.COMPLETE,
        (State.REAUTHENTICATE_RAW, Event.REFUSED): State.FAILED,
    }
)

# The requests that a login takes itself in each state; COMPLETE lets every request through to its handler.
REQUESTS: Mapping[State, frozenset[ApiKey]] = MappingProxyType(
    {
        State.INITIAL_REQUEST: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
        State.HANDSHAKE_REQUEST: frozenset({ApiKey.SASL_HANDSHAKE}),
        State.AUTHENTICATE: frozenset({ApiKey.SASL_AUTHENTICATE}),
        State.COMPLETE: frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}),
        State.REAUTHENTICATE: frozenset({ApiKey.SASL_AUTHENTICATE}),
    }
)

EXCHANGES = frozenset({State.AUTHENTICATE, State.REAUTHENTICATE})
RAW_EXCHANGES = frozenset({State.AUTHENTICATE_RAW, State.REAUTHENTICATE_RAW})
REAUTHENTICATIONS = frozenset({State.REAUTHENTICATE, State.REAUTHENTICATE_RAW})

MAX_RECEIVE_BYTES = 524_288  # Kafka's sasl.server.max.receive.size
REAUTHENTICATION_INTERVAL_MS_MIN = 1_000  # Kafka's: an exchange costs more than most requests
RAW_TOKENS_UNTIL = 0  # the version of SaslHandshake that they follow
MECHANISM_BYTES_MAX = 20  # RFC 4422, section 3.1


class IllegalTransition(Exception):
    """A mistake of this side: what a client may do wrong is a Step."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"{event.name} in {state.name}")


@dataclass(frozen=True, slots=True)
class LoginSettings:
    """What a listener's logins have in common."""

    mechanisms: Mapping[str, Callable[[], SaslServer]]
    """The enabled ones, each with what begins an exchange."""
    connections_max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    """By mechanism; a session has no end where it is missing or 0."""
    max_receive_bytes: int = MAX_RECEIVE_BYTES


@dataclass(frozen=True, slots=True)
class Step:
    """What follows from something that the client sent."""

    login: Login
    response: SaslHandshakeResponse | SaslAuthenticateResponse | None = None
    token: bytes | None = None
    """A bare token to send, in a frame of its own."""
    failure: str | None = None
    """Why the connection has to be closed, once the response is sent; for the log, which has to quote it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that has no place here: the connection is closed, after an answer in the request's own form or none."""

    reason: str
    is_answered: bool
    error: ErrorCode = ErrorCode.ILLEGAL_SASL_STATE


@dataclass(frozen=True, slots=True)
class Session:
    """Who the connection's requests are from, and until when."""

    principal: Principal
    mechanism: str
    expires_ms: int | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Login:
    settings: LoginSettings
    state: State = State.INITIAL_REQUEST
    session: Session | None = None
    """Of the last exchange that succeeded; requests in flight go on under it while the client logs in again."""
    mechanism: str = ""
    exchange: SaslServer | None = None
    reauthenticated_ms: int | None = None

    @property
    def principal(self) -> Principal:
        return ANONYMOUS if self.session is None else self.session.principal

    @property
    def is_complete(self) -> bool:
        return self.state is State.COMPLETE

    @property
    def takes_raw_tokens(self) -> bool:
        """Whether the next frame is a token without a header."""
        return self.state in RAW_EXCHANGES

    @property
    def receive_bytes_max(self) -> int | None:
        """How long the next frame may be, to be asked before it is read; None where the broker's own limit holds."""
        return None if self.is_complete else self.settings.max_receive_bytes

    def refusal(self, api_key: int, now_ms: int) -> Refusal | None:
        """Why this request may not be served, by its header alone: nothing else of it is parsed before that."""
        if self.state is State.COMPLETE:
            expired = self._is_expired(now_ms) and not (api_key == ApiKey.SASL_HANDSHAKE and self.may_renew(now_ms))
            return Refusal("the session expired", is_answered=False) if expired else None
        if api_key in REQUESTS.get(self.state, ()):
            return None
        during = "authentication" if self.state in EXCHANGES else "handshake"
        reason = f"Unexpected Kafka request of type {_name(api_key)} during SASL {during}."
        return Refusal(reason, is_answered=self.state in EXCHANGES)

    def versions_told(self) -> Login:
        """After an ApiVersions request was answered without an error: one is enough."""
        return self if self.is_complete else replace(self, state=advance(self.state, Event.VERSIONS_TOLD))

    def refused(self) -> Login:
        """After a refusal, or bytes that are no request."""
        return replace(self, state=advance(self.state, Event.REFUSED), exchange=None)

    def handshake(self, mechanism: str, *, version: int, now_ms: int) -> Step:
        if self.is_complete and not self.may_renew(now_ms):
            return Step(self, SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE))
        enabled = list(self.settings.mechanisms)
        begin = self.settings.mechanisms.get(mechanism)
        if begin is None:
            response = SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, enabled)
            return Step(self.refused(), response, failure=f"Unsupported SASL mechanism {_shown(mechanism)}")
        event = Event.MECHANISM_AGREED if version > RAW_TOKENS_UNTIL else Event.MECHANISM_AGREED_RAW
        login = replace(
            self,
            state=advance(self.state, event),
            mechanism=mechanism,
            exchange=begin(),
            reauthenticated_ms=now_ms if self.is_complete else self.reauthenticated_ms,
        )
        return Step(login, SaslHandshakeResponse(ErrorCode.NONE, enabled))

    def authenticate(self, auth_bytes: bytes | memoryview, *, now_ms: int, wall_ms: int) -> Step:
        if self.is_complete:
            message = "SaslAuthenticate request received after successful authentication"
            return Step(self, SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, message))
        assert self.state in EXCHANGES, "refusal() is asked before the request is parsed"
        try:
            login, token = self._evaluate(auth_bytes, now_ms, wall_ms)
        except SaslError as failure:
            response = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, self._told(failure))
            return Step(self.refused(), response, failure=str(failure))
        return Step(login, SaslAuthenticateResponse(ErrorCode.NONE, None, token or b"", login._lifetime_ms(now_ms)))

    def raw_token(self, frame: bytes | memoryview, *, now_ms: int, wall_ms: int) -> Step:
        """A failure has no answer here: bare tokens have no place for one."""
        assert self.takes_raw_tokens, "only then is a frame without a header"
        try:
            login, token = self._evaluate(frame, now_ms, wall_ms)
        except SaslError as failure:
            return Step(self.refused(), failure=str(failure))
        return Step(login, token=token)

    def _evaluate(self, token: bytes | memoryview, now_ms: int, wall_ms: int) -> tuple[Login, bytes | None]:
        assert self.exchange is not None, "a handshake begins one"
        if len(token) > self.settings.max_receive_bytes:
            raise SaslAuthenticationError("Failing SASL authentication due to invalid receive size")
        if self.session is not None and self.session.mechanism != self.mechanism:
            raise SaslAuthenticationError(
                f"SASL mechanism '{self.mechanism}' requested by client is not supported for re-authentication of "
                f"mechanism '{self.session.mechanism}'"
            )
        outcome = self.exchange.evaluate(bytes(token), wall_ms)  # a copy: the frame's buffer is used again
        if not isinstance(outcome, Success):
            challenged = replace(self, state=advance(self.state, Event.CHALLENGED), exchange=outcome.next)
            return challenged, outcome.token
        session = self._session(outcome, now_ms, wall_ms)
        if self.session is not None:
            _check_unchanged(self.session.principal, session.principal)
        complete = replace(self, state=advance(self.state, Event.AUTHENTICATED), session=session, exchange=None)
        return complete, outcome.token

    def _session(self, success: Success, now_ms: int, wall_ms: int) -> Session:
        ends = [] if success.credential_expires_ms is None else [now_ms + success.credential_expires_ms - wall_ms]
        max_reauth_ms = self.settings.connections_max_reauth_ms.get(self.mechanism, 0)
        if max_reauth_ms > 0:
            ends.append(now_ms + max_reauth_ms)
        principal = Principal("User", success.user, success.is_by_token)
        expires_ms = max(now_ms, min(ends)) if ends else None
        return Session(principal, self.mechanism, expires_ms, success.extensions)

    def _lifetime_ms(self, now_ms: int) -> int:
        """What the client is told: 0 for no end, and while the exchange goes on."""
        if not self.is_complete or self.session is None or self.session.expires_ms is None:
            return 0
        return self.session.expires_ms - now_ms

    def _is_expired(self, now_ms: int) -> bool:
        return self.session is not None and self.session.expires_ms is not None and now_ms > self.session.expires_ms

    def may_renew(self, now_ms: int) -> bool:
        """Only a session with an end is renewed, and not again at once."""
        if self.session is None or self.session.expires_ms is None:
            return False
        last_ms = self.reauthenticated_ms
        return last_ms is None or now_ms - last_ms >= REAUTHENTICATION_INTERVAL_MS_MIN

    def _told(self, failure: SaslError) -> str:
        if isinstance(failure, SaslAuthenticationError):
            return failure.told
        during = "re-authentication" if self.state in REAUTHENTICATIONS else "authentication"
        return f"Authentication failed during {during} due to invalid credentials with SASL mechanism {self.mechanism}"


def advance(state: State, event: Event) -> State:
    try:
        return NEXT[state, event]
    except KeyError:
        raise IllegalTransition(state, event) from None


def _name(api_key: int) -> str:
    try:
        return ApiKey(api_key).name
    except ValueError:
        return str(api_key)


def _shown(mechanism: str) -> str:
    """In a log, where a client's text must neither fill nor end a line."""
    return repr(cut(mechanism, MECHANISM_BYTES_MAX))


def _check_unchanged(before: Principal, after: Principal) -> None:
    if (before.kind, before.name) != (after.kind, after.name):
        raise SaslAuthenticationError(
            f"Cannot change principals during re-authentication from {before.kind}.{before.name}: "
            f"{after.kind}.{after.name}"
        )

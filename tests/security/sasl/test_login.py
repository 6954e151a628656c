"""A connection's login: every state, every request in it, and what the client is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moldau.core.errors import ErrorCode
from moldau.security.principals import ANONYMOUS, Principal
from moldau.security.sasl.login import (
    NEXT,
    REQUESTS,
    Event,
    IllegalTransition,
    Login,
    LoginSettings,
    State,
    Step,
    advance,
)
from moldau.security.sasl.mechanism import SaslClient
from moldau.security.sasl.plain import PlainServer
from moldau.security.sasl.scram.client import ScramClient
from moldau.security.sasl.scram.credential import ScramMechanism
from moldau.security.sasl.scram.server import ScramServer
from moldau.wire.api import ApiKey
from moldau.wire.messages import SaslAuthenticateResponse, SaslHandshakeResponse
from tests.security.sasl.exchanges import FAKES, NOW_MS, PASSWORDS, Credentials, Tokens
from tests.security.sasl.test_plain import Passwords

HOUR_MS = 3_600_000
SETTINGS = LoginSettings(
    mechanisms={
        "PLAIN": lambda: PlainServer(Passwords()),
        "SCRAM-SHA-256": lambda: ScramServer(ScramMechanism.SHA_256, Credentials(), FAKES, "nonce", Tokens()),
    }
)
RENEWED = replace(SETTINGS, connections_max_reauth_ms={"PLAIN": HOUR_MS, "SCRAM-SHA-256": HOUR_MS})
ALICE = Principal("User", "alice")
PLAIN_ALICE = b"\0alice\0alice-secret"


def agreed(mechanism: str = "PLAIN", settings: LoginSettings = SETTINGS, version: int = 1) -> Login:
    step = Login(settings).handshake(mechanism, version=version, now_ms=NOW_MS)
    assert step.response == SaslHandshakeResponse(ErrorCode.NONE, ["PLAIN", "SCRAM-SHA-256"])
    return step.login


def complete(settings: LoginSettings = SETTINGS) -> Login:
    return agreed(settings=settings).authenticate(PLAIN_ALICE, now_ms=NOW_MS, wall_ms=NOW_MS).login


def authenticate(login: Login, client: SaslClient, now_ms: int = NOW_MS) -> Step:
    """All of an exchange; the last step of it."""
    response = client.evaluate(b"")
    while True:
        assert response is not None
        step = login.authenticate(response.token, now_ms=now_ms, wall_ms=now_ms)
        if step.failure is not None or step.login.is_complete:
            return step
        assert isinstance(step.response, SaslAuthenticateResponse)
        response, login = response.next.evaluate(bytes(step.response.auth_bytes)), step.login


def told(step: Step) -> tuple[ErrorCode, str | None]:
    assert isinstance(step.response, SaslAuthenticateResponse)
    return ErrorCode(step.response.error_code), step.response.error_message


def test_a_login_by_one_message() -> None:
    login = agreed()
    assert (login.principal, login.is_complete, login.receive_bytes_max) == (ANONYMOUS, False, 524_288)
    step = login.authenticate(memoryview(PLAIN_ALICE), now_ms=NOW_MS, wall_ms=NOW_MS)
    assert step.response == SaslAuthenticateResponse(ErrorCode.NONE, None, b"", 0)
    assert (step.login.principal, step.login.is_complete, step.login.receive_bytes_max) == (ALICE, True, None)


def test_a_login_by_several_messages() -> None:
    client = ScramClient(ScramMechanism.SHA_256, "alice", PASSWORDS["alice"], "client")
    assert authenticate(agreed("SCRAM-SHA-256"), client).login.principal == ALICE


def test_a_delegation_tokens_session_ends_with_it() -> None:
    client = ScramClient(ScramMechanism.SHA_256, "token-1", "hmac-of-the-token", "client", is_by_token=True)
    step = authenticate(agreed("SCRAM-SHA-256", RENEWED), client)
    assert isinstance(step.response, SaslAuthenticateResponse)
    assert (step.login.principal, step.response.session_lifetime_ms) == (Principal("User", "alice", True), 60_000)


def test_a_login_with_bare_tokens() -> None:
    login = agreed("SCRAM-SHA-256", version=0)
    first = ScramClient(ScramMechanism.SHA_256, "alice", PASSWORDS["alice"], "client").evaluate(b"")
    assert login.takes_raw_tokens
    assert first is not None
    step = login.raw_token(first.token, now_ms=NOW_MS, wall_ms=NOW_MS)
    assert step.token is not None
    proof = first.next.evaluate(step.token)
    assert proof is not None
    step = step.login.raw_token(proof.token, now_ms=NOW_MS, wall_ms=NOW_MS)
    assert step.token is not None
    assert proof.next.evaluate(step.token) is None
    assert (step.login.principal, step.login.takes_raw_tokens) == (ALICE, False)


def test_a_bare_token_that_fails_has_no_answer() -> None:
    step = agreed(version=0).raw_token(b"\0alice\0wrong", now_ms=NOW_MS, wall_ms=NOW_MS)
    assert (step.token, step.response, step.login.state) == (None, None, State.FAILED)
    assert step.failure == "Authentication failed: Invalid username or password"


def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are() -> None:
    step = Login(SETTINGS).handshake("GSSAPI", version=1, now_ms=NOW_MS)
    assert step.response == SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN", "SCRAM-SHA-256"])
    assert (step.failure, step.login.state) == ("Unsupported SASL mechanism 'GSSAPI'", State.FAILED)


def test_what_a_client_is_told_of_a_failure() -> None:
    failed = ErrorCode.SASL_AUTHENTICATION_FAILED
    wrong = agreed().authenticate(b"\0alice\0wrong", now_ms=NOW_MS, wall_ms=NOW_MS)
    assert told(wrong) == (failed, "Authentication failed: Invalid username or password")
    text = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    for user in ("alice", "nobody"):
        client = ScramClient(ScramMechanism.SHA_256, user, "wrong", "client")
        step = authenticate(agreed("SCRAM-SHA-256"), client)
        assert told(step) == (failed, text)
        assert step.login.state is State.FAILED
        assert step.login.exchange is None


def test_a_token_that_is_too_long_is_not_evaluated() -> None:
    login = agreed(settings=replace(SETTINGS, max_receive_bytes=10))
    step = login.authenticate(PLAIN_ALICE, now_ms=NOW_MS, wall_ms=NOW_MS)
    assert told(step)[1] == "Failing SASL authentication due to invalid receive size"


@pytest.mark.parametrize(
    ("state", "allowed"),
    [
        (State.INITIAL_REQUEST, {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
        (State.HANDSHAKE_REQUEST, {ApiKey.SASL_HANDSHAKE}),
        (State.AUTHENTICATE, {ApiKey.SASL_AUTHENTICATE}),
        (State.AUTHENTICATE_RAW, set()),
        (State.REAUTHENTICATE, {ApiKey.SASL_AUTHENTICATE}),
        (State.REAUTHENTICATE_RAW, set()),
        (State.FAILED, set()),
        (State.COMPLETE, set(ApiKey)),
    ],
)
def test_which_requests_a_state_takes(state: State, allowed: set[ApiKey]) -> None:
    login = replace(complete(), state=state)
    assert {key for key in ApiKey if login.refusal(key, NOW_MS) is None} == allowed


def test_every_state_has_been_thought_of() -> None:
    assert {state for state, _ in NEXT} | {State.FAILED} == set(State)
    assert set(REQUESTS) <= set(State)
    assert all((state, Event.REFUSED) in NEXT for state in State if state is not State.FAILED)
    with pytest.raises(IllegalTransition, match="AUTHENTICATED in INITIAL_REQUEST"):
        advance(State.INITIAL_REQUEST, Event.AUTHENTICATED)


def test_a_request_that_has_no_place_is_answered_only_within_an_exchange() -> None:
    early = Login(SETTINGS).refusal(ApiKey.METADATA, NOW_MS)
    assert early is not None
    assert (early.reason, early.is_answered) == (
        "Unexpected Kafka request of type METADATA during SASL handshake.",
        False,
    )
    late = agreed().refusal(ApiKey.METADATA, NOW_MS)
    assert late is not None
    assert (late.reason, late.is_answered, late.error) == (
        "Unexpected Kafka request of type METADATA during SASL authentication.",
        True,
        ErrorCode.ILLEGAL_SASL_STATE,
    )
    unknown = Login(SETTINGS).refusal(9999, NOW_MS)
    assert unknown is not None
    assert "9999" in unknown.reason
    assert Login(SETTINGS).refused().state is State.FAILED


def test_versions_are_asked_for_once() -> None:
    login = Login(SETTINGS).versions_told()
    assert login.refusal(ApiKey.API_VERSIONS, NOW_MS) is not None
    assert login.handshake("PLAIN", version=1, now_ms=NOW_MS).login.state is State.AUTHENTICATE
    assert complete().versions_told() == complete()


def test_a_session_without_an_end_is_not_renewed() -> None:
    login = complete()
    assert login.refusal(ApiKey.FETCH, NOW_MS + 10**12) is None
    step = login.handshake("PLAIN", version=1, now_ms=NOW_MS)
    assert step == Step(login, SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE))
    step = login.authenticate(PLAIN_ALICE, now_ms=NOW_MS, wall_ms=NOW_MS)
    assert step.login is login
    assert told(step) == (
        ErrorCode.ILLEGAL_SASL_STATE,
        "SaslAuthenticate request received after successful authentication",
    )


def test_a_session_ends_unless_the_client_logs_in_again() -> None:
    login = complete(RENEWED)
    assert login.refusal(ApiKey.FETCH, NOW_MS + HOUR_MS) is None
    after_ms = NOW_MS + HOUR_MS + 1
    ended = login.refusal(ApiKey.FETCH, after_ms)
    assert ended is not None
    assert not ended.is_answered
    assert login.refusal(ApiKey.SASL_HANDSHAKE, after_ms) is None
    step = login.handshake("PLAIN", version=1, now_ms=after_ms)
    assert (step.login.state, step.login.principal) == (State.REAUTHENTICATE, ALICE)
    step = step.login.authenticate(PLAIN_ALICE, now_ms=after_ms, wall_ms=after_ms)
    assert isinstance(step.response, SaslAuthenticateResponse)
    assert step.response.session_lifetime_ms == HOUR_MS
    assert step.login.refusal(ApiKey.FETCH, after_ms + HOUR_MS) is None


def test_who_logs_in_again_must_be_the_same_by_the_same_mechanism() -> None:
    again = complete(RENEWED).handshake("PLAIN", version=1, now_ms=NOW_MS).login
    other = again.authenticate("\0žofie\0heslo ž".encode(), now_ms=NOW_MS, wall_ms=NOW_MS)
    assert told(other)[1] == "Cannot change principals during re-authentication from User.alice: User.žofie"
    assert other.login.state is State.FAILED
    again = complete(RENEWED).handshake("SCRAM-SHA-256", version=1, now_ms=NOW_MS).login
    first = again.authenticate(b"n,,n=alice,r=x", now_ms=NOW_MS, wall_ms=NOW_MS)
    assert told(first) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism "
        "'PLAIN'",
    )
    assert first.login.state is State.FAILED


def test_a_failed_reauthentication_says_so() -> None:
    scram = ScramClient(ScramMechanism.SHA_256, "alice", PASSWORDS["alice"], "client")
    login = authenticate(agreed("SCRAM-SHA-256", RENEWED), scram).login
    again = login.handshake("SCRAM-SHA-256", version=1, now_ms=NOW_MS).login
    step = authenticate(again, replace(scram, password="wrong"))
    text = "Authentication failed during re-authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    assert told(step)[1] == text


def test_a_session_is_renewed_once_a_second_at_most() -> None:
    login = complete(RENEWED).handshake("PLAIN", version=1, now_ms=NOW_MS).login
    login = login.authenticate(PLAIN_ALICE, now_ms=NOW_MS, wall_ms=NOW_MS).login
    soon = login.handshake("PLAIN", version=1, now_ms=NOW_MS + 999)
    assert soon == Step(login, SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE))
    assert login.handshake("PLAIN", version=1, now_ms=NOW_MS + 1_000).login.state is State.REAUTHENTICATE


def test_a_token_that_expired_meanwhile_leaves_no_time() -> None:
    client = ScramClient(ScramMechanism.SHA_256, "token-1", "hmac-of-the-token", "client", is_by_token=True)
    first = client.evaluate(b"")
    assert first is not None
    step = agreed("SCRAM-SHA-256").authenticate(first.token, now_ms=NOW_MS, wall_ms=NOW_MS)
    assert isinstance(step.response, SaslAuthenticateResponse)
    proof = first.next.evaluate(bytes(step.response.auth_bytes))
    assert proof is not None
    step = step.login.authenticate(proof.token, now_ms=NOW_MS + 60_001, wall_ms=NOW_MS + 60_001)
    assert isinstance(step.response, SaslAuthenticateResponse)
    assert step.response.session_lifetime_ms == 0
    assert step.login.refusal(ApiKey.FETCH, NOW_MS + 60_002) is not None


@pytest.mark.parametrize("set_by_ms", [-10 * HOUR_MS, 10 * HOUR_MS])
def test_a_wall_clock_that_is_set_ends_no_session_and_keeps_none_alive(set_by_ms: int) -> None:
    """Only what a credential is dated by is of the wall clock, and only at the moment of the login."""
    step = agreed(settings=RENEWED).authenticate(PLAIN_ALICE, now_ms=NOW_MS, wall_ms=NOW_MS + set_by_ms)
    assert isinstance(step.response, SaslAuthenticateResponse)
    assert step.response.session_lifetime_ms == HOUR_MS
    assert step.login.session is not None
    assert step.login.session.expires_ms == NOW_MS + HOUR_MS


def test_a_token_ends_its_session_by_what_is_left_of_it() -> None:
    client = ScramClient(ScramMechanism.SHA_256, "token-1", "hmac-of-the-token", "client", is_by_token=True)
    first = client.evaluate(b"")
    assert first is not None
    step = agreed("SCRAM-SHA-256").authenticate(first.token, now_ms=7, wall_ms=NOW_MS)
    assert isinstance(step.response, SaslAuthenticateResponse)
    proof = first.next.evaluate(bytes(step.response.auth_bytes))
    assert proof is not None
    step = step.login.authenticate(proof.token, now_ms=1_007, wall_ms=NOW_MS + 1_000)
    assert step.login.session is not None
    assert step.login.session.expires_ms == 60_007

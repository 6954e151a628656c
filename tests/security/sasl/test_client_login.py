"""A client's login: what it sends, when it is content, what it says when it is refused, and when it logs in again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moldau.core.errors import ErrorCode
from moldau.security.jaas import InvalidJaasConfig, login_module
from moldau.security.sasl.client_credentials import jaas_credentials
from moldau.security.sasl.client_login import Asking, Authenticated, ClientCredentials, LoginFailed, begin_login
from moldau.security.sasl.login import Login, LoginSettings
from moldau.security.sasl.oauthbearer.jwks import JwtValidator, read_jwks
from moldau.security.sasl.oauthbearer.server import OAuthBearerServer
from moldau.security.sasl.plain import PlainServer
from moldau.security.sasl.scram.credential import ScramMechanism
from moldau.security.sasl.scram.server import ScramServer
from moldau.wire.api import ApiKey
from moldau.wire.codec import decode, encode_parts
from moldau.wire.frame import has_flexible_header, response_parts
from moldau.wire.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from moldau.wire.request_header import read_request_header
from moldau.wire.schema import Message
from tests.security.sasl.exchanges import FAKES, NOW_MS, Credentials
from tests.security.sasl.test_plain import Passwords
from tests.security.sasl.tokens import jwk, jwks, token

HOUR_MS = 3_600_000
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
SETTINGS = LoginSettings(
    {
        "PLAIN": lambda: PlainServer(Passwords()),
        "SCRAM-SHA-256": lambda: ScramServer(ScramMechanism.SHA_256, Credentials(), FAKES, "nonce"),
        "SCRAM-SHA-512": lambda: ScramServer(ScramMechanism.SHA_512, Credentials(), FAKES, "nonce"),
        "OAUTHBEARER": lambda: OAuthBearerServer(JwtValidator(read_jwks(jwks(jwk())))),
    }
)


def credentials(mechanism: str, user: str = "alice", password: str = "alice-secret") -> ClientCredentials:
    module = login_module(f'{MODULES[mechanism]} required username="{user}" password="{password}";', mechanism)
    return jaas_credentials(mechanism, module, bearer_token=token)


class Server:
    """A broker's half of one connection."""

    def __init__(self, settings: LoginSettings = SETTINGS) -> None:
        self.login = Login(settings)
        self.now_ms = NOW_MS

    def answer(self, frame: bytes) -> memoryview:
        view = memoryview(frame)[4:]
        header, at = read_request_header(view)
        assert self.login.refusal(header.api_key, self.now_ms) is None
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            mechanism = decode(SaslHandshakeRequest, header.api_version, view, at)[0].mechanism
            step = self.login.handshake(mechanism, version=header.api_version, now_ms=self.now_ms)
        else:
            token = decode(SaslAuthenticateRequest, header.api_version, view, at)[0].auth_bytes
            step = self.login.authenticate(token, now_ms=self.now_ms, wall_ms=self.now_ms)
        self.login = step.login
        assert step.response is not None
        return framed(step.response, header.api_version, header.correlation_id)


def framed(response: Message, version: int, correlation_id: int = 0) -> memoryview:
    is_flexible = has_flexible_header(type(response), version)
    parts = response_parts(correlation_id, encode_parts(response, version), is_flexible=is_flexible)
    return memoryview(b"".join(parts))[4:]


def logged_in(server: Server, who: ClientCredentials) -> Authenticated:
    asking: Asking | Authenticated = begin_login(who, client_id="broker-1")
    while isinstance(asking, Asking):
        asking = asking.answered(server.answer(asking.frame))
    return asking


def after_handshake(who: ClientCredentials) -> Asking:
    asking = begin_login(who, client_id=None).answered(framed(SaslHandshakeResponse(), 1))
    assert isinstance(asking, Asking)
    return asking


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_makes_the_user_known_to_the_server(mechanism: str) -> None:
    server = Server()
    assert logged_in(server, credentials(mechanism)) == Authenticated(session_lifetime_ms=None)
    assert server.login.principal.name == "alice"


def test_a_login_by_token() -> None:
    server = Server()
    logged_in(server, credentials("OAUTHBEARER"))
    assert server.login.is_complete


def test_each_frame_of_a_login_has_another_correlation_id() -> None:
    server, ids = Server(), []
    asking: Asking | Authenticated = begin_login(credentials("SCRAM-SHA-256"), client_id="broker-1")
    while isinstance(asking, Asking):
        ids.append(asking.correlation_id)
        asking = asking.answered(server.answer(asking.frame))
    assert ids == [0, 1, 2]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_told_in_the_servers_words(mechanism: str) -> None:
    with pytest.raises(LoginFailed, match="Authentication failed") as failed:
        logged_in(Server(), credentials(mechanism, password="not-the-one"))
    assert "not-the-one" not in str(failed.value)


def test_a_token_that_is_refused_is_told() -> None:
    who = jaas_credentials(
        "OAUTHBEARER", login_module(f"{MODULES['OAUTHBEARER']} required;", "OAUTHBEARER"), bearer_token=lambda: "a.b.c"
    )
    with pytest.raises(LoginFailed, match="invalid_token"):
        logged_in(Server(), who)


def test_a_mechanism_that_is_not_enabled_is_told_with_those_that_are() -> None:
    server = Server(LoginSettings({"PLAIN": SETTINGS.mechanisms["PLAIN"]}))
    with pytest.raises(LoginFailed, match="SASL SCRAM-SHA-256: the mechanism is not enabled there; enabled are PLAIN"):
        logged_in(server, credentials("SCRAM-SHA-256"))


def test_a_server_that_does_not_know_the_password_is_no_server() -> None:
    """Anybody can say yes; SCRAM has the server prove that it knows the user."""
    asking = after_handshake(credentials("SCRAM-SHA-256"))
    with pytest.raises(LoginFailed, match="SCRAM-SHA-256"):
        asking.answered(framed(SaslAuthenticateResponse(auth_bytes=b"r=other,s=c2FsdA==,i=4096"), 2))


@pytest.mark.parametrize("frame", [b"", b"\0\0\0\0", b"\0\0\0\0\0\0\0\0\0", b"HTTP/1.1 400 Bad Request"])
def test_an_answer_that_is_none_fails_the_login(frame: bytes) -> None:
    with pytest.raises(LoginFailed):
        after_handshake(credentials("PLAIN")).answered(memoryview(frame))


def test_words_of_a_server_neither_fill_nor_end_a_line() -> None:
    told = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, "no\r\nINFO all is well\x1b[0m" + "x" * 9_000)
    with pytest.raises(LoginFailed) as failed:
        after_handshake(credentials("PLAIN")).answered(framed(told, 2))
    assert str(failed.value).isprintable()
    assert len(str(failed.value)) <= 520


def test_a_session_with_an_end_is_renewed_on_its_connection_before_it() -> None:
    server = Server(replace(SETTINGS, connections_max_reauth_ms={"SCRAM-SHA-256": HOUR_MS}))
    who = credentials("SCRAM-SHA-256")
    session = logged_in(server, who)
    assert session.session_lifetime_ms == HOUR_MS
    assert [session.reauthenticate_after_ms(chance) for chance in (0.0, 1.0)] == [HOUR_MS * 85 // 100, 3_420_000]
    server.now_ms += 3_000_000
    assert logged_in(server, who).session_lifetime_ms == HOUR_MS
    assert server.login.principal.name == "alice"


def test_a_session_without_an_end_is_not_renewed() -> None:
    assert Authenticated(None).reauthenticate_after_ms(0.5) is None


@pytest.mark.parametrize(
    ("mechanism", "options", "why"),
    [
        ("PLAIN", 'password="p"', "username is not set"),
        ("SCRAM-SHA-512", 'username="u"', "password is not set"),
        ("PLAIN", 'username="u\\000" password="p"', "NUL"),
        ("OAUTHBEARER", "", "needs a token"),
    ],
)
def test_a_login_module_that_lacks_something_says_what(mechanism: str, options: str, why: str) -> None:
    module = login_module(f"{MODULES[mechanism]} required {options};", mechanism)
    with pytest.raises(InvalidJaasConfig, match=why):
        jaas_credentials(mechanism, module)


def test_a_mechanism_without_a_clients_half_is_refused() -> None:
    module = login_module(f'{MODULES["PLAIN"]} required username="a" password="b";', "PLAIN")
    with pytest.raises(InvalidJaasConfig, match="DIGEST-MD5 is unknown; expected one of PLAIN"):
        jaas_credentials("DIGEST-MD5", module)


def test_a_password_is_in_no_repr() -> None:
    who = credentials("PLAIN", password="hunter2")
    asking = after_handshake(who)
    assert "hunter2" not in repr(who) + repr(asking) + repr(who.begin("b1"))

"""Any bytes, and messages with a few bytes changed: only the declared errors may come out of a parser."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.security.principals import ANONYMOUS
from moldau.security.sasl.login import Login, LoginSettings
from moldau.security.sasl.mechanism import SaslError
from moldau.security.sasl.oauthbearer.jwks import InvalidJwks, JwtValidator, read_jwks
from moldau.security.sasl.oauthbearer.messages import read_client_initial_response
from moldau.security.sasl.oauthbearer.token import ClaimRules, InvalidToken
from moldau.security.sasl.plain import PlainServer
from moldau.security.sasl.saslname import from_saslname, to_saslname
from moldau.security.sasl.scram.client import ScramClient
from moldau.security.sasl.scram.credential import ScramMechanism
from moldau.security.sasl.scram.messages import (
    read_client_final,
    read_client_first,
    read_server_final,
    read_server_first,
)
from moldau.security.sasl.scram.server import ScramServer
from moldau.wire.api import ApiKey
from tests.security.sasl.exchanges import FAKES, NOW_MS, challenge
from tests.security.sasl.test_login import ALICE, PLAIN_ALICE, RENEWED, SETTINGS
from tests.security.sasl.test_plain import Passwords
from tests.security.sasl.test_scram import (
    RFC_CLIENT_FINAL,
    RFC_CLIENT_FIRST,
    RFC_SERVER_FINAL,
    RFC_SERVER_FIRST,
    RfcCredentials,
    rfc_server,
)
from tests.security.sasl.tokens import jwk, jwks, token

PIECES = [b"n,", b"=", b"a=", b"n=", b"r=", b"p=", b"c=", b"s=", b"i=", b"v=", b"e=", b"m=", b"=2C", b"biws", b"4096",
          b",", b"\x01", b"\0", b"\xff", b"\xc5\xbe", b"auth=Bearer ", b"tokenauth=true", b"x", b"."]  # fmt: skip
SEEDS = [
    RFC_CLIENT_FIRST,
    RFC_SERVER_FIRST,
    RFC_CLIENT_FINAL,
    RFC_SERVER_FINAL,
    b"\0alice\0alice-secret",
    b"n,a=alice,\x01auth=Bearer abc.def.ghi\x01host=x\x01\x01",
]


@st.composite
def changed(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    raw = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(raw)))
        raw[at : at + draw(st.integers(0, 3))] = draw(st.sampled_from(PIECES) | st.binary(max_size=3))
    return bytes(raw)


messages = st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join) | changed(SEEDS)


def waiting_for_proof(response: bytes) -> object:
    return challenge(rfc_server(), RFC_CLIENT_FIRST).next.evaluate(response, NOW_MS)


def waiting_for_salt(message: bytes) -> object:
    first = ScramClient(ScramMechanism.SHA_256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO").evaluate(b"")
    assert first is not None
    return first.next.evaluate(message)


@pytest.mark.parametrize(
    "read",
    [
        read_client_first,
        read_server_first,
        read_client_final,
        read_server_final,
        read_client_initial_response,
        lambda raw: PlainServer(Passwords()).evaluate(raw, NOW_MS),
        lambda raw: ScramServer(ScramMechanism.SHA_512, RfcCredentials(), FAKES, "n").evaluate(raw, NOW_MS),
        waiting_for_proof,
        waiting_for_salt,
    ],
    ids=[
        "client first",
        "server first",
        "client final",
        "server final",
        "oauthbearer",
        "plain",
        "scram",
        "proof",
        "salt",
    ],
)
@settings(max_examples=300, deadline=None)
@given(raw=messages)
def test_a_message_is_read_or_refused(read: Callable[[bytes], object], raw: bytes) -> None:
    with suppress(SaslError):
        read(raw)


VALIDATOR = JwtValidator(read_jwks(jwks(jwk(), jwk("ES256"))), ClaimRules())
TOKENS = [token().encode(), token("ES256").encode(), b"eyJhbGciOiJub25lIn0.e30.", b"W10.W10.AAAA"]


@settings(max_examples=300, deadline=None)
@given(raw=messages | changed(TOKENS))
def test_a_token_is_refused_whatever_was_changed(raw: bytes) -> None:
    text = raw.decode(errors="replace")
    if text.encode() in TOKENS[:2]:
        return
    with pytest.raises(InvalidToken):
        VALIDATOR.validate(text, NOW_MS)


@settings(max_examples=200, deadline=None)
@given(raw=st.binary(max_size=40) | changed([jwks(jwk()), jwks(jwk("ES256"))]))
def test_keys_are_read_or_refused(raw: bytes) -> None:
    with suppress(InvalidJwks):
        read_jwks(raw)


@pytest.mark.parametrize("raw", [b"[" * 100_000, b'{"a":' * 50_000, b"9" * 10_000, b'{"keys":[1e999999]}', b"\xff\xfe"])
def test_json_that_is_made_to_hurt(raw: bytes) -> None:
    with pytest.raises(InvalidJwks):
        read_jwks(raw)


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1))
def test_a_name_survives_its_escapes(name: str) -> None:
    assert from_saslname(to_saslname(name)) == name
    assert "," not in to_saslname(name)


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[ApiKey, int, bytes]]:
    """Frames of a client that keeps to no order: an api key, a version and what stands in the request."""
    keys = [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA]
    contents = st.sampled_from(
        [b"PLAIN", b"SCRAM-SHA-256", b"GSSAPI", PLAIN_ALICE, b"\0alice\0wrong", RFC_CLIENT_FIRST]
    )
    frames = st.tuples(st.sampled_from(keys), st.integers(0, 2), contents | messages)
    good = [(ApiKey.SASL_HANDSHAKE, 1, b"PLAIN"), (ApiKey.SASL_AUTHENTICATE, 2, PLAIN_ALICE)]
    return [
        *draw(st.lists(frames, max_size=3)),
        *draw(st.sampled_from([[], good])),
        *draw(st.lists(frames, max_size=5)),
    ]


def answered(login: Login, frame: tuple[ApiKey, int, bytes], now_ms: int) -> Login | None:
    """As a connection would; None once it is closed."""
    key, version, content = frame
    if login.takes_raw_tokens:
        step = login.raw_token(content, now_ms=now_ms, wall_ms=now_ms)
    elif login.refusal(key, now_ms) is not None:
        assert not login.refused().is_complete
        return None
    elif key == ApiKey.SASL_HANDSHAKE:
        step = login.handshake(content.decode(errors="replace"), version=min(version, 1), now_ms=now_ms)
    elif key == ApiKey.SASL_AUTHENTICATE:
        step = login.authenticate(content, now_ms=now_ms, wall_ms=now_ms)
    else:
        assert login.is_complete or key == ApiKey.API_VERSIONS
        return login.versions_told() if key == ApiKey.API_VERSIONS else login
    if step.failure is not None:
        assert not step.login.is_complete
        return None
    if step.login.is_complete and not login.is_complete:
        assert content == PLAIN_ALICE, "nothing but the password lets anybody in"
    return step.login


@pytest.mark.parametrize("settings_of_listener", [SETTINGS, RENEWED], ids=["without end", "with an end"])
@settings(max_examples=300, deadline=None)
@given(frames=conversations())
def test_no_order_of_requests_gets_past_a_login(
    settings_of_listener: LoginSettings, frames: list[tuple[ApiKey, int, bytes]]
) -> None:
    login: Login | None = Login(settings_of_listener)
    for number, frame in enumerate(frames):
        login = answered(login, frame, NOW_MS + number * 700) if login is not None else None
        if login is not None:
            assert login.principal == (ANONYMOUS if login.session is None else ALICE)

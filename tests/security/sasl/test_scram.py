"""SCRAM against the RFC's own exchange, other implementations, and clients that cheat."""

from __future__ import annotations

import asyncio
import base64
import warnings
from typing import Any

import pytest
from aiokafka.conn import ScramAuthenticator

from moldau.security.sasl.mechanism import Challenge, Response, SaslAuthenticationError, SaslError, Success
from moldau.security.sasl.scram.client import ScramClient
from moldau.security.sasl.scram.credential import ScramCredential, ScramMechanism
from moldau.security.sasl.scram.keys import (
    FakeCredentials,
    Shape,
    client_key,
    make_credential,
    salted_password,
    shape_of,
)
from moldau.security.sasl.scram.server import ScramServer
from tests.security.sasl.exchanges import (
    FAKES,
    NOW_MS,
    PASSWORDS,
    SALT,
    Credentials,
    Tokens,
    challenge,
    made_credential,
    run,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python has deprecated
    from kafka.net.sasl.scram import SaslMechanismScram

SHA_256 = ScramMechanism.SHA_256
MECHANISMS = pytest.mark.parametrize("mechanism", list(ScramMechanism), ids=lambda each: each.mechanism_name)

# RFC 7677, section 3.
RFC_CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
RFC_SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
RFC_CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
RFC_SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
RFC_CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
RFC_SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


class RfcCredentials:
    def lookup(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return made_credential(mechanism, "pencil", salt=RFC_SALT, iterations=4096) if user == "user" else None


def rfc_server() -> ScramServer:
    return ScramServer(SHA_256, RfcCredentials(), FAKES, RFC_SERVER_NONCE)


def server(mechanism: ScramMechanism = SHA_256, **changes: Any) -> ScramServer:
    return ScramServer(mechanism, changes.pop("credentials", Credentials()), FAKES, "server-nonce", **changes)


def client(user: str = "alice", password: str | None = None, mechanism: ScramMechanism = SHA_256) -> ScramClient:
    return ScramClient(mechanism, user, PASSWORDS[user] if password is None else password, "client-nonce")


def test_the_exchange_of_the_rfc_byte_by_byte() -> None:
    first = ScramClient(SHA_256, "user", "pencil", RFC_CLIENT_NONCE).evaluate(b"")
    assert first is not None
    assert first.token == RFC_CLIENT_FIRST
    asked = challenge(rfc_server(), first.token)
    assert asked.token == RFC_SERVER_FIRST
    proof = first.next.evaluate(asked.token)
    assert proof is not None
    assert proof.token == RFC_CLIENT_FINAL
    assert asked.next.evaluate(proof.token, NOW_MS) == Success("user", RFC_SERVER_FINAL)
    assert proof.next.evaluate(RFC_SERVER_FINAL) is None


@MECHANISMS
@pytest.mark.parametrize("user", PASSWORDS)
def test_both_halves_agree(mechanism: ScramMechanism, user: str) -> None:
    assert run(client(user, mechanism=mechanism), server(mechanism)).user == user


@MECHANISMS
@pytest.mark.parametrize("user", ["alice", "žofie"])  # it does not escape a comma
def test_kafka_pythons_client_logs_in(mechanism: ScramMechanism, user: str) -> None:
    theirs = SaslMechanismScram(
        sasl_plain_username=user, sasl_plain_password=PASSWORDS[user], sasl_mechanism=mechanism.mechanism_name
    )
    asked = challenge(server(mechanism), theirs.auth_bytes())
    theirs.receive(asked.token)
    success = asked.next.evaluate(theirs.auth_bytes(), NOW_MS)
    assert isinstance(success, Success)
    theirs.receive(success.token)
    assert theirs.is_authenticated()
    assert success.user == user


@MECHANISMS
@pytest.mark.parametrize("user", PASSWORDS)
def test_aiokafkas_client_logs_in(mechanism: ScramMechanism, user: str) -> None:
    loop = asyncio.new_event_loop()
    try:
        theirs = ScramAuthenticator(
            loop=loop,
            sasl_plain_username=user,
            sasl_plain_password=PASSWORDS[user],
            sasl_mechanism=mechanism.mechanism_name,
        ).authenticator_scram()
        asked = challenge(server(mechanism), next(theirs)[0])
        success = asked.next.evaluate(theirs.send(asked.token)[0], NOW_MS)
        assert isinstance(success, Success)
        with pytest.raises(StopIteration):
            theirs.send(success.token)
    finally:
        loop.close()
    assert success.user == user


def test_a_wrong_password_and_an_unknown_user_fail_at_the_same_step_with_the_same_shape() -> None:
    with pytest.raises(SaslError, match="Invalid client credentials"):
        run(client(password="wrong"), server())
    with pytest.raises(SaslError, match="Invalid user credentials"):
        run(client("nobody", "wrong"), server())
    known, unknown = (challenge(server(), f"n,,n={user},r=x".encode()).token for user in ("alice", "nobody"))
    assert len(known) == len(unknown)
    assert unknown.startswith(b"r=xserver-nonce,s=")
    assert unknown.endswith(b",i=4096")


@MECHANISMS
def test_a_made_up_credential_is_the_same_at_each_login_and_another_for_each_name(mechanism: ScramMechanism) -> None:
    again = FakeCredentials(FAKES.secret)
    names = ("nobody", "somebody", "")
    assert [FAKES.credential(name, mechanism) for name in names] == [
        again.credential(name, mechanism) for name in names
    ]
    assert len({FAKES.credential(name, mechanism).salt for name in names}) == 3
    assert FakeCredentials(b"other").credential("nobody", mechanism) != FAKES.credential("nobody", mechanism)
    assert len(FAKES.credential("nobody", mechanism).stored_key) == mechanism.key_bytes


@MECHANISMS
def test_another_shape_takes_its_share_of_made_up_users_and_changes_nobody_else(mechanism: ScramMechanism) -> None:
    shapes = (Shape(0, 4096), Shape(32, 4096), Shape(0, 8192), Shape(64, 4096), Shape(32, 5000))
    names = [f"user-{number}" for number in range(400)]

    def made(count: int) -> list[ScramCredential]:
        fakes = FakeCredentials(FAKES.secret, {mechanism: tuple(sorted(shapes[:count]))})
        return [fakes.credential(name, mechanism) for name in names]

    before = made(1)
    for count in range(2, len(shapes) + 1):
        after = made(count)
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        assert {shape_of(new) for _, new in changed} == {shapes[count - 1]}
        assert 0.6 < len(changed) * count / len(names) < 1.5
        assert not any(new.salt[:8] == old.salt[:8] for old, new in changed), "a new password has a new salt"
        before = after


def final(asked: Challenge, password: str, *, nonce: bytes | None = None, header: bytes = b"biws") -> bytes:
    """An honest client's last message but for what is changed."""
    made = client(password=password)
    first = made.evaluate(b"")
    assert first is not None
    response = first.next.evaluate(asked.token)
    assert isinstance(response, Response)
    return response.token.replace(b"c=biws", b"c=" + header).replace(
        b"client-nonceserver-nonce", nonce or b"client-nonceserver-nonce"
    )


@pytest.mark.parametrize(
    "nonce", [b"client-nonce", b"server-nonce", b"xclient-nonceserver-nonce", b"client-nonceserver-nonce1"]
)
def test_the_nonce_must_be_the_one_of_this_exchange(nonce: bytes) -> None:
    asked = challenge(server(), b"n,,n=alice,r=client-nonce")
    with pytest.raises(SaslError, match="nonce"):
        asked.next.evaluate(final(asked, PASSWORDS["alice"], nonce=nonce), NOW_MS)
    assert isinstance(asked.next.evaluate(final(asked, PASSWORDS["alice"]), NOW_MS), Success)


def test_the_header_can_not_be_changed_under_way() -> None:
    asked = challenge(server(), b"y,,n=alice,r=client-nonce")
    with pytest.raises(SaslError, match="channel binding"):
        asked.next.evaluate(final(asked, PASSWORDS["alice"]), NOW_MS)


def test_a_proof_of_another_length_is_refused() -> None:
    asked = challenge(server(), b"n,,n=alice,r=client-nonce")
    with pytest.raises(SaslError, match="Invalid client credentials"):
        asked.next.evaluate(b"c=biws,r=client-nonceserver-nonce,p=" + base64.b64encode(bytes(31)), NOW_MS)


def test_the_authorization_id_may_only_be_the_user() -> None:
    told = "Authentication failed: Client requested an authorization id that is different from username"
    for user in ("alice", "nobody"):
        with pytest.raises(SaslAuthenticationError, match=told):
            server().evaluate(f"n,a=admin,n={user},r=x".encode(), NOW_MS)
    assert challenge(server(), b"n,a=alice,n=alice,r=x")


def test_a_delegation_token_logs_in_for_its_owner_until_it_ends() -> None:
    by_token = ScramClient(SHA_256, "token-1", "hmac-of-the-token", "client-nonce", is_by_token=True)
    success = run(by_token, server(tokens=Tokens()))
    assert (success.user, success.is_by_token, success.credential_expires_ms) == ("alice", True, NOW_MS + 60_000)
    for tokens in (Tokens(NOW_MS), None):
        with pytest.raises(SaslError, match="Invalid user credentials"):
            run(by_token, server(tokens=tokens))


def test_a_token_is_no_user_and_a_user_no_token() -> None:
    class TokenAsUser:
        def lookup(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
            raise AssertionError("users are not looked up for a token")

    with pytest.raises(SaslError, match="Invalid user credentials"):
        run(
            ScramClient(SHA_256, "alice", PASSWORDS["alice"], "n", is_by_token=True),
            server(tokens=Tokens(), credentials=TokenAsUser()),
        )
    with pytest.raises(SaslError, match="Invalid user credentials"):
        run(ScramClient(SHA_256, "token-1", "hmac-of-the-token", "n"), server(tokens=Tokens()))


def test_a_credential_with_too_few_iterations_is_not_used() -> None:
    with pytest.raises(SaslError, match="less than the minimum"):
        server(credentials=Credentials(iterations=4095)).evaluate(b"n,,n=alice,r=x", NOW_MS)


@pytest.mark.parametrize(
    "answer",
    [
        b"r=other,s=YQ==,i=4096",
        b"r=client-nonce,s=YQ==,i=4096",
        b"r=client-nonce1,s=YQ==,i=4095",
        b"r=client-nonce1,s=YQ==,i=16385",
        b"r=client-nonce1,s=YQ==,i=9999999999",
        b"r=client-nonce1,s=YQ==,i=-1",
        b"r=client-nonce1,s=Y,i=4096",
        b"m=x,r=client-nonce1,s=YQ==,i=4096",
        b"",
    ],
)
def test_a_client_gives_no_proof_to_a_server_that_cheats(answer: bytes) -> None:
    first = client().evaluate(b"")
    assert first is not None
    with pytest.raises(SaslError):
        first.next.evaluate(answer)


@pytest.mark.parametrize("answer", [b"v=AAAA", b"e=other-error", b"v=", b"x", b"\xff"])
def test_a_client_does_not_trust_a_server_without_the_signature(answer: bytes) -> None:
    first = client().evaluate(b"")
    assert first is not None
    proof = first.next.evaluate(challenge(server(), first.token).token)
    assert proof is not None
    with pytest.raises(SaslError):
        proof.next.evaluate(answer)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"p=tls-unique,,n=alice,r=x",
        b"n,alice,n=alice,r=x",
        b"n,a=,n=alice,r=x",
        b"n,,n=,r=x",
        b"n,,n=al=ice,r=x",
        b"n,,n=alice=2c,r=x",
        b"n,,n=al\0ice,r=x",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=a b",
        b"n,,n=alice",
        b"n,,m=must,n=alice,r=x",
        b"n,,n=alice,r=x,tokenauth",
        b"n,,n=alice,r=x,tokenauth=true,tokenauth=false",
        b"n,,n=alice,r=x,",
        b"n,,n=\xff,r=x",
    ],
)
def test_what_the_grammar_does_not_have_is_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        server().evaluate(message, NOW_MS)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"n,,n=" + b"=2C" * 100_000 + b",r=x", "at most 8192 are allowed"),
        (b"n,,n=alice,r=x" + b"".join(b",%s=1" % (b"e" * size) for size in range(1, 100)), "more than 32 fields"),
    ],
    ids=["long", "many fields"],
)
def test_nobody_keeps_the_loop_reading_before_a_login(message: bytes, reason: str) -> None:
    with pytest.raises(SaslError, match=reason):
        server().evaluate(message, NOW_MS)


def test_a_made_up_salt_looks_like_those_of_kafkas_tools() -> None:
    """130 bits in base 36: the longest begin with 1, and more than half are a character shorter."""
    salts = [FAKES.credential(f"user {number}", SHA_256).salt for number in range(400)]
    assert {len(salt) for salt in salts} >= {25, 26}
    assert {salt[:1] for salt in salts if len(salt) == 26} == {b"1"}
    assert all(int(salt, 36) < 1 << 130 for salt in salts)


def test_nothing_secret_is_shown() -> None:
    secrets = (PASSWORDS["alice"], "client-nonce", "server-nonce")
    credential = make_credential(SHA_256, PASSWORDS["alice"], salt=SALT, iterations=4096)
    assert repr(credential) == "ScramCredential(iterations=4096)"
    shown = repr((client(), server(credentials=None), credential, FAKES))
    assert not [secret for secret in (*secrets, FAKES.secret.decode()) if secret in shown]


def test_keys_are_pbkdf2_and_hmac() -> None:
    salted = salted_password(SHA_256, "pencil", RFC_SALT, 4096)
    assert len(salted) == len(client_key(SHA_256, salted)) == 32

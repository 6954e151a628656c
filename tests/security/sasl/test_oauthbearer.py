"""OAUTHBEARER: the messages of RFC 7628, and tokens that are signed, forged, expired or meant for others."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from moldau.security.sasl.mechanism import Challenge, SaslAuthenticationError, SaslError, Success
from moldau.security.sasl.oauthbearer.client import OAuthBearerClient
from moldau.security.sasl.oauthbearer.jwks import InvalidJwks, JwtValidator, read_jwks
from moldau.security.sasl.oauthbearer.messages import (
    ClientInitialResponse,
    read_client_initial_response,
    write_client_initial_response,
    write_error,
)
from moldau.security.sasl.oauthbearer.server import OAuthBearerServer
from moldau.security.sasl.oauthbearer.token import BearerToken, ClaimRules, InvalidToken
from tests.security.sasl.exchanges import NOW_MS, run
from tests.security.sasl.tokens import ALGORITHMS, NOW_S, jwk, jwks, private_key, token

EXPIRES_MS = NOW_MS + 600_000


def validator(*keys: dict[str, Any], **rules: Any) -> JwtValidator:
    return JwtValidator(read_jwks(jwks(*(keys or (jwk(),)))), ClaimRules(**rules))


def refusal(text: str, **rules: Any) -> str:
    with pytest.raises(InvalidToken) as refused:
        validator(**rules).validate(text, NOW_MS)
    return str(refused.value)


def section(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


# The exchange.


def test_the_first_message_of_the_rfc() -> None:
    message = (
        b"n,a=user@example.com,\x01host=server.example.com\x01port=143\x01"
        b"auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\x01\x01"
    )
    assert read_client_initial_response(message) == ClientInitialResponse(
        "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==",
        "user@example.com",
        {"host": "server.example.com", "port": "143"},
    )


def test_both_halves_agree() -> None:
    client = OAuthBearerClient(token(), {"logicalCluster": "lkc-1"})
    success = run(client, OAuthBearerServer(validator()))
    assert success == Success("alice", credential_expires_ms=EXPIRES_MS, extensions={"logicalCluster": "lkc-1"})


def test_a_refusal_is_json_which_the_client_acknowledges() -> None:
    server = OAuthBearerServer(validator())
    first = OAuthBearerClient(token(exp=NOW_S - 60, iat=NOW_S - 120)).evaluate(b"")
    assert first is not None
    refused = server.evaluate(first.token, NOW_MS)
    assert isinstance(refused, Challenge)
    assert refused.token == b'{"status":"invalid_token"}'
    acknowledged = first.next.evaluate(refused.token)
    assert acknowledged is not None
    assert acknowledged.token == b"\x01"
    with pytest.raises(
        SaslAuthenticationError, match="Could not validate the access token: the token expired"
    ) as failed:
        refused.next.evaluate(acknowledged.token, NOW_MS)
    assert failed.value.told == '{"status":"invalid_token"}'
    with pytest.raises(SaslError, match="the server refused the token"):
        acknowledged.next.evaluate(b"")


def test_after_a_refusal_a_good_token_comes_too_late() -> None:
    server = OAuthBearerServer(validator())
    refused = server.evaluate(b"n,,\x01auth=Bearer x\x01\x01", NOW_MS)
    assert isinstance(refused, Challenge)
    with pytest.raises(SaslAuthenticationError):
        refused.next.evaluate(f"n,,\x01auth=Bearer {token()}\x01\x01".encode(), NOW_MS)


def test_the_authorization_id_may_only_be_the_tokens_principal() -> None:
    server = OAuthBearerServer(validator())
    assert isinstance(server.evaluate(f"n,a=alice,\x01auth=bearer  {token()}\x01\x01".encode(), NOW_MS), Success)
    with pytest.raises(SaslAuthenticationError, match=r"authorization id \(admin\) .* principal name \(alice\)"):
        server.evaluate(f"n,a=admin,\x01auth=Bearer {token()}\x01\x01".encode(), NOW_MS)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer t\x01",
        b"n,,auth=Bearer t\x01\x01",
        b"y,,\x01auth=Bearer t\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer t\x01\x01",
        b"n,,,\x01auth=Bearer t\x01\x01",
        b"n,x=1,\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Basic t\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer t\x01auth=Bearer u\x01\x01",
        b"n,,\x01auth=Bearer t\x01x=1\x01x=2\x01\x01",
        b"n,,\x01auth=Bearer t\x01x1=1\x01\x01",
        b"n,,\x01auth=Bearer t\x01x=\x01\x01",
        b"n,,\x01auth=Bearer t\x01x=\x7f\x01\x01",
        b"n,,\x01auth=Bearer t\x01\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
    ],
)
def test_what_the_grammar_does_not_have_is_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        read_client_initial_response(message)


@pytest.mark.parametrize(
    ("extensions", "reason"),
    [
        (b"x=" + b"1" * 100_000 + b"\x01", "at most 65536 are allowed"),
        (b"".join(b"%s=1\x01" % (b"x" * size) for size in range(1, 33)), "more than 32 pairs"),
    ],
    ids=["long", "many pairs"],
)
def test_a_message_is_bounded_before_it_is_read(extensions: bytes, reason: str) -> None:
    with pytest.raises(SaslError, match=reason):
        read_client_initial_response(b"n,,\x01auth=Bearer t\x01" + extensions + b"\x01")


def test_as_many_extensions_as_are_allowed_are_read() -> None:
    extensions = {"x" * size: "1" for size in range(1, 32)}
    pairs = "".join(f"{name}={value}\x01" for name, value in extensions.items())
    assert read_client_initial_response(f"n,,\x01auth=Bearer t\x01{pairs}\x01".encode()).extensions == extensions


@pytest.mark.parametrize("extensions", [{"auth": "x"}, {"a1": "x"}, {"a": ""}, {"a": "ž"}, {"a": "\x01b=c"}])
def test_a_client_sends_no_extension_that_could_be_misread(extensions: dict[str, str]) -> None:
    with pytest.raises(SaslError):
        write_client_initial_response(ClientInitialResponse("token", extensions=extensions))


def test_an_error_may_name_the_scope_that_is_missing() -> None:
    assert write_error("insufficient_scope", scope="kafka") == b'{"status":"insufficient_scope", "scope":"kafka"}'


# Signatures.


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_is_taken_by_each_algorithm(algorithm: str) -> None:
    taken = validator(jwk(algorithm)).validate(token(algorithm), NOW_MS)
    assert taken == BearerToken("alice", frozenset({"kafka"}), EXPIRES_MS, NOW_MS - 10_000)


def test_the_signature_of_the_rfc() -> None:
    """RFC 7515, appendix A.3: it is signed, and then found to have no iat."""
    rfc = validator(
        {
            "kty": "EC",
            "crv": "P-256",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        }
    )
    signed = (
        "eyJhbGciOiJFUzI1NiJ9."
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
    )
    with pytest.raises(InvalidToken, match="iat is missing"):
        rfc.validate(signed, 1_300_819_000_000)
    with pytest.raises(InvalidToken, match="signature"):
        rfc.validate(signed.replace("Ds", "Dt")[:-2] + "1g", 1_300_819_000_000)


def test_an_unsigned_token_is_refused() -> None:
    claims = token().split(".")[1]
    for algorithm in ("none", "None", "NONE", ""):
        header = section({"alg": algorithm})
        assert refusal(f"{header}.{claims}.") == "not a JWT: three sections, none of them empty, are expected"
        assert "the algorithm is not one of" in refusal(f"{header}.{claims}.AAAA")
    assert "three sections" in refusal(f"{section({'alg': 'RS256'})}.{claims}")


def test_a_public_key_is_no_shared_secret() -> None:
    import hashlib
    import hmac

    pem = private_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for name, digest in (("HS256", hashlib.sha256), ("HS512", hashlib.sha512)):
        signed = f"{section({'alg': name})}.{token().split('.')[1]}"
        forged = f"{signed}.{section(hmac.digest(pem, signed.encode(), digest().name))}"
        assert "the algorithm is not one of" in refusal(forged)


def test_a_tokens_own_keys_are_not_read() -> None:
    mine = rsa.generate_private_key(65_537, 2048)
    for header in (
        {"jwk": jwk()},
        {"jku": "https://evil.example.com/keys"},
        {"x5u": "file:///etc/passwd"},
        {"kid": "../../dev/null"},
    ):
        assert "verifies the signature" in refusal(token(header=header, key=mine))


def test_extensions_that_must_be_understood_are_refused() -> None:
    assert "extensions" in refusal(token(header={"crit": ["x"], "x": 1}))


def test_a_long_header_is_not_even_decoded() -> None:
    """Its JSON is read before any signature, and that of 24 KiB took a millisecond and a half."""
    long = section({"alg": "RS256", "a": [{}] * 1_000})
    assert "a header of" in refusal(f"{long}.{section({})}.{section(b'signature')}")
    assert validator().validate(token(header={"x": "y" * 1_000}), NOW_MS)


def test_another_claim_or_header_breaks_the_signature() -> None:
    header, payload, signature = token().split(".")
    admin = section({"sub": "admin", "iat": NOW_S, "exp": NOW_S + 600})
    assert "verifies the signature" in refusal(f"{header}.{admin}.{signature}")
    assert "verifies the signature" in refusal(f"{section({'alg': 'PS256'})}.{payload}.{signature}")
    assert "verifies the signature" in refusal(f"{section({'alg': 'ES256'})}.{payload}.{signature}")


def test_the_key_is_found_by_its_id() -> None:
    keys = (jwk("ES256", kid="new"), jwk("RS256", kid="old"))
    for algorithm, key_id in (("ES256", "new"), ("RS256", "old")):
        assert validator(*keys).validate(token(algorithm, header={"kid": key_id}), NOW_MS)
    for unknown in ("other", 7, ["old"]):
        with pytest.raises(InvalidToken, match="no key that fits"):
            validator(*keys).validate(f"{section({'alg': 'RS256', 'kid': unknown})}.e30.AAAA", NOW_MS)
    assert validator(*keys).validate(token("RS256"), NOW_MS)


def test_a_key_is_used_for_what_it_is_for() -> None:
    with pytest.raises(InvalidToken, match="no key that fits"):
        validator(jwk(alg="RS512")).validate(token(), NOW_MS)
    with pytest.raises(InvalidToken, match="no key that fits"):
        validator(jwk("ES384")).validate(token("ES256"), NOW_MS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a JSON Web Key Set"),
        (b"[]", "not an object"),
        (b'{"keys": 1}', "'keys' is no list"),
        (b'{"keys": [], "keys": []}', "given twice"),
        (b"[" * 100_000, "nested too deeply"),
        (jwks(), "no key in it"),
        (jwks({"kty": "oct", "k": "c2VjcmV0"}, {"kty": "OKP"}, {}, [], 1), "no key in it"),  # type: ignore[arg-type]
        (jwks({"kty": "RSA", "use": "enc"}), "no key in it"),
        (jwks({"kty": "RSA", "key_ops": ["sign"]}), "no key in it"),
        (jwks({"kty": "RSA", "alg": "HS256"}), "no key in it"),
        (jwks({"kty": "RSA", "alg": ["RS256"]}), "no key in it"),
        (jwks({"kty": "RSA", "kid": "k", "n": "AQAB", "e": "AQAB"}), "'k'"),
        (jwks({"kty": "RSA", "kid": "k", "n": 1, "e": []}), "'k' is damaged"),
        (jwks({"kty": "EC", "kid": "k", "crv": "P-256", "x": "AA", "y": "AA"}), "'k' is damaged"),
        (jwks(*[{"kty": "RSA"}] * 101), "101 keys"),
    ],
)
def test_keys_that_can_not_be_used(data: bytes, message: str) -> None:
    with pytest.raises(InvalidJwks, match=message):
        read_jwks(data)


def test_keys_that_are_not_for_this_are_passed_over() -> None:
    assert len(read_jwks(jwks({"kty": "oct", "k": "c2VjcmV0"}, jwk(), jwk("ES256", use="enc")))) == 1


# Claims.


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"exp": NOW_S - 30}, "the token expired"),
        ({"exp": None}, "exp is missing"),
        ({"exp": "soon"}, "exp is missing or no number"),
        ({"exp": True}, "exp is missing or no number"),
        ({"exp": 1e300}, "exp is no time"),
        ({"iat": None}, "iat is missing"),
        ({"iat": NOW_S + 31}, "issued in the future"),
        ({"iat": -1}, "iat is no time"),
        ({"exp": NOW_S + 5, "iat": NOW_S + 10}, "expires before it was issued"),
        ({"nbf": NOW_S + 31}, "not valid yet"),
        ({"nbf": "x"}, "nbf is missing or no number"),
        ({"nbf": NOW_S + 20, "exp": NOW_S + 10}, "expires before it becomes valid"),
        ({"sub": None}, "sub is missing"),
        ({"sub": " "}, "sub is missing, empty or no text"),
        ({"sub": 7}, "sub is missing, empty or no text"),
        ({"scope": ["a", " a"]}, "scope has duplicates"),
        ({"scope": ["a", 1]}, "scope is missing, empty or no text"),
        ({"aud": "somebody-else"}, "audience"),
    ],
)
def test_claims_that_are_refused(claims: dict[str, Any], message: str) -> None:
    assert message in refusal(token(**claims))


def test_clocks_may_differ_by_the_skew() -> None:
    changes: list[dict[str, Any]] = [{"exp": NOW_S - 29, "iat": NOW_S - 60}, {"iat": NOW_S + 30}, {"nbf": NOW_S + 30}]
    for claims in changes:
        assert validator().validate(token(**claims), NOW_MS)
        assert refusal(token(**claims), clock_skew_ms=0)


@pytest.mark.parametrize("audience", ["kafka", ["kafka"], ["other", "kafka"]])
def test_one_of_the_audiences_must_be_meant(audience: object) -> None:
    assert validator(audiences=frozenset({"kafka", "broker"})).validate(token(aud=audience), NOW_MS)


@pytest.mark.parametrize("audience", [None, "other", [], ["other"], [7], {"kafka": 1}, 7])
def test_a_token_for_others_is_refused(audience: object) -> None:
    assert "audience" in refusal(token(aud=audience), audiences=frozenset({"kafka"}))


def test_the_issuer_must_be_the_expected_one() -> None:
    assert validator(issuer="https://idp").validate(token(iss="https://idp"), NOW_MS)
    for issuer in (None, "https://idp/", ["https://idp"]):
        assert "issuer" in refusal(token(iss=issuer), issuer="https://idp")


def test_claims_may_have_other_names() -> None:
    taken = validator(sub_claim="email", scope_claim="roles").validate(
        token(email=" alice@example.com ", roles=["a", "b"]), NOW_MS
    )
    assert (taken.principal, taken.scope) == ("alice@example.com", frozenset({"a", "b"}))


def test_a_name_given_twice_could_be_read_in_two_ways() -> None:
    import jwt

    payload = b'{"sub":"alice","sub":"admin","iat":1,"exp":9999999999}'
    assert "given twice" in refusal(jwt.PyJWS().encode(payload, private_key(), "RS256"))


def test_a_token_is_bounded_before_it_is_read() -> None:
    assert "at most 32768" in refusal("a" * 40_000)


def test_no_reason_quotes_the_token() -> None:
    assert "alice" not in refusal(token(exp=1, iat=0))
    assert token() not in repr(OAuthBearerClient(token()))

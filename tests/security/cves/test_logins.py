"""What went wrong elsewhere before and during a login, each with its number, against a running broker."""

from __future__ import annotations

import base64
import json
import socket
import struct
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from moldau.core.errors import ErrorCode
from moldau.security.sasl.scram.client import ScramClient
from moldau.security.sasl.scram.credential import ScramMechanism
from moldau.wire.messages import IncrementalAlterConfigsRequest, SaslHandshakeRequest
from moldau.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from tests.hostile.attacker import CLOSED, Attacker, framed, header
from tests.hostile.test_failed_logins import resident_mb
from tests.node.securing.secured import AUDIENCE, ISSUER, PASSWORDS, Secured
from tests.security.cves.talk import admin, begin, connected, go_on
from tests.security.sasl.tokens import jwk, private_key, token

FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
SCRAM = (ScramMechanism.SHA_256, ScramMechanism.SHA_512)
BROKER = 4  # the type of a resource of configurations
SET = 0


def first_of_scram(mechanism: ScramMechanism, user: str, password: str) -> Any:
    found = ScramClient(mechanism, user, password, "a-nonce-of-ours").evaluate(b"")
    assert found is not None
    return found


def bearer(signed: str, authzid: str = "") -> bytes:
    return f"n,{authzid},\x01auth=Bearer {signed}\x01\x01".encode()


def claims(user: str = "alice") -> dict[str, Any]:
    now_s = int(datetime.now(UTC).timestamp())
    return {"sub": user, "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + 600}


def is_let_in(secured: Secured, signed: str) -> bool:
    with connected(secured) as client:
        answer = begin(client, "OAUTHBEARER", bearer(signed))
        if answer.error_code == ErrorCode.NONE and answer.auth_bytes:  # a refusal, which has to be acknowledged
            answer = go_on(client, b"\x01")
        return bool(answer.error_code == ErrorCode.NONE)


def test_cve_2017_12610_plain_with_the_name_of_another(secured: Secured) -> None:
    with connected(secured) as client:
        assert begin(client, "PLAIN", f"bob\0alice\0{PASSWORDS['alice']}".encode()).error_code == FAILED
        assert client.answer() == CLOSED


@pytest.mark.parametrize("mechanism", SCRAM)
def test_cve_2017_12610_scram_with_the_name_of_another(mechanism: ScramMechanism, secured: Secured) -> None:
    with connected(secured) as client:
        answer = begin(client, mechanism.mechanism_name, b"n,a=bob,n=alice,r=a-nonce-of-ours")
        assert answer.error_code == FAILED
        assert client.answer() == CLOSED


def test_cve_2017_12610_a_token_with_the_name_of_another(secured: Secured) -> None:
    with connected(secured) as client:
        signed = token(header={"kid": "one"}, **claims())
        assert begin(client, "OAUTHBEARER", bearer(signed, "a=bob")).error_code == FAILED
        assert client.answer() == CLOSED


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("change", ["another", "shorter", "longer", "ours"])
def test_cve_2024_56128_the_nonce_of_the_last_message(mechanism: ScramMechanism, change: str, secured: Secured) -> None:
    """The proof is right for what is sent: only whoever looks at the nonce itself refuses it."""
    first = first_of_scram(mechanism, "alice", PASSWORDS["alice"])
    with connected(secured) as client:
        challenge = begin(client, mechanism.mechanism_name, first.token).auth_bytes
        nonce = bytes(challenge).split(b",")[0][2:]
        changed = {
            "another": nonce[:-1] + (b"a" if nonce[-1:] != b"a" else b"b"),
            "shorter": nonce[:-1],
            "longer": nonce + b"x",
            "ours": b"a-nonce-of-ours",
        }[change]
        assert go_on(client, proof_for(mechanism, first.token[3:], bytes(challenge), changed)).error_code == FAILED
        assert client.answer() == CLOSED
    with connected(secured) as client:
        challenge = begin(client, mechanism.mechanism_name, first.token).auth_bytes
        nonce = bytes(challenge).split(b",")[0][2:]
        assert go_on(client, proof_for(mechanism, first.token[3:], bytes(challenge), nonce)).error_code == 0


def proof_for(mechanism: ScramMechanism, bare: bytes, challenge: bytes, nonce: bytes) -> bytes:
    from moldau.security.sasl.scram.keys import client_key, salted_password, signature, stored_key, xor

    salt, iterations = (part[2:] for part in challenge.split(b",")[1:3])
    salted = salted_password(mechanism, PASSWORDS["alice"], base64.b64decode(salt), int(iterations))
    without_proof = b"c=biws,r=" + nonce
    key = client_key(mechanism, salted)
    signed = signature(mechanism, stored_key(mechanism, key), b",".join((bare, challenge, without_proof)))
    return without_proof + b",p=" + base64.b64encode(xor(key, signed))


def unsigned(algorithm: str, signature: str = "") -> str:
    parts = ({"alg": algorithm, "typ": "JWT", "kid": "one"}, claims())
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return f"{head}.{body}.{signature}"


@pytest.mark.parametrize(("algorithm", "signature"), [("none", ""), ("None", "AAAA"), ("RS256", ""), ("nOnE", "x")])
def test_cve_2026_33557_a_token_that_nobody_signed(algorithm: str, signature: str, secured: Secured) -> None:
    assert not is_let_in(secured, unsigned(algorithm, signature))


def test_cve_2026_110985_a_token_whose_signature_can_not_be_verified(secured: Secured) -> None:
    good = token(header={"kid": "one"}, **claims())
    assert is_let_in(secured, good)
    public = private_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    shared = _hs256(public)
    for forged in (
        token("ES256", header={"kid": "one"}, **claims()),
        token(header={"kid": "two"}, **claims()),
        good[:-8] + ("A" * 8 if not good.endswith("A" * 8) else "B" * 8),
        good.rsplit(".", 1)[0] + ".",
        ".".join([good.split(".")[0], unsigned("RS256").split(".")[1].replace("A", "B", 1), good.split(".")[2]]),
        shared,
    ):
        assert not is_let_in(secured, forged), forged
    for wrong in ({"exp": 1}, {"iss": "https://another.example.org"}, {"aud": "another"}, {"sub": None}):
        assert not is_let_in(secured, token(header={"kid": "one"}, **{**claims(), **wrong}))


def _hs256(key: bytes) -> str:
    """Signed with a public key as if it were a shared secret."""
    import hashlib
    import hmac

    head, body, _ = unsigned("HS256").split(".")
    mac = hmac.digest(key, f"{head}.{body}".encode(), hashlib.sha256)
    return f"{head}.{body}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


@pytest.mark.parametrize("name", ["jku", "x5u"])
def test_cve_2025_27817_keys_come_from_no_place_that_a_token_names(name: str, secured: Secured) -> None:
    with socket.create_server(("127.0.0.1", 0)) as named:
        named.settimeout(0.5)
        url = f"https://127.0.0.1:{named.getsockname()[1]}/jwks.json"
        key = private_key("ES256")
        assert not is_let_in(secured, token("ES256", header={"kid": "theirs", name: url}, key=key, **claims()))
        inline = {"jwk": jwk("ES256"), "kid": "theirs"}
        assert not is_let_in(secured, token("ES256", header=inline, key=key, **claims()))
        with pytest.raises(TimeoutError):
            named.accept()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "https://127.0.0.1:1/keys"])
def test_cve_2025_27817_nobody_names_another_place_for_keys_over_the_wire(url: str, secured: Secured) -> None:
    key = "listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer.jwks.endpoint.url"
    with admin(secured) as client:
        for name in (key, "sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.token.endpoint.url"):
            resource = AlterConfigsResource(BROKER, "0", [AlterableConfig(name, SET, url)])
            answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
            assert answer.responses[0].error_code != ErrorCode.NONE, name


def test_cve_2022_34917_sizes_before_a_login(secured: Secured) -> None:
    """A frame, and each length in one, is held against what is there before anything is made for it."""
    before_mb = resident_mb(secured.broker.pid)
    lies = [
        struct.pack(">i", size) for size in (2**31 - 1, 524_289, -1, 0)
    ] + [
        framed(header(17, 1, flexible=False) + struct.pack(">h", 32_767) + b"PLAIN"),
        framed(header(36, 1, flexible=False) + struct.pack(">i", 2**31 - 1) + b"x" * 100),
        framed(header(36, 2, flexible=True) + b"\xff\xff\xff\xff\x0f" + b"x" * 100),
        framed(header(18, 3, flexible=False) + b"\xff\xff\xff\xff\x0f"),
    ]  # fmt: skip
    for lie in lies:
        for _ in range(50):
            with connected(secured) as client:
                client.send(lie)
                assert client.answer() == CLOSED, lie[:16]
    assert resident_mb(secured.broker.pid) - before_mb < 16


@pytest.mark.parametrize("size", [8, 5_000, 500_000])
def test_cve_2026_111108_a_token_of_any_size_before_a_login(size: int, secured: Secured) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"):
        for filler in (b"\0", b",", b"n,,n=a,r=b," * 2, b"\x01a=b", b"\xff"):
            with connected(secured) as client:
                begun_s = time.monotonic()
                answer = begin(client, mechanism, (filler * size)[:size])
                refused = answer == CLOSED or answer.error_code == FAILED or bytes(answer.auth_bytes).startswith(b"{")
                assert refused, (mechanism, filler)
                assert time.monotonic() - begun_s < 5


def test_cve_2026_111115_half_frames_of_many_before_a_login(secured: Secured) -> None:
    half = struct.pack(">i", 524_288) + bytes(400_000)
    before_mb = resident_mb(secured.broker.pid)
    crowd = [connected(secured) for _ in range(200)]
    try:
        for one in crowd:
            one.send(half)
        with connected(secured) as client:
            assert begin(client, "PLAIN", f"\0alice\0{PASSWORDS['alice']}".encode()).error_code == 0
        assert resident_mb(secured.broker.pid) - before_mb < 64
    finally:
        for one in crowd:
            one.__exit__()


@pytest.mark.parametrize("module", ["plain.py", "scram/server.py", "scram/client.py", "scram/keys.py"])
def test_cve_2021_38153_secrets_are_compared_in_constant_time(module: str) -> None:
    """The times of a comparison are below what a network tells, so the code is looked at; for logins see below."""
    import moldau.security.sasl as package

    source = (Path(package.__path__[0]) / module).read_text()
    assert "hmac.compare_digest(" in source
    for secret in ("password", "proof", "stored_key", "digest", "signature"):
        assert f"{secret} == " not in source
        assert f"== {secret}" not in source


def attempts(secured: Secured, mechanism: str, user: str, password: str) -> tuple[float, Any]:
    """How long a failed login takes from its first token on, and what is answered."""
    with connected(secured) as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        assert client.ask(SaslHandshakeRequest(mechanism), 1).error_code == 0
        if mechanism == "PLAIN":
            begun_s = time.perf_counter()
            answer = go_on(client, f"\0{user}\0{password}".encode())
            return time.perf_counter() - begun_s, told(answer, client)
        begun_s = time.perf_counter()
        challenge = go_on(client, b"n,,n=" + user.encode() + b",r=" + b"x" * 20).auth_bytes
        middle_s = time.perf_counter()
        nonce = bytes(challenge).split(b",")[0]
        last = b"c=biws," + nonce + b",p=" + base64.b64encode(bytes(64 if "512" in mechanism else 32))
        again_s = time.perf_counter()
        answer = go_on(client, last)
        salt = next(part for part in bytes(challenge).split(b",") if part.startswith(b"s="))
        shape = (len(salt), bytes(challenge).split(b",")[2])
        return time.perf_counter() - again_s + middle_s - begun_s, (*told(answer, client), shape)


def told(answer: Any, client: Attacker) -> tuple[Any, ...]:
    return answer.error_code, answer.error_message, bytes(answer.auth_bytes), client.answer()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_cve_2021_38153_who_does_not_exist_is_answered_as_a_wrong_password_is(mechanism: str, secured: Secured) -> None:
    """The same bytes after the same time: the best of three series has to agree, for a machine may be busy."""
    rounds, differences = 150, []
    for _ in range(3):
        known, unknown = [], []
        for _ in range(rounds):
            took_s, of_known = attempts(secured, mechanism, "alice", "wrong")
            known.append(took_s)
            took_s, of_unknown = attempts(secured, mechanism, "carol", "wrong")
            unknown.append(took_s)
            assert of_known == of_unknown
        # The quarter that was least disturbed.
        one, other = (sorted(each)[rounds // 4] for each in (known, unknown))
        differences.append(abs(one - other) / min(one, other))
        if differences[-1] < 0.15:
            break
    assert min(differences) < 0.15, differences

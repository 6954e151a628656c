"""Noise for every parser of security that reads what strangers, peers or administrators wrote.

    python -m tests.security.fuzzing --seconds 60 --seed 7

Each parser has its declared errors, and nothing else may come out of it. One input may take half a second of the
processor, and all of them together some memory.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moldau.core.config.definitions import UnreadableInput
from moldau.node.securing.first_users import parse_credential
from moldau.security.jaas import InvalidJaasConfig, login_module
from moldau.security.sasl.digest_md5 import DigestMd5Client
from moldau.security.sasl.mechanism import SaslError
from moldau.security.sasl.oauthbearer.client import OAuthBearerClient
from moldau.security.sasl.oauthbearer.jwks import InvalidJwks, JwtValidator, read_jwks
from moldau.security.sasl.oauthbearer.server import OAuthBearerServer
from moldau.security.sasl.oauthbearer.token import ClaimRules, InvalidToken
from moldau.security.sasl.plain import PlainServer
from moldau.security.sasl.scram.client import ScramClient
from moldau.security.sasl.scram.credential import ScramMechanism
from moldau.security.sasl.scram.messages import read_client_final, read_client_first, read_server_final
from moldau.security.sasl.scram.server import ScramServer
from moldau.security.tls.certificates import read_certificate
from moldau.security.tls.cipher_suites import parse_suites
from moldau.security.tls.contexts import server_tls
from moldau.security.tls.der import InvalidDer
from moldau.security.tls.distinguished_names import rfc2253
from moldau.security.tls.issuing import new_authority, new_server
from moldau.security.tls.principal_mapping import NoMatchingRule, parse_mapping_rules
from moldau.security.tls.settings import TlsConfigError, TlsSettings
from moldau.security.tls.stores import load_keystore, load_truststore
from tests.security.sasl.exchanges import FAKES, NOW_MS, Credentials, challenge
from tests.security.sasl.test_plain import Passwords
from tests.security.sasl.tokens import jwk, jwks, token

CPU_S_MAX = 0.5  # of one input, on a machine that may be busy; most take microseconds
MEMORY_MB_MAX = 128
BLOWN_UP_BYTES = 512 * 1024

PIECES = (
    b"\0", b"\xff", b"\x80", b"=", b",", b";", b'"', b"\\", b"/", b"\n", b"\x01", b"\x30\x80", b"\x84\xff\xff\xff\xff",
    b"n,,", b"a=", b"n=", b"r=", b"p=", b"c=", b"s=", b"i=", b"i=99999999999", b"v=", b"e=", b"m=", b"=2C", b"biws",
    b"tokenauth=true", b"auth=Bearer ", b".", b"e30", b"{", b"[", b'{"keys":[', b'"kty":"RSA"', b'"n":"', b"AAAA",
    b"1e999",
    b"required", b"PlainLoginModule", b"user_a=", b"RULE:", b"(.*)", b"$1", b"/L,", b"DEFAULT", b"((a*)*)*", b"(?=a)",
    b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----", b"-----BEGIN PRIVATE KEY-----",
    b"Proc-Type: 4,ENCRYPTED",
    b"SCRAM-SHA-256=[", b"name=", b"]", b'nonce="', b"qop=", b"\xc5\xbe", b"\xed\xa0\x80",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """A parser of bytes, the errors that it declares, and bytes that it reads."""

    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...]


class Seeds:
    """What parsers read, made once."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        self.authority = new_authority(name="Fuzz CA", now=now)
        server = new_server(self.authority, hosts=["localhost", "*.example.org", "10.0.0.1"], now=now)
        self.pem = server.key_pem() + server.certificate_pem()
        self.key, self.certificates = server.key_pem(), server.certificate_pem()
        self.pkcs12 = server.pkcs12("secret")
        self.der = server.certificate.public_bytes(_der())
        self.name = server.certificate.subject.public_bytes()
        self.now_s = now.timestamp()


def _der() -> Any:
    from cryptography.hazmat.primitives.serialization import Encoding

    return Encoding.DER


def targets(folder: Path) -> dict[str, Target]:
    seeds = Seeds()
    return {**_sasl(), **_configurations(), **_tls(seeds, folder)}


def _sasl() -> dict[str, Target]:
    mechanism = ScramMechanism.SHA_256
    server = ScramServer(mechanism, Credentials(), FAKES, "server-nonce")
    client = ScramClient(mechanism, "alice", "alice-secret", "client-nonce")
    first = client.evaluate(b"")
    assert first is not None
    challenged = challenge(server, first.token)
    proof = first.next.evaluate(challenged.token)
    assert proof is not None
    verdict = challenged.next.evaluate(proof.token, NOW_MS).token
    assert verdict is not None, "SCRAM ends with the proof of the server"
    validator = JwtValidator(read_jwks(jwks(jwk(), jwk("ES256"))), ClaimRules())
    signed = (token().encode(), token("ES256").encode(), b"eyJhbGciOiJub25lIn0.e30.", b"W10.W10.AAAA")
    bearer = OAuthBearerServer(validator)
    md5 = DigestMd5Client("alice", "secret", "zookeeper/zk-sasl-md5", "cnonce").evaluate(b"")
    assert md5 is not None
    return {
        "PLAIN": Target(
            lambda raw: PlainServer(Passwords()).evaluate(raw, NOW_MS),
            (SaslError,),
            (b"\0alice\0alice-secret", b"a\0b\0c"),
        ),
        "SCRAM client first": Target(
            read_client_first, (SaslError,), (first.token, b"n,a=x,n=a=2Cb,r=n,tokenauth=true")
        ),
        "SCRAM client final": Target(read_client_final, (SaslError,), (proof.token,)),
        "SCRAM server final": Target(read_server_final, (SaslError,), (verdict, b"e=other-error")),
        "SCRAM server": Target(lambda raw: server.evaluate(raw, NOW_MS), (SaslError,), (first.token,)),
        "SCRAM server, proof": Target(lambda raw: challenged.next.evaluate(raw, NOW_MS), (SaslError,), (proof.token,)),
        "SCRAM client, salt": Target(first.next.evaluate, (SaslError,), (challenged.token,)),
        "SCRAM client, verdict": Target(proof.next.evaluate, (SaslError,), (verdict,)),
        "OAUTHBEARER server": Target(
            lambda raw: bearer.evaluate(raw, NOW_MS),
            (SaslError,),
            tuple(b"n,a=alice,\x01auth=Bearer " + each + b"\x01host=x\x01\x01" for each in signed),
        ),
        "OAUTHBEARER client": Target(
            OAuthBearerClient("a.b.c").evaluate, (SaslError,), (b"", b'{"status":"invalid_token"}')
        ),
        "JWT": Target(
            lambda raw: validator.validate(raw.decode(errors="replace"), NOW_MS), (InvalidToken,), signed
        ),
        "JWKS": Target(read_jwks, (InvalidJwks,), (jwks(jwk()), jwks(jwk("ES256"), jwk("ES512")))),
        "DIGEST-MD5 client": Target(
            md5.next.evaluate,
            (SaslError,),
            (b'realm="zk-sasl-md5",nonce="a\\"b",charset=utf-8,algorithm=md5-sess', b"nonce=x,qop=\"auth,auth-int\""),
        ),
    }  # fmt: skip


def _configurations() -> dict[str, Target]:
    def mapped(raw: bytes) -> object:
        mapper = parse_mapping_rules(raw.decode(errors="replace"))
        return [mapper.name_of(name) for name in ("CN=alice,OU=" + "a" * 500 + ",O=x", "", "CN=" + "é" * 100)]

    plain = (
        b'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b\\"c" user_a="b";'
    )
    return {
        "JAAS": Target(
            lambda raw: login_module(raw.decode(errors="replace"), "PLAIN"),
            (InvalidJaasConfig,),
            (plain, b"a.B optional /* c */ x='y' // z\n;", plain.replace(b" ", b"\n")),
        ),
        "principal mapping rules": Target(
            mapped,
            (TlsConfigError, NoMatchingRule),
            (
                b"RULE:^CN=(.*?),OU=(.*?),O=x$/$1@$2/L,DEFAULT",
                b"RULE:^.*[Cc][Nn]=([a-z.]*).*$/$1/U , RULE:a/\\//,DEFAULT",
            ),
        ),
        "cipher suites": Target(
            lambda raw: parse_suites(raw.decode(errors="replace").split(",")),
            (TlsConfigError,),
            (b"TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", b"ECDHE-RSA-AES128-GCM-SHA256"),
        ),
        "first users": Target(
            lambda raw: parse_credential(raw.decode(errors="replace")),
            (UnreadableInput,),
            (b'SCRAM-SHA-512=[name=a,iterations=4096,salt="c2FsdA==",saltedpassword="AAAA"]',),
        ),
    }


def _tls(seeds: Seeds, folder: Path) -> dict[str, Target]:
    path = folder / f"store-{os.getpid()}"

    def stored(raw: bytes) -> str:
        path.write_bytes(raw)
        return str(path)

    def trusted(raw: bytes) -> object:
        return load_truststore(TlsSettings(truststore_type="PEM", truststore_certificates=raw.decode(errors="replace")))

    def served(raw: bytes) -> object:
        text = raw.decode(errors="replace")
        settings = TlsSettings(keystore_type="PEM", keystore_key=text, keystore_certificate_chain=text)
        return server_tls(settings, now_s=seeds.now_s)

    def pkcs12(raw: bytes) -> object:
        settings = TlsSettings(keystore_type="PKCS12", keystore_location=stored(raw), keystore_password="secret")
        return load_keystore(settings)

    return {
        "certificate": Target(read_certificate, (InvalidDer,), (seeds.der,)),
        "distinguished name": Target(rfc2253, (InvalidDer,), (seeds.name,)),
        "PEM trust store": Target(trusted, (TlsConfigError,), (seeds.certificates, seeds.certificates * 3)),
        "PEM key store": Target(served, (TlsConfigError,), (seeds.pem,)),
        # A store that is BER and no DER is read, with a warning of the library's, which is an error in tests.
        "PKCS12 key store": Target(pkcs12, (TlsConfigError, UserWarning), (seeds.pkcs12,)),
    }


def noise(chance: random.Random, seeds: tuple[bytes, ...]) -> bytes:
    """A seed with changes, pieces in any order, or one piece again and again."""
    kind = chance.random()
    if kind < 0.05:
        piece = chance.choice(PIECES)
        return (chance.choice(seeds)[: chance.randrange(64)] + piece * (BLOWN_UP_BYTES // len(piece)))[:BLOWN_UP_BYTES]
    if kind < 0.2:
        return b"".join(chance.choice(PIECES) for _ in range(chance.randrange(40)))
    raw = bytearray(chance.choice(seeds))
    for _ in range(chance.randrange(1, 6)):
        at, size = chance.randrange(len(raw) + 1), chance.choice((0, 0, 1, 1, 2, 8, 64))
        change = chance.random()
        if change < 0.4:
            raw[at : at + size] = chance.choice(PIECES)
        elif change < 0.7:
            raw[at : at + 1] = bytes([chance.randrange(256)])
        elif change < 0.85:
            raw[at:at] = raw[at : at + size] * chance.randrange(20)
        else:
            del raw[at:]
    return bytes(raw)


def try_one(name: str, target: Target, raw: bytes) -> str | None:
    """What is wrong with how this was read."""
    begun_s = time.thread_time()
    try:
        target.read(raw)
    except target.errors:
        pass
    except Exception as wrong:
        return f"{name}: {type(wrong).__name__}: {wrong} from {raw[:300]!r}"
    took_s = time.thread_time() - begun_s
    return f"{name}: {took_s:.2f} s for {len(raw)} bytes: {raw[:300]!r}" if took_s > CPU_S_MAX else None


def fuzz(seconds: float, seed: int) -> Iterator[str]:
    chance, tried = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder:
        found = targets(Path(folder))
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            name, target = chance.choice(list(found.items()))
            tried += 1
            trouble = try_one(name, target, noise(chance, target.seeds))
            if trouble is not None:
                yield trouble
        grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024
        if grown_mb > MEMORY_MB_MAX:
            yield f"{grown_mb:.0f} MB more after {tried} inputs"
    sys.stderr.write(f"{tried} inputs to {len(found)} parsers, {grown_mb:.0f} MB more\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    troubles = 0
    for trouble in fuzz(options.seconds, options.seed):
        troubles += 1
        sys.stdout.write(trouble + "\n")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())

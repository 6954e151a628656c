"""Names as Java prints them, with Java as the judge; and nothing but InvalidDer comes out of what is no name."""

from __future__ import annotations

import contextlib
import random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.security.tls.certificates import read_certificate
from moldau.security.tls.der import InvalidDer
from moldau.security.tls.distinguished_names import rfc2253
from tests import apache_kafka
from tests.security.tls import judge
from tests.security.tls.world import World

OIDS = [
    NameOID.COMMON_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.DOMAIN_COMPONENT,
    NameOID.USER_ID,
    NameOID.EMAIL_ADDRESS,
    NameOID.TITLE,
    NameOID.SERIAL_NUMBER,
    x509.ObjectIdentifier("1.3.6.1.4.1.99999.2999.1"),
]
PIECES = [
    "Alice",
    "a",
    " ",
    "  ",
    ",",
    "+",
    '"',
    "\\",
    "<",
    ">",
    ";",
    "=",
    "#",
    "/",
    "\r",
    "\n",
    "\t",
    "\0",
    "é",
    "日本",
    "😀",
]


def attribute(oid: x509.ObjectIdentifier, text: str, kind: _ASN1Type = _ASN1Type.UTF8String) -> x509.NameAttribute[str]:
    return x509.NameAttribute(oid, text, kind, _validate=False)


def names(count: int) -> list[bytes]:
    rng = random.Random(7)

    def text() -> str:
        return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 5)))

    def kind(value: str) -> _ASN1Type:
        if value.isascii() and value.isalnum():
            return rng.choice([_ASN1Type.PrintableString, _ASN1Type.IA5String, _ASN1Type.T61String])
        return rng.choice([_ASN1Type.UTF8String, _ASN1Type.BMPString]) if "😀" not in value else _ASN1Type.UTF8String

    made = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(0, 4)):
            values = [(oid, text()) for oid in rng.sample(OIDS, rng.choice([1, 1, 1, 2]))]
            parts.append(x509.RelativeDistinguishedName([attribute(oid, each, kind(each)) for oid, each in values]))
        made.append(x509.Name(parts).public_bytes())
    return made


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], ""),
        ([("C", "DE"), ("O", "Acme"), ("CN", "alice")], "CN=alice,O=Acme,C=DE"),
        ([("CN", "Doe, John")], "CN=Doe\\, John"),
        ([("CN", " a b ")], "CN=\\ a b\\ "),
        ([("CN", "a=b#c")], "CN=a\\=b\\#c"),
        ([("E", "a@b"), ("CN", "a")], "CN=a,1.2.840.113549.1.9.1=#0c03614062"),
    ],
)
def test_names_are_written_as_java_writes_them(parts: list[tuple[str, str]], expected: str) -> None:
    oids = {"C": NameOID.COUNTRY_NAME, "O": NameOID.ORGANIZATION_NAME, "CN": NameOID.COMMON_NAME}
    name = x509.Name([attribute(oids.get(key, NameOID.EMAIL_ADDRESS), value) for key, value in parts])
    assert rfc2253(name.public_bytes()) == expected


@pytest.mark.skipif(not apache_kafka.available(), reason="needs Java")
def test_java_agrees_on_names_of_every_kind() -> None:
    made = names(2_000)
    said = judge.ask("name", [(name,) for name in made])
    differing = [
        (name.hex(), rfc2253(name), java) for name, java in zip(made, said, strict=True) if rfc2253(name) != java
    ]
    assert not differing[:3]


def test_a_certificate_tells_its_owner_names_and_dates(world: World) -> None:
    made = world.server.certificate
    found = read_certificate(world.server.certificate.public_bytes(Encoding.DER))
    assert found.subject == "CN=localhost"
    assert found.alternative_names == {"DNS:localhost", "IP:127.0.0.1"}
    assert found.not_after_s == made.not_valid_after_utc.timestamp()
    assert found.not_before_s == made.not_valid_before_utc.timestamp()


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_no_certificate(noise: bytes) -> None:
    with pytest.raises(InvalidDer):
        read_certificate(noise)


@settings(deadline=None)
@given(data=st.data())
def test_a_damaged_certificate_is_read_or_refused(data: st.DataObject, world: World) -> None:
    damaged = bytearray(world.client.certificate.public_bytes(Encoding.DER))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InvalidDer):
        read_certificate(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))

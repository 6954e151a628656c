"""From Kafka's keys to contexts: what is accepted, with real stores, and what each wrong input says."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from moldau.security.tls.contexts import LoadedTls, client_tls, server_tls
from moldau.security.tls.issuing import new_key, new_server
from moldau.security.tls.settings import TlsConfigError, TlsSettings
from tests.security.tls.world import World

SECRET = "s3cret-Päss"


def encrypted(world: World) -> str:
    key = world.server.key
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(SECRET.encode())).decode()


def store(world: World, name: str, content: bytes) -> str:
    path = world.folder / name
    path.write_bytes(content)
    return str(path)


def load(world: World, settings: TlsSettings) -> LoadedTls:
    return server_tls(settings, now_s=world.now_s)


def shakes_hands(server: LoadedTls, client: LoadedTls, host: str = "localhost") -> ssl.SSLObject:
    """In memory; the client's object, after both are done."""
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = server.context.wrap_bio(one, other, server_side=True)
    there = client.context.wrap_bio(other, one, server_hostname=host)
    for _ in range(3):
        for each in (there, here):
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert here.version() is not None
    return there


def test_pem_inline_makes_both_halves(world: World) -> None:
    client = client_tls(world.settings(None), now_s=world.now_s)
    assert shakes_hands(load(world, world.settings(world.server)), client).version() == "TLSv1.3"


def test_pem_on_one_line_is_read_as_kafka_reads_it(world: World) -> None:
    flat = {
        "keystore_key": world.server.key_pem().decode().replace("\n", " "),
        "keystore_certificate_chain": world.server.certificate_pem().decode().replace("\n", " "),
    }
    assert load(world, world.settings(world.server, **flat)).chain[0].subject == "CN=localhost"


def test_pem_files_and_encrypted_keys(world: World) -> None:
    path = store(world, "both.pem", b"Bag Attributes\n" + encrypted(world).encode() + world.server.certificate_pem())
    settings = TlsSettings(keystore_type="pem", keystore_location=path, key_password=SECRET)
    client = client_tls(world.settings(None), now_s=world.now_s)
    shakes_hands(load(world, settings), client)


def test_the_older_encryption_of_openssl(world: World, tmp_path: Path) -> None:
    plain = tmp_path / "key.pem"
    plain.write_bytes(world.server.key_pem())
    made = subprocess.run(
        ["openssl", "ec", "-in", str(plain), "-aes256", "-passout", "pass:old"], capture_output=True, check=True
    ).stdout
    assert b"Proc-Type" in made
    load(world, world.settings(world.server, keystore_key=made.decode(), key_password="old"))


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_pkcs12_under_either_of_its_names(world: World, kind: str) -> None:
    """JKS is Kafka's default, and Java reads PKCS12 under that name too."""
    path = store(world, "server.p12", world.server.pkcs12(SECRET))
    settings = TlsSettings(keystore_type=kind, keystore_location=path, keystore_password=SECRET)
    shakes_hands(load(world, settings), client_tls(world.settings(None), now_s=world.now_s))


@pytest.mark.skipif(shutil.which("keytool") is None, reason="needs keytool")
def test_stores_that_keytool_made(world: World, tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_bytes(world.authority.certificate_pem())
    trust, keys, jks = tmp_path / "trust.p12", tmp_path / "keys.p12", tmp_path / "old.jks"
    keytool("-importcert", "-noprompt", "-file", authority, "-alias", "ca", "-keystore", trust, "-storetype", "PKCS12")
    subject = ("-dname", "CN=java, O=Acme", "-alias", "k", "-keyalg", "RSA", "-keysize", "2048")
    keytool("-genkeypair", *subject, "-keystore", keys, "-storetype", "PKCS12")
    keytool("-genkeypair", *subject, "-keystore", jks, "-storetype", "JKS", "-keypass", "changeit")
    settings = TlsSettings(
        keystore_location=str(keys),
        keystore_password="changeit",
        truststore_location=str(trust),
        truststore_password="changeit",
        client_auth="required",
    )
    made = load(world, settings)
    assert made.chain[0].subject == "CN=java,O=Acme"
    assert [each["subject"] for each in made.context.get_ca_certs()] == [((("commonName", "Test CA"),),)]
    with pytest.raises(TlsConfigError) as refused:
        load(world, TlsSettings(keystore_location=str(jks), keystore_password="changeit"))
    command = str(refused.value).partition("`")[2].partition("`")[0]
    passwords = "-srcstorepass changeit -deststorepass changeit"
    subprocess.run(f"{command} {passwords}", shell=True, check=True, capture_output=True, timeout=60)
    converted = TlsSettings(
        keystore_type="PKCS12", keystore_location=str(tmp_path / "old.p12"), keystore_password="changeit"
    )
    assert load(world, converted).chain[0].subject == "CN=java,O=Acme"


def keytool(*arguments: object) -> None:
    command = ["keytool", *map(str, arguments), "-storepass", "changeit"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


Broken = Callable[[World], TlsSettings]


def inline(**changes: Any) -> Broken:
    return lambda world: world.settings(world.server, **changes)


def pkcs12(**changes: Any) -> Broken:
    def settings(world: World) -> TlsSettings:
        path = store(world, "again.p12", world.server.pkcs12(SECRET))
        given: dict[str, Any] = {"keystore_type": "PKCS12", "keystore_location": path, "keystore_password": SECRET}
        return TlsSettings(**given | changes)

    return settings


def file(content: bytes, kind: str = "PEM", **changes: Any) -> Broken:
    return lambda world: TlsSettings(keystore_type=kind, keystore_location=store(world, "broken", content), **changes)


WRONG: dict[str, tuple[Broken, str, str]] = {
    "no key store": (lambda world: TlsSettings(), "ssl.keystore.location", "needs a key and a certificate"),
    "type": (inline(keystore_type="BKS"), "ssl.keystore.type", "'BKS' is not supported"),
    "file missing": (
        lambda world: TlsSettings(keystore_type="PEM", keystore_location="/no/such.pem"),
        "ssl.keystore.location",
        "/no/such.pem: No such file or directory",
    ),
    "folder": (
        lambda world: TlsSettings(keystore_type="PEM", keystore_location=str(world.folder)),
        "ssl.keystore.location",
        "is not a file",
    ),
    "empty": (file(b""), "ssl.keystore.location", "is empty"),
    "no pem": (file(b"hello"), "ssl.keystore.location", "is no PEM"),
    "pem as jks": (
        file(b"-----BEGIN PRIVATE KEY-----", "JKS"),
        "ssl.keystore.type",
        "JKS, Kafka's default, and ",
    ),
    "pem as p12": (
        file(b"-----BEGIN PRIVATE KEY-----", "PKCS12", keystore_password=SECRET),
        "ssl.keystore.type",
        "broken is PEM; set ssl.keystore.type=PEM",
    ),
    "half a file": (
        lambda world: TlsSettings(keystore_type="PEM", keystore_location=store(world, "half", world.server.key_pem())),
        "ssl.keystore.location",
        "half: no certificate in PEM",
    ),
    "keys of others in a file": (
        lambda world: TlsSettings(
            keystore_type="PEM",
            keystore_location=store(world, "mixed", world.client.key_pem() + world.server.certificate_pem()),
        ),
        "ssl.keystore.location",
        "mixed: the private key does not belong",
    ),
    "p12 as pem": (file(b"\x30\x82"), "ssl.keystore.location", "looks like PKCS12"),
    "no p12": (file(b"hello", "PKCS12", keystore_password=SECRET), "ssl.keystore.location", "is no PKCS12 store"),
    "damaged p12": (
        file(b"\x30\x03\x02\x01\x03", "PKCS12", keystore_password=SECRET),
        "ssl.keystore.location",
        "can't be read as PKCS12",
    ),
    "p12 wrong password": (pkcs12(keystore_password="nope-" + SECRET), "ssl.keystore.password", "wrong, or"),
    "p12 no password": (pkcs12(keystore_password=None), "ssl.keystore.password", "not set"),
    "p12 key password": (pkcs12(key_password="other-" + SECRET), "ssl.key.password", "one password"),
    "jks": (
        file(bytes.fromhex("feedfeed00000002"), "JKS", keystore_password=SECRET),
        "ssl.keystore.location",
        "keytool",
    ),
    "pem with store password": (inline(keystore_password=SECRET), "ssl.keystore.password", "not for PEM"),
    "password alone": (lambda world: TlsSettings(keystore_password=SECRET), "ssl.keystore.password", "is not"),
    "key alone": (inline(keystore_certificate_chain=None), "ssl.keystore.key", "certificate.chain is not"),
    "chain alone": (inline(keystore_key=None), "ssl.keystore.certificate.chain", "ssl.keystore.key is not"),
    "both ways": (inline(keystore_location="/x.pem"), "ssl.keystore.key", "remove one"),
    "inline is no pem": (inline(keystore_key=SECRET), "ssl.keystore.key", "no PEM"),
    "key is a certificate": (
        lambda world: world.settings(world.server, keystore_key=world.server.certificate_pem().decode()),
        "ssl.keystore.key",
        "no private keys",
    ),
    "key is noise": (
        inline(keystore_key="-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----"),
        "ssl.keystore.key",
        "can't read",
    ),
    "key is no base64": (
        inline(keystore_key="-----BEGIN PRIVATE KEY-----\n%%%\n-----END PRIVATE KEY-----"),
        "ssl.keystore.key",
        "not Base64",
    ),
    "certificate is noise": (
        inline(keystore_certificate_chain="-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"),
        "ssl.keystore.certificate.chain",
        "can't be read",
    ),
    "key of another": (
        lambda world: world.settings(world.server, keystore_key=world.client.key_pem().decode()),
        "ssl.keystore.key",
        "does not belong to the certificate of CN=localhost",
    ),
    "key of another kind": (
        lambda world: world.settings(
            world.server,
            keystore_key=new_key("RSA-2048")
            .private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
            .decode(),
        ),
        "ssl.keystore.key",
        "does not belong",
    ),
    "encrypted, no password": (
        lambda world: world.settings(world.server, keystore_key=encrypted(world)),
        "ssl.key.password",
        "not set",
    ),
    "encrypted, wrong password": (
        lambda world: world.settings(world.server, keystore_key=encrypted(world), key_password="x" + SECRET),
        "ssl.key.password",
        "wrong for the private key of ssl.keystore.key",
    ),
    "endless password": (inline(key_password="x" * 2000), "ssl.key.password", "longer than"),
    "protocol": (inline(enabled_protocols=("TLSv1.1", "TLSv1.2")), "ssl.enabled.protocols", "'TLSv1.1'"),
    "suite": (inline(cipher_suites=("TLS_FOO_WITH_BAR",)), "ssl.cipher.suites", "'TLS_FOO_WITH_BAR' is no cipher"),
    "suite list word": (inline(cipher_suites=("HIGH",)), "ssl.cipher.suites", "'HIGH' is no cipher"),
    "suite of another version": (
        inline(cipher_suites=("TLS_AES_256_GCM_SHA384",), enabled_protocols=("TLSv1.2",)),
        "ssl.cipher.suites",
        "no suite for TLSv1.2",
    ),
    "suites of TLS 1.3": (inline(cipher_suites=("TLS_AES_128_GCM_SHA256",)), "ssl.cipher.suites", "add it"),
    "client auth": (inline(client_auth="maybe"), "ssl.client.auth", "'maybe' is none of"),
    "client auth without trust": (
        lambda world: world.settings(world.server, client_auth="required", truststore_certificates=None),
        "ssl.truststore.location",
        "needs the authority",
    ),
    "trust is no pem": (inline(truststore_certificates=SECRET), "ssl.truststore.certificates", "no PEM"),
    "trust is a key": (
        lambda world: world.settings(world.server, truststore_certificates=world.server.key_pem().decode()),
        "ssl.truststore.certificates",
        "no certificate",
    ),
    "trust type": (inline(truststore_type="JKS"), "ssl.truststore.certificates", "needs ssl.truststore.type=PEM"),
    "trust missing": (
        inline(truststore_certificates=None, truststore_location="/no/ca.pem"),
        "ssl.truststore.location",
        "No such file",
    ),
    "trust password": (
        inline(truststore_certificates=None, truststore_password=SECRET),
        "ssl.truststore.password",
        "is not",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_input_is_one_line_that_names_its_key(name: str, world: World) -> None:
    make, key, why = WRONG[name]
    settings = make(world)
    with pytest.raises(TlsConfigError) as refused:
        load(world, settings)
    said = str(refused.value)
    assert refused.value.key == key
    assert said.startswith(f"{key}: ")
    assert why in said
    assert "\n" not in said
    secrets = [settings.keystore_password, settings.key_password, settings.keystore_key, SECRET]
    assert not [one for one in secrets if one and one in said + repr(settings)]
    assert refused.value.__cause__ is None


def test_a_file_that_may_not_be_read(world: World) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = Path(store(world, "closed.pem", b"x"))
    path.chmod(0)
    with pytest.raises(TlsConfigError, match="Permission denied"):
        load(world, TlsSettings(keystore_type="PEM", keystore_location=str(path)))


def test_an_expired_certificate_is_a_warning(world: World) -> None:
    before = datetime.now(UTC) - timedelta(days=30)
    old = new_server(world.authority, hosts=["localhost"], now=before, days=10)
    said = load(world, world.settings(old)).warnings
    assert len(said) == 1
    assert said[0].startswith("ssl.keystore: the certificate of CN=localhost expired on ")


def test_java_names_of_suites_are_those_of_openssl(world: World) -> None:
    suites = ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256")
    server = load(world, world.settings(world.server, cipher_suites=suites))
    there = shakes_hands(server, client_tls(world.settings(None), now_s=world.now_s))
    cipher = there.cipher()
    assert cipher is not None
    assert (cipher[0], there.version()) == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2")


def test_only_the_enabled_protocol_is_spoken(world: World) -> None:
    server = load(world, world.settings(world.server, enabled_protocols=("TLSv1.3",)))
    older = client_tls(world.settings(None, enabled_protocols=("TLSv1.2",)), now_s=world.now_s)
    with pytest.raises(ssl.SSLError):
        shakes_hands(server, older)


def test_a_host_that_the_certificate_does_not_name(world: World) -> None:
    server = load(world, world.settings(world.server))
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shakes_hands(server, client_tls(world.settings(None), now_s=world.now_s), "elsewhere")
    for off in ("", None):
        settings = world.settings(None, endpoint_identification_algorithm=off)
        shakes_hands(server, client_tls(settings, now_s=world.now_s), "elsewhere")


def test_a_broker_whose_own_certificate_is_trusted(world: World) -> None:
    """As in Java, whatever is in the trust store is trusted; it need not be an authority."""
    pinned = TlsSettings(truststore_type="PEM", truststore_certificates=world.server.certificate_pem().decode())
    shakes_hands(load(world, world.settings(world.server)), client_tls(pinned, now_s=world.now_s))


def test_renegotiation_is_off(world: World) -> None:
    assert load(world, world.settings(world.server)).context.options & ssl.OP_NO_RENEGOTIATION


def test_settings_come_from_kafkas_keys() -> None:
    values = {"ssl.keystore.certificate.chain": "c", "ssl.client.auth": "required", "ssl.key.password": None}
    made = TlsSettings.from_keys(values)
    assert (made.keystore_certificate_chain, made.client_auth, made.key_password) == ("c", "required", None)

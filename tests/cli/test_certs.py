"""`moldau certs` as an operator runs it, judged by OpenSSL, keytool, Java and librdkafka."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import stat
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Producer

from moldau.security.tls.contexts import server_tls
from moldau.security.tls.session import TlsSession
from moldau.security.tls.settings import TlsSettings
from tests.cli.conftest import run_tool
from tests.security.tls.test_session import establish, receive

NOW_S = 1_800_000_000.0
WAIT_S = 30.0


def certs(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_tool("", "certs", *map(str, arguments))


def made(*arguments: object) -> str:
    done = certs(*arguments)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, a broker's certificate and a client's, made once."""
    folder = tmp_path_factory.mktemp("certs") / "new"
    (folder.parent / "password").write_text("first line\nsecond\n")
    made("ca", "--dir", folder)
    made("server", "--dir", folder, "--host", "localhost", "--host", "127.0.0.1", "--host", "*.example.org")
    made("client", "--dir", folder, "--name", "alice", "--pkcs12", "--password-file", folder.parent / "password")
    return folder


def openssl(*arguments: object) -> str:
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def test_keys_are_for_their_owner_only(folder: Path) -> None:
    modes = {path.name: stat.filemode(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {
        "ca.pem": "-rw-r--r--",
        "ca.key": "-rw-------",
        "localhost.pem": "-rw-------",
        "alice.pem": "-rw-------",
        "alice.p12": "-rw-------",
    }
    assert stat.filemode(folder.stat().st_mode) == "drwx------"


def test_openssl_accepts_them(folder: Path) -> None:
    server = ("-purpose", "sslserver", "-x509_strict", "-CAfile", folder / "ca.pem", folder / "localhost.pem")
    assert openssl("verify", *server).endswith("OK\n")
    assert openssl("verify", "-verify_hostname", "b1.example.org", *server).endswith("OK\n")
    assert openssl("verify", "-verify_ip", "127.0.0.1", *server).endswith("OK\n")
    assert openssl("verify", "-purpose", "sslclient", "-CAfile", folder / "ca.pem", folder / "alice.pem")
    text = openssl("x509", "-in", folder / "localhost.pem", "-noout", "-text")
    assert "NIST CURVE: P-256" in text
    assert "CA:FALSE" in text


@pytest.mark.skipif(shutil.which("keytool") is None, reason="needs keytool")
def test_java_reads_the_store(folder: Path) -> None:
    command = ["keytool", "-list", "-v", "-keystore", str(folder / "alice.p12"), "-storepass", "first line"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "Keystore type: PKCS12" in said
    assert "Entry type: PrivateKeyEntry" in said
    assert "Certificate chain length: 2" in said
    assert "Owner: CN=alice" in said


def test_librdkafka_connects_with_the_settings_that_are_printed(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "c")
    printed = made("client", "--dir", tmp_path / "c", "--name", "bob")
    section = printed.partition("# librdkafka")[2].partition("\n")[2].partition("\n\n")[0]
    settings = dict(line.split("=", 1) for line in section.splitlines())
    trusted = {"truststore_type": "PEM", "truststore_location": str(folder / "ca.pem")}
    own = {"keystore_type": "PEM", "keystore_location": str(folder / "localhost.pem")}
    tls = server_tls(TlsSettings(**trusted, **own, client_auth="required"), now_s=NOW_S)  # type: ignore[arg-type]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(WAIT_S)
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        producer = Producer({"bootstrap.servers": address, **settings, "log_level": 0})
        here, _ = listening.accept()
        with here:
            here.setblocking(False)
            session = TlsSession(here, tls)
            establish(session)
            assert session.distinguished_name() == "CN=bob"
            size, key = receive(session, 6)[:4], b"\x00\x12"
            assert int.from_bytes(size, "big") > len(key), "ApiVersions follows"
            session.close()
        del producer


def test_python_reads_the_files(folder: Path) -> None:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.load_cert_chain(folder / "alice.pem")
    assert [each["subject"] for each in context.get_ca_certs()] == [((("commonName", "Moldau CA"),),)]


def test_nothing_is_replaced_without_force(folder: Path) -> None:
    before = (folder / "ca.key").read_bytes()
    refused = certs("ca", "--dir", folder)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"moldau certs: {folder}/ca.pem, {folder}/ca.key exists already; --force replaces it\n"
    assert (folder / "ca.key").read_bytes() == before


def test_what_is_in_a_file(folder: Path) -> None:
    shown = json.loads(made("show", folder / "localhost.pem", "-o", "json"))
    assert shown[0]["subject"] == "CN=localhost"
    assert shown[0]["names"] == ["DNS:*.example.org", "DNS:localhost", "IP:127.0.0.1"]
    assert shown[0]["days_left"] in (396, 397)
    printed = openssl("x509", "-in", folder / "localhost.pem", "-noout", "-fingerprint", "-sha256")
    assert shown[0]["sha256"] == printed.strip().partition("=")[2].lower()
    stored = made("show", folder / "alice.p12", "--password-file", folder.parent / "password")
    assert re.search(r"^CN=alice .* CN=Moldau CA .* P-256$", stored, re.MULTILINE)
    assert certs("show", folder / "localhost.pem", "--within", "400").returncode == 1
    assert certs("show", folder / "localhost.pem", "--within", "300").returncode == 0


def test_a_certificate_is_renewed(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "c")
    path = tmp_path / "c" / "localhost.pem"
    before = path.read_bytes()
    made("renew", path, "--days", "30")
    assert (tmp_path / "c" / "localhost.pem.old").read_bytes() == before
    shown = json.loads(made("show", path, "-o", "json"))[0]
    assert (shown["subject"], shown["days_left"] in (29, 30)) == ("CN=localhost", True)
    assert shown["names"] == ["DNS:*.example.org", "DNS:localhost", "IP:127.0.0.1"]
    keys = [content.partition(b"-----BEGIN CERT")[0] for content in (before, path.read_bytes())]
    assert keys[0] != keys[1]
    assert openssl("verify", "-purpose", "sslserver", "-CAfile", folder / "ca.pem", path).endswith("OK\n")
    refused = certs("renew", tmp_path / "c" / "alice.pem")
    assert refused.stderr.endswith("alice.p12 would keep the old certificate; add --pkcs12\n")
    made("renew", tmp_path / "c" / "alice.pem", "--keep-key", "--pkcs12")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("server --host x", 1, "make an authority with `moldau certs ca --dir {dir}`"),
        ("client --name ca", 2, "the authority's files have that name"),
        ("show {dir}/none.pem", 1, "{dir}/none.pem: No such file or directory"),
        ("ca --name " + "x" * 65, 2, "is no name of 1 to 64 printable characters"),
        ("ca --days 0", 2, "0 days; at least one is needed"),
    ],
)
def test_what_can_not_be_made_is_one_line(arguments: str, code: int, said: str, tmp_path: Path) -> None:
    parts = [part.format(dir=tmp_path) for part in arguments.split()]
    refused = certs(*parts, *([] if "show" in parts else ["--dir", tmp_path]))
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (code, "", 1)
    assert said.format(dir=tmp_path) in refused.stderr


def test_more_days_than_clients_accept(folder: Path, tmp_path: Path) -> None:
    refused = certs("client", "--dir", folder, "--name", "late", "--days", "826")
    assert (refused.returncode, refused.stderr) == (2, "moldau certs: 826 days; clients accept 825 at most\n")


@pytest.mark.parametrize(
    "host", ["localhost:9093", "https://x", "a,b", "", "two words", "a..b", "*.*.example.org", "-a"]
)
def test_a_host_that_there_can_not_be_is_refused_in_one_line(host: str, folder: Path) -> None:
    done = certs("server", "--dir", folder, f"--host={host}")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{host!r} is no host: one name or one address, without a port" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_authoritys_name_is_refused_by_the_option_that_gives_it(folder: Path) -> None:
    assert "Invalid value 'ca' for --host" in certs("server", "--dir", folder, "--host", "ca").stderr
    assert "Invalid value 'ca' for --name" in certs("client", "--dir", folder, "--name", "ca").stderr


@pytest.mark.parametrize("days", [3_000_000, 10**12])
def test_an_authority_ends_before_the_calendar(days: int, tmp_path: Path) -> None:
    done = certs("ca", "--dir", tmp_path, "--days", days)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{days} days; the years of a certificate end with 9999" in done.stderr

"""Listeners for https, with certificates of clients and without."""

from __future__ import annotations

import ssl
import subprocess
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.core.clock import SystemClock
from moldau.security.tls.contexts import client_tls, server_tls
from moldau.security.tls.settings import PEM, TlsSettings
from moldau.web.application import Surroundings, application
from tests.web.running import WAIT_S_MAX, connected, serving, url_of


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> TlsSettings:
    """A certificate that is its own authority."""
    folder: Path = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return TlsSettings(
        keystore_type=PEM,
        keystore_certificate_chain=certificate.read_text(),
        keystore_key=key.read_text(),
        truststore_type=PEM,
        truststore_certificates=certificate.read_text(),
    )


def health(url: str, context: ssl.SSLContext) -> int:
    with urllib.request.urlopen(f"{url}/health", timeout=WAIT_S_MAX, context=context) as answer:
        return int(answer.status)


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_https(settings: TlsSettings, client_auth: str) -> None:
    now_s = SystemClock().now_ms() / 1_000
    around = Surroundings(name="test", expose=lambda _: None)
    with_certificate = client_tls(settings, now_s=now_s).context
    without = client_tls(replace(settings, keystore_certificate_chain=None, keystore_key=None), now_s=now_s).context
    context = server_tls(replace(settings, client_auth=client_auth), now_s=now_s).context
    # A handshake that never comes holds nobody else up.
    with serving(application([], around), tls=context, scheme="https") as server, connected(server) as silent:
        assert health(url_of(server), with_certificate) == 200
        silent.sendall(b"\x16")
        if client_auth == "none":
            assert health(url_of(server), without) == 200
        else:
            with pytest.raises((urllib.error.URLError, ssl.SSLError, ConnectionError)):
                health(url_of(server), without)

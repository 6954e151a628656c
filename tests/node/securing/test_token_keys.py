"""Keys of OAUTHBEARER's tokens: from where the configuration says, again and again, and never from elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import moldau
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.listener_security import ListenerSecurity
from moldau.node.securing import token_keys
from moldau.node.securing.logins import _keys, check_logins
from moldau.node.securing.token_keys import NoKeys, TokenKeys, fetch, fetch_validator, is_url
from moldau.security.sasl.oauthbearer.token import ClaimRules, InvalidToken
from tests.node.securing.secured import make_keys, overrides
from tests.security.sasl.exchanges import NOW_MS
from tests.security.sasl.tokens import jwk, jwks, token

WAIT_S_MAX = 20.0


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        ("https://issuer.example.org/keys", True),
        ("file:///etc/jwks.json", True),
        ("http://issuer.example.org/keys", False),
        ("https:///keys", False),
        ("ftp://issuer.example.org/keys", False),
        ("/etc/jwks.json", False),
        ("", False),
        ("https://[::1]:8443/keys", True),
        ("https://[::1/keys", False),
        ("https://issuer.example.org:99999/keys", False),
        ("https://issuer.example.org:http/keys", False),
        ("https://issuer.example.org:0/keys", False),
        ("https://local host/keys", False),
        ("https://issuer.example.org/my keys", False),
        ("https://issuer..example.org/keys", False),
        ("https://issuer,other/keys", False),
    ],
)
def test_keys_come_over_https_or_from_a_file(url: str, is_one: bool) -> None:
    assert is_url(url) is is_one


def listener_with(folder: Path, **intervals: str) -> ListenerSecurity:
    path = folder / "jwks.json"
    path.write_bytes(jwks())
    given = {f"sasl.oauthbearer.jwks.endpoint.{key.replace('_', '.')}": value for key, value in intervals.items()}
    keys = {"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.jwks.endpoint.url": path.as_uri()}
    config = BrokerConfig.of({"listeners": "SASL_PLAINTEXT://:0", **keys, **given})
    return ListenerSecurity(config, config.listeners[0])


@pytest.mark.parametrize(
    ("key", "value"),
    [("refresh_ms", "0"), ("refresh_ms", "-1"), ("retry_backoff_ms", "-1"), ("retry_backoff_max_ms", "-1")],
)
def test_an_interval_that_apache_kafka_refuses_is_refused(key: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {value} for configuration .*{key.replace('_', '.')}: "):
        check_logins(listener_with(tmp_path, **{key: value}))


def test_an_interval_of_next_to_nothing_keeps_no_core_busy(tmp_path: Path) -> None:
    async def made() -> TokenKeys:
        return _keys(listener_with(tmp_path, refresh_ms="1", retry_backoff_ms="0", retry_backoff_max_ms="0"))

    keys = asyncio.run(made())
    assert keys._refresh_s == token_keys.REFRESH_S_MIN
    assert keys._backoff_s == (token_keys.RETRY_S_MIN, token_keys.RETRY_S_MIN)


def test_a_file_that_is_none_is_told_with_its_url(tmp_path: Path) -> None:
    url = (tmp_path / "jwks.json").as_uri()
    with pytest.raises(NoKeys, match=r"jwks\.json: No such file"):
        fetch(url)
    (tmp_path / "jwks.json").write_bytes(b"{}")
    with pytest.raises(NoKeys, match="no list"):
        fetch_validator(url, ClaimRules())
    (tmp_path / "jwks.json").write_bytes(bytes(token_keys.JWKS_BYTES_MAX + 1))
    with pytest.raises(NoKeys, match="more than"):
        fetch(url)


class Keys(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_there = self.path == "/keys"
        self.send_response(200 if is_there else 302)
        self.send_header("Location", "/keys")
        self.end_headers()
        self.wfile.write(jwks(jwk()) if is_there else b"")

    def log_message(self, *_: object) -> None:
        pass


def test_keys_over_https_are_those_of_a_trusted_host_and_no_other_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = make_keys(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys.broker)
    with ThreadingHTTPServer(("127.0.0.1", 0), Keys) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"https://localhost:{server.server_port}"
        with pytest.raises(NoKeys, match=r"(?i)certificate.verify.failed"):
            fetch(f"{url}/keys")
        monkeypatch.setenv("SSL_CERT_FILE", str(keys.trusted))
        assert fetch_validator(f"{url}/keys", ClaimRules()).validate(token(), NOW_MS).principal == "alice"
        with pytest.raises(NoKeys, match="302"):
            fetch(f"{url}/moved")
        server.shutdown()
    with pytest.raises(NoKeys, match="localhost"):
        fetch(f"{url}/keys")


async def until_valid(keys: TokenKeys, signed: str) -> None:
    async with asyncio.timeout(WAIT_S_MAX):
        while True:
            try:
                keys.validate(signed, NOW_MS)
                return
            except InvalidToken:
                await asyncio.sleep(0.01)


def running(path: Path, test: Any, **more: Any) -> None:
    async def run() -> None:
        keys = TokenKeys(path.as_uri(), ClaimRules(), **{"refresh_s": 3_600.0, "backoff_s": (0.01, 0.02), **more})
        task = asyncio.create_task(keys.run())
        try:
            await asyncio.wait_for(test(keys), WAIT_S_MAX)
        finally:
            task.cancel()

    asyncio.run(run())


def test_until_there_are_keys_no_token_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"

    async def test(keys: TokenKeys) -> None:
        with pytest.raises(InvalidToken, match="not been fetched yet"):
            keys.validate(token(), NOW_MS)
        path.write_bytes(jwks(jwk()))
        await until_valid(keys, token())

    running(path, test)


def test_keys_are_fetched_again_by_the_interval(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(jwks(jwk()))

    async def test(keys: TokenKeys) -> None:
        await until_valid(keys, token())
        path.write_bytes(jwks(jwk("ES256")))
        await until_valid(keys, token("ES256"))
        with pytest.raises(InvalidToken):
            keys.validate(token(), NOW_MS)

    running(path, test, refresh_s=0.01)


def test_a_token_of_a_new_key_makes_the_keys_be_fetched_earlier_but_not_often(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(jwks(jwk()))
    now_s = [time.monotonic()]

    async def test(keys: TokenKeys) -> None:
        await until_valid(keys, token())
        path.write_bytes(jwks(jwk("ES256")))
        for _ in range(20):
            with pytest.raises(InvalidToken):
                keys.validate(token("ES256"), NOW_MS)
            await asyncio.sleep(0.005)
        now_s[0] += token_keys.EARLIER_S_MIN
        await until_valid(keys, token("ES256"))

    running(path, test, clock=lambda: now_s[0])


def test_an_issuer_that_does_not_answer_holds_up_no_handshake_and_no_stop(tmp_path: Path) -> None:
    keys = make_keys(tmp_path)
    sasl = [f"S{number}" for number in range(os.cpu_count() or 1)]  # each fetches, and no more threads shake hands
    with socket.create_server(("127.0.0.1", 0)) as silent:
        changed = {
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in ["PLAINTEXT", "SSL", *sasl]),
            "listener.security.protocol.map": ",".join(
                ["PLAINTEXT:PLAINTEXT", "SSL:SSL", *(f"{name}:SASL_PLAINTEXT" for name in sasl)]
            ),
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"https://localhost:{silent.getsockname()[1]}/keys",
        }
        with moldau.run(overrides={**overrides(keys), **changed}) as broker:
            held = [silent.accept()[0] for _ in sasl]
            begun_s = time.monotonic()
            address = broker.addresses["SSL"]
            context = ssl.create_default_context(cafile=str(keys.trusted))
            plain = socket.create_connection((address.host, address.port), WAIT_S_MAX)
            with plain, context.wrap_socket(plain, server_hostname="localhost"):
                shaken_s = time.monotonic() - begun_s
            begun_s = time.monotonic()
        stopped_s = time.monotonic() - begun_s
        for one in held:
            one.close()
    assert shaken_s < token_keys.FETCH_S_MAX / 2
    assert stopped_s < token_keys.FETCH_S_MAX / 2


def test_an_answer_that_drips_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece comes in time, and the whole never does."""
    keys = make_keys(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(keys.trusted))
    monkeypatch.setattr(token_keys, "FETCH_S_MAX", 0.5)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(keys.broker)
    is_over = threading.Event()

    def drip(server: socket.socket) -> None:
        with contextlib.suppress(OSError), context.wrap_socket(server.accept()[0], server_side=True) as peer:
            peer.recv(4_096)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            while not is_over.wait(0.05):
                peer.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as server:
        dripping = threading.Thread(target=drip, args=(server,))
        dripping.start()
        try:
            with pytest.raises(NoKeys, match="no whole answer within"):
                fetch(f"https://localhost:{server.getsockname()[1]}/keys")
        finally:
            is_over.set()
            dripping.join()

"""Tools that log in with Kerberos tickets: by a client.properties of Java's, and by librdkafka's settings."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import moldau
from moldau.client.security import can_secure, security_of
from moldau.embedded.broker import EmbeddedBroker
from moldau.spark.clients.broker_connection import BrokerConnection
from moldau.wire.messages import MetadataRequest, MetadataResponse
from tests.cli.conftest import run_tool
from tests.kerberos import Realm, in_realm
from tests.node.securing.test_kerberos import REAUTHENTICATION_MS, SERVICE, overrides

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
TOOLS = [("users", "list"), ("quotas", "list"), ("acls", "list")]


@pytest.fixture(scope="module", autouse=True)
def belonging(realm: Realm) -> Iterator[None]:
    with in_realm(realm):
        yield


@pytest.fixture(scope="module")
def broker(realm: Realm) -> Iterator[EmbeddedBroker]:
    with moldau.run(overrides=overrides(realm.add(SERVICE))) as running:
        yield running


def address(broker: EmbeddedBroker, listener: str = "SASL_PLAINTEXT") -> str:
    return f"localhost:{broker.addresses[listener].port}"


def java_file(path: Path, options: str) -> str:
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        f"sasl.jaas.config={MODULE} {options};\n"
    )
    return os.fspath(path)


@pytest.mark.parametrize("words", TOOLS, ids=lambda words: words[0])
def test_a_file_of_javas_is_enough(
    words: tuple[str, ...], broker: EmbeddedBroker, realm: Realm, tmp_path: Path
) -> None:
    file = java_file(tmp_path / "client.properties", f'useKeyTab=true keyTab="{realm.add("alice")}" principal="alice"')
    ended = run_tool(address(broker), *words, "--command-config", file)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_tickets_of_kinit_are_enough(
    broker: EmbeddedBroker, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = java_file(tmp_path / "client.properties", "useTicketCache=true")
    ended = run_tool(address(broker), "users", "list", "--command-config", file)
    assert "SASL GSSAPI: No Kerberos credentials available" in ended.stderr
    cache = realm.ticket("alice", realm.add("alice"))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
    ended = run_tool(address(broker), "users", "list", "--command-config", file)
    assert (ended.returncode, ended.stderr) == (0, "")
    named = java_file(tmp_path / "named.properties", f'useTicketCache=true ticketCache="{cache}"')
    ended = run_tool(address(broker), "users", "list", "--command-config", named)
    assert "leave out ticketCache" in ended.stderr


def test_a_tool_of_librdkafka_says_that_it_can_not(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """The wheels of confluent-kafka come without GSSAPI."""
    file = java_file(tmp_path / "client.properties", "useTicketCache=true")
    ended = run_tool(address(broker), "produce", "orders", "--command-config", file)
    (line,) = ended.stderr.splitlines()
    assert "No provider for SASL mechanism GSSAPI" in line
    assert ended.returncode != 0


def test_connections_of_spark_log_in_with_a_key_and_again(broker: EmbeddedBroker, realm: Realm) -> None:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.keytab": os.fspath(realm.add("alice")),
        "sasl.kerberos.principal": "alice",
    }
    assert can_secure(settings)
    assert not can_secure({**settings, "sasl.kerberos.keytab": "/nowhere"}), "librdkafka says what is missing"
    host, port = address(broker, "SHORT").split(":")
    security = security_of(tuple(settings.items()))
    connection = BrokerConnection(host, int(port), client_id="test", timeout_s=20, security=security)
    try:
        connection._renewed_s = 0.0  # the time has come
        answer = connection.call(MetadataRequest(topics=[]), 1, MetadataResponse)
        assert len(answer.brokers) == 1
        assert 0 < connection._renewed_s - time.monotonic() < REAUTHENTICATION_MS / 1_000
    finally:
        connection.close()

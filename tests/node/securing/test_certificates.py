"""Certificates that change while the broker runs: by files, by configuration, and not if they can't be used."""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

import moldau
from moldau.security.tls.issuing import new_server
from tests.node.securing.secured import Keys, Secured, make_keys, overrides, write_identity

CHANGE_S_MAX = 20.0
LOCATION = "listener.name.ssl.ssl.keystore.location"


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Each test leaves it with a certificate that works."""
    keys = make_keys(tmp_path_factory.mktemp("changing"))
    secured = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"}
    with moldau.run(overrides={**overrides(keys), **secured}) as broker:
        yield Secured(broker, keys)


def shown(secured: Secured) -> bytes:
    """The certificate that a client is shown who connects now."""
    context = ssl.create_default_context(cafile=str(secured.keys.trusted))
    address = secured.broker.addresses["SSL"]
    with socket.create_connection((address.host, address.port), 20) as plain:
        session = context.wrap_socket(plain, server_hostname="localhost")
        certificate = session.getpeercert(binary_form=True)
        session.close()
    assert certificate is not None
    return certificate


def wait_for_another(secured: Secured, before: bytes) -> None:
    deadline_s = time.monotonic() + CHANGE_S_MAX
    while shown(secured) == before:
        assert time.monotonic() < deadline_s, secured.broker.output()
        time.sleep(0.1)


def wait_for_line(secured: Secured, text: str) -> None:
    deadline_s = time.monotonic() + CHANGE_S_MAX
    while text not in secured.broker.output():
        assert time.monotonic() < deadline_s, secured.broker.output()
        time.sleep(0.1)


def new_broker(keys: Keys, path: Path, *hosts: str) -> Path:
    identity = new_server(keys.authority, hosts=list(hosts) or ["localhost", "127.0.0.1"], now=datetime.now(UTC))
    write_identity(path, identity)
    return path


def alter(secured: Secured, **values: str | None) -> None:
    admin = AdminClient(secured.client("PLAINTEXT"))
    entries = [
        ConfigEntry(
            f"listener.name.ssl.{name.replace('_', '.')}",
            value or "",
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.BROKER, "0", incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(20)


def test_a_file_that_changes_is_taken_and_connections_stay(changing: Secured) -> None:
    lost: list[object] = []
    client = AdminClient(changing.client("SSL", error_cb=lost.append))
    client.list_topics(timeout=20)
    before = shown(changing)
    os.replace(new_broker(changing.keys, changing.keys.folder / "next.pem"), changing.keys.broker)
    wait_for_another(changing, before)
    client.list_topics(timeout=20)
    client.poll(0)
    assert lost == []
    kept = shown(changing)
    changing.keys.broker.write_text("-----BEGIN nothing")
    wait_for_line(changing, "the certificate in use stays: ssl.keystore.location: ")
    assert shown(changing) == kept
    os.replace(new_broker(changing.keys, changing.keys.folder / "next.pem"), changing.keys.broker)
    wait_for_another(changing, kept)


def test_the_configuration_names_another_file(changing: Secured) -> None:
    before = shown(changing)
    other = new_broker(changing.keys, changing.keys.folder / "other.pem")
    alter(changing, ssl_keystore_location=str(other))
    wait_for_another(changing, before)
    alter(changing, ssl_keystore_location=None)
    deadline_s = time.monotonic() + CHANGE_S_MAX
    while shown(changing) != before:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


@pytest.mark.parametrize("kind", ["missing", "no certificate", "another name", "fewer hosts"])
def test_a_certificate_that_cant_be_used_is_refused_and_the_old_one_stays(kind: str, changing: Secured) -> None:
    before, path = shown(changing), changing.keys.folder / "wrong.pem"
    if kind == "no certificate":
        path.write_text("nothing")
    elif kind == "another name":
        new_broker(changing.keys, path, "elsewhere", "localhost", "127.0.0.1")
    elif kind == "fewer hosts":
        new_broker(changing.keys, path, "localhost")
    with pytest.raises(KafkaException, match=LOCATION.replace(".", r"\.")):
        alter(changing, ssl_keystore_location=str(path))
    assert shown(changing) == before


def test_only_stores_and_only_of_one_broker_change(changing: Secured) -> None:
    with pytest.raises(KafkaException, match="Cannot update these configs dynamically"):
        alter(changing, ssl_client_auth="required")
    admin = AdminClient(changing.client("PLAINTEXT"))
    entry = ConfigEntry(LOCATION, "/x", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "", incremental_configs=[entry])
    with pytest.raises((KafkaException, ValueError)):
        admin.incremental_alter_configs([resource])[resource].result(20)


def test_a_password_that_was_set_is_not_described(changing: Secured) -> None:
    path = changing.keys.folder / "store.p12"
    now = datetime.now(UTC)
    identity = new_server(changing.keys.authority, hosts=["localhost", "127.0.0.1"], now=now)
    path.write_bytes(identity.pkcs12("hush-hush"))
    before = shown(changing)
    alter(changing, ssl_keystore_location=str(path), ssl_keystore_password="hush-hush", ssl_keystore_type="PKCS12")
    wait_for_another(changing, before)
    admin = AdminClient(changing.client("PLAINTEXT"))
    resource = ConfigResource(ResourceType.BROKER, "0")
    described = admin.describe_configs([resource])[resource].result(20)
    assert described[LOCATION].value == str(path)
    assert described["listener.name.ssl.ssl.keystore.password"].value is None
    assert "hush" not in changing.broker.output()
    before = shown(changing)
    alter(changing, ssl_keystore_location=None, ssl_keystore_password=None, ssl_keystore_type=None)
    wait_for_another(changing, before)

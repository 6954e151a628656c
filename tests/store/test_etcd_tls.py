"""An etcd that speaks TLS alone, and wants a certificate of every client."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.store.etcd import open_etcd
from moldau.store.service_security import service_tls
from moldau.store.store import START
from moldau.store.tree.client import Unreachable
from moldau.store.tree.store import TreeStore
from tests.apache_kafka import free_ports
from tests.security.tls.conftest import world
from tests.security.tls.world import World
from tests.store import etcd_cluster as etcd
from tests.store.kinds import lead, run

__all__ = ["world"]

pytestmark = [
    pytest.mark.long,
    pytest.mark.xdist_group("store"),
    pytest.mark.skipif(not etcd.is_available(), reason="needs etcd, or apt-get to fetch it"),
]


@pytest.fixture(scope="module")
def keys(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A broker's keys for a server that runs."""
    folder = tmp_path_factory.mktemp("etcd-tls")
    files = {
        "server.crt": world.server.certificate_pem(),
        "server.key": world.server.key_pem(),
        "ca.pem": world.authority.certificate_pem(),
        "client.pem": world.client.key_pem() + world.client.certificate_pem(),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with server(folder) as port:
        yield {
            "etcd.connect": f"127.0.0.1:{port}/secured",
            "etcd.ssl.client.enable": "true",
            "etcd.ssl.truststore.location": str(folder / "ca.pem"),
            "etcd.ssl.keystore.location": str(folder / "client.pem"),
        }


@contextmanager
def server(folder: Path) -> Iterator[int]:
    port, peer_port = free_ports(2)
    client, peer = f"https://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    options = {
        "name": "one",
        "data-dir": folder / "data",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"one={peer}",
        "log-level": "error",
        "cert-file": folder / "server.crt",
        "key-file": folder / "server.key",
        "trusted-ca-file": folder / "ca.pem",
        "client-cert-auth": "true",
    }
    command = [etcd.program(), *(f"--{name}={value}" for name, value in options.items())]
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


async def opened(keys: dict[str, str], timeout_ms: int = 30_000) -> TreeStore:
    service = BrokerConfig.of(keys).metadata_service
    assert service is not None
    return await open_etcd(
        service.connect,
        SystemClock(),
        session_timeout_ms=9_000,
        connection_timeout_ms=timeout_ms,
        tls=service_tls(service),
    )


def test_a_broker_with_a_certificate_is_let_in(keys: dict[str, str]) -> None:
    async def test() -> None:
        store = await opened(keys)
        await store.append(b"an entry", controller_epoch=await lead(store, 1))
        assert [each.payload for each in (await store.read(START)).entries] == [b"an entry"]
        await store.close()

    run(test)


def test_a_broker_without_one_is_not(keys: dict[str, str]) -> None:
    bare = {name: value for name, value in keys.items() if "keystore" not in name}

    async def test() -> None:
        with pytest.raises(Unreachable):
            await opened(bare, 2_000)

    run(test)

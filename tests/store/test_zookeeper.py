"""What only a ZooKeeper ensemble has: connections, servers and a majority to lose, and nodes that operators read."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat
from kazoo.security import make_acl

from moldau.core.clock import SystemClock
from moldau.store.process import this_process
from moldau.store.store import (
    START,
    CorruptStore,
    DescribedEndpoint,
    Description,
    Fenced,
    Registration,
    StoreError,
)
from moldau.store.tree.connect_string import ConnectString
from moldau.store.tree.store import TreeStore
from moldau.store.zookeeper import open_zookeeper
from tests.apache_kafka import free_ports
from tests.store.ensemble import SESSION_MS_MAX, Ensemble
from tests.store.kinds import ZookeeperKind, lead, open_in_zookeeper, run

pytestmark = pytest.mark.xdist_group("store")

PLAIN = DescribedEndpoint("PLAINTEXT", "PLAINTEXT", "b1.example.org", 9092)
SECURE = DescribedEndpoint("CLIENTS", "SASL_SSL", "::1", 9093)


@contextmanager
def connected(connect: str, **options: Any) -> Iterator[Any]:
    client = KazooClient(connect, **options)
    client.start(30)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def read_nodes(kind: ZookeeperKind, *paths: str) -> list[tuple[Any, ZnodeStat]]:
    with connected(kind.connect) as client:
        return [(json.loads(data), stat) for data, stat in (client.get(kind.chroot + path) for path in paths)]


def test_operators_find_what_they_know(ensemble: Ensemble) -> None:
    kind = ZookeeperKind(ensemble.connect)
    description = Description("cluster-1", (SECURE, PLAIN), "rack-a")

    async def test() -> None:
        async with kind.opened() as store:
            await store.register(Registration(7, b"\x00opaque\xff", description))
            epoch = (await store.elect(7)).epoch
            await store.append(b"a", controller_epoch=epoch)
            nodes = await asyncio.to_thread(
                read_nodes, kind, "/brokers/ids/7", "/controller", "/controller_epoch", "/cluster/id", "/moldau/log"
            )
            (broker, broker_stat), (controller, controller_stat), (known_epoch, _), (cluster, _), (head, _) = nodes
            assert broker.pop("timestamp").isdigit()
            assert broker.pop("moldau")["process"]["pid"] == this_process().pid
            assert broker == {
                "version": 5,
                "host": "b1.example.org",
                "port": 9092,
                "jmx_port": -1,
                "endpoints": ["CLIENTS://[::1]:9093", "PLAINTEXT://b1.example.org:9092"],
                "listener_security_protocol_map": {"CLIENTS": "SASL_SSL", "PLAINTEXT": "PLAINTEXT"},
                "features": {},
                "rack": "rack-a",
            }
            assert controller["brokerid"] == 7
            assert controller["version"] == 1
            assert known_epoch == epoch
            assert cluster == {"version": "1", "id": "cluster-1"}
            assert head == {"version": 1, "end": 1, "first": 1, "snapshot": None}
            assert broker_stat.ephemeralOwner == controller_stat.ephemeralOwner != 0
            assert await store.registrations() == [Registration(7, b"\x00opaque\xff")]

    run(test)


def test_another_clusters_broker_is_refused(ensemble: Ensemble) -> None:
    async def test() -> None:
        kind = ZookeeperKind(ensemble.connect)
        async with kind.opened() as store:
            await store.register(Registration(1, b"", Description("cluster-1")))
            with pytest.raises(StoreError, match="belongs to cluster cluster-1, this broker to cluster-2"):
                await store.register(Registration(1, b"", Description("cluster-2")))

    run(test)


def test_a_cluster_of_another_system_is_left_alone(ensemble: Ensemble) -> None:
    kind = ZookeeperKind(ensemble.connect)

    async def test() -> None:
        with pytest.raises(StoreError, match="holds a cluster of another system"):
            await open_in_zookeeper(kind.connect + kind.chroot)

    with connected(kind.connect) as client:
        client.ensure_path(f"{kind.chroot}/brokers/ids")
        run(test)
        assert client.get_children(kind.chroot) == ["brokers"]


def test_what_is_damaged_is_named(ensemble: Ensemble) -> None:
    kind = ZookeeperKind(ensemble.connect)

    def damage(path: str, data: bytes) -> None:
        with connected(kind.connect) as client:
            client.set(kind.chroot + path, data)

    async def test() -> None:
        async with kind.opened() as store:
            epoch = await lead(store, 1)
            for text in (b"a", b"b"):
                await store.append(text, controller_epoch=epoch)
            entry = "/moldau/log/entries/" + "2".zfill(19)
            await asyncio.to_thread(damage, entry, b"no entry")
            with pytest.raises(CorruptStore, match=f"{entry} is not an entry"):
                await store.read(START)
            await asyncio.to_thread(damage, "/moldau/log", b'{"version": 2}')
            with pytest.raises(StoreError, match="/moldau/log has version 2; this release reads version 1"):
                await store.read(START)
            await asyncio.to_thread(damage, "/moldau/log", b"[]")
            with pytest.raises(CorruptStore, match="/moldau/log is damaged"):
                await store.read(START)

    run(test)


def test_a_registration_that_nobody_can_read_hides_no_other(ensemble: Ensemble) -> None:
    """One node of another program below /brokers/ids kept a controller from seeing who lives."""
    kind = ZookeeperKind(ensemble.connect)

    def damage() -> None:
        with connected(kind.connect) as client:
            client.create(f"{kind.chroot}/brokers/ids/7", b'{"version": 5, "host": "h1", "port": 9092}')
            client.set(f"{kind.chroot}/brokers/ids/2", b"no registration")

    async def test() -> None:
        async with kind.opened() as first, kind.opened(process=this_process()._replace(pid=2**22 - 1)) as second:
            await first.register(Registration(1, b"one"))
            await second.register(Registration(2, b"two"))
            await asyncio.to_thread(damage)
            assert await first.registrations() == [Registration(1, b"one")]
            await second.update(Registration(2, b"two again"))
            assert await first.registrations() == [Registration(1, b"one"), Registration(2, b"two again")]

    run(test)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("h1", ConnectString(("h1:2181",))),
        ("h1:2181,h2:2182", ConnectString(("h1:2181", "h2:2182"))),
        ("h1:2181;h2:2182/a/b/", ConnectString(("h1:2181", "h2:2182"), "/a/b")),
        ("[::1]:2181, h2/", ConnectString(("[::1]:2181", "h2:2181"))),
    ],
)
def test_servers_and_chroot_are_told_apart(text: str, parsed: ConnectString) -> None:
    assert ConnectString.parse(text, key="zookeeper.connect", port=2181) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "h1:port",
        "h1:0",
        "h1:65536",
        "h1,,h2",
        "h1:2181/a//b",
        "h1/../x",
        "h1:2181/x,h2:2181/x",
        "h 1",
        "::1",
        "a..b",
        f"{64 * 'h'}:1",
    ],
)
def test_a_connect_string_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(StoreError) as refused:
        ConnectString.parse(text, key="zookeeper.connect", port=2181)
    expected = "expected host:port[,host:port...][/chroot]"
    assert str(refused.value) == f"Invalid value {text!r} for zookeeper.connect: {expected}"


def test_servers_that_are_not_there_are_named() -> None:
    async def test() -> None:
        connect = f"127.0.0.1:{free_ports(1)[0]}/x"
        with pytest.raises(StoreError, match=f"no ZooKeeper server of {connect} has answered for 0.5 s"):
            await open_zookeeper(connect, SystemClock(), connection_timeout_ms=500)

    run(test)


def test_a_broker_that_lives_elsewhere_is_waited_for_and_then_refused(ensemble: Ensemble) -> None:
    elsewhere = this_process()._replace(pid=2**22 - 1, boot="another machine's")

    async def test() -> None:
        kind = ZookeeperKind(ensemble.connect)
        async with kind.opened(session_timeout_ms=2_000) as ours:
            async with kind.opened(process=elsewhere) as theirs:
                await theirs.register(Registration(1, b"theirs"))
                refusal = f"broker 1 is already running as process {elsewhere.pid} on {socket.gethostname()}"
                with pytest.raises(StoreError, match=refusal):
                    await ours.register(Registration(1, b"ours"))
                registering = asyncio.ensure_future(ours.register(Registration(1, b"ours")))
                await asyncio.sleep(0.2)
                assert await theirs.registrations() == [Registration(1, b"theirs")]
            await registering
            assert await ours.registrations() == [Registration(1, b"ours")]

    run(test)


def test_a_session_is_no_longer_than_the_ensemble_allows(ensemble: Ensemble) -> None:
    async def test() -> None:
        async with ZookeeperKind(ensemble.connect).opened(session_timeout_ms=SESSION_MS_MAX * 2) as store:
            assert cast(TreeStore, store)._lease.duration_s == pytest.approx(SESSION_MS_MAX / 1000 * 2 / 3)

    run(test)


def test_what_an_ensemble_forbids_is_said_in_a_line(ensemble: Ensemble) -> None:
    kind = ZookeeperKind(ensemble.connect)
    with connected(kind.connect) as client:
        client.ensure_path(kind.chroot)
        client.set_acls(kind.chroot, [make_acl("world", "anyone", read=True)])

    async def test() -> None:
        refusal = f"ZooKeeper at {kind.connect}{kind.chroot} refused a request: NoAuthError"
        with pytest.raises(StoreError, match=refusal):
            await open_in_zookeeper(kind.connect + kind.chroot)

    run(test)


def test_a_session_that_the_ensemble_ended_is_lost(ensemble: Ensemble) -> None:
    async def test() -> None:
        kind = ZookeeperKind(ensemble.connect)
        async with kind.opened() as store:
            epoch = await lead(store, 1)
            lost = asyncio.Event()
            store.on_session_lost = lost.set
            await asyncio.to_thread(end_session, store, kind.connect)
            await lost.wait()
            with pytest.raises(Fenced):
                await store.append(b"late", controller_epoch=epoch)
            assert await lead(store, 1) == epoch + 1
            assert await store.append(b"a", controller_epoch=epoch + 1) == 1

    run(test)


def end_session(store: Any, connect: str) -> None:
    """As the ensemble does when it heard nothing for too long: whoever has a session's number and word may close it."""
    with connected(connect, client_id=store._client._kazoo.client_id):
        pass


def test_snapshots_leave_nothing_behind(ensemble: Ensemble) -> None:
    kind = ZookeeperKind(ensemble.connect)

    def children() -> dict[str, int]:
        with connected(kind.connect) as client:
            folders = ("entries", "parts", "snapshots")
            return {folder: len(client.get_children(f"{kind.chroot}/moldau/log/{folder}")) for folder in folders}

    async def until_there_are(**counts: int) -> None:
        while await asyncio.to_thread(children) != counts:
            pass

    async def test() -> None:
        large = bytes(1_200_000)
        async with kind.opened() as store:
            epoch = await lead(store, 1)
            for text in (b"a", large, b"c"):
                await store.append(text, controller_epoch=epoch)
            await store.snapshot(large, position=2, controller_epoch=epoch)
            await until_there_are(entries=1, parts=0, snapshots=3)
            await store.append(large, controller_epoch=epoch)
            await until_there_are(entries=2, parts=3, snapshots=3)
            await store.snapshot(b"all", position=4, controller_epoch=epoch)
            await until_there_are(entries=0, parts=0, snapshots=1)

    run(test)

"""Stores whose servers are elsewhere: connections, answers, servers and a majority that are lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from moldau.store.store import START, Fenced, MetadataStore, Registration, StoreError
from tests.store.ensemble import Ensemble
from tests.store.etcd_cluster import EtcdCluster
from tests.store.kinds import EtcdKind, ZookeeperKind, lead, open_in_etcd, open_in_zookeeper, run
from tests.store.proxy import Proxy, proxies

pytestmark = pytest.mark.xdist_group("store")


@dataclass(frozen=True)
class Cluster:
    servers: Ensemble | EtcdCluster
    open: Callable[..., Awaitable[MetadataStore]]

    def kind(self) -> ZookeeperKind | EtcdKind:
        kind = ZookeeperKind if isinstance(self.servers, Ensemble) else EtcdKind
        return kind(self.servers.connect)


@pytest.fixture(params=["zookeeper", pytest.param("etcd", marks=pytest.mark.long)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    if request.param == "zookeeper":
        return Cluster(request.getfixturevalue("ensemble"), open_in_zookeeper)
    return Cluster(request.getfixturevalue("etcd_cluster"), open_in_etcd)


@asynccontextmanager
async def behind_proxies(cluster: Cluster, **options: Any) -> AsyncIterator[tuple[MetadataStore, list[Proxy], Any]]:
    """A store whose way to each server leads through a proxy, and the kind for others that go directly."""
    kind = cluster.kind()
    async with proxies(cluster.servers.ports) as between:
        connect = ",".join(f"127.0.0.1:{proxy.port}" for proxy in between)
        store = await cluster.open(connect + kind.chroot, **options)
        try:
            yield store, between, kind
        finally:
            for proxy in between:
                proxy.heal()
            await store.close()


def test_a_connection_that_is_lost_and_found_changes_nothing(cluster: Cluster) -> None:
    async def test() -> None:
        async with behind_proxies(cluster) as (store, between, _):
            store.on_session_lost = lambda: pytest.fail("the session went on")
            epoch = await lead(store, 1)
            watching = store.watch(START)
            for number in range(1, 11):
                appending = asyncio.ensure_future(store.append(b"%d" % number, controller_epoch=epoch))
                await asyncio.sleep(0)
                for proxy in between:
                    proxy.cut()
                assert await appending == number
                assert await anext(watching) == number
            entries = (await store.read(START)).entries
            assert [entry.payload for entry in entries] == [b"%d" % number for number in range(1, 11)]

    run(test)


def test_an_append_whose_answer_is_lost_is_found(cluster: Cluster) -> None:
    async def test() -> None:
        async with behind_proxies(cluster) as (store, between, kind):
            epoch = await lead(store, 1)
            async with kind.opened() as reader:
                for text in (b"small", b"x" * 1_200_000):
                    before = (await reader.read(START)).end or START
                    for proxy in between:
                        proxy.silence(answers_only=True)
                    appending = asyncio.ensure_future(store.append(text, controller_epoch=epoch))
                    if len(text) < 1_000:
                        assert await anext(reader.watch(before)) == before + 1
                    else:
                        await asyncio.sleep(0.2)
                    for proxy in between:
                        proxy.heal()
                        proxy.cut()
                    assert await appending == before + 1
                assert [entry.payload for entry in (await reader.read(START)).entries] == [b"small", b"x" * 1_200_000]

    run(test)


def test_a_broker_without_the_ensemble_stops_before_it_is_missed(cluster: Cluster) -> None:
    async def test() -> None:
        async with behind_proxies(cluster, session_timeout_ms=6_000) as (store, between, kind), kind.opened() as other:
            epoch = await lead(store, 1)
            lost = asyncio.Event()
            store.on_session_lost = lost.set
            for proxy in between:
                proxy.silence()
            with pytest.raises(Fenced):
                await store.append(b"late", controller_epoch=epoch)
            assert lost.is_set()
            assert await other.registrations() == [Registration(1, b"1")], "nobody can have taken its place yet"
            async for living in other.watch_registrations():
                if not living:
                    break
            second = await lead(other, 2)
            for proxy in between:
                proxy.heal()
            with pytest.raises(Fenced):
                await store.append(b"late", controller_epoch=epoch)
            await store.register(Registration(1, b"again"))
            assert (await store.elect(1)).epoch == second
            assert (await other.read(START)).end is None, "what was sent when it was cut off came to nothing"

    run(test)


def test_a_server_that_falls_silent_is_left(cluster: Cluster) -> None:
    async def test() -> None:
        async with behind_proxies(cluster, session_timeout_ms=6_000) as (store, between, _):
            store.on_session_lost = lambda: pytest.fail("two servers were there")
            epoch = await lead(store, 1)
            used = next(proxy for proxy in between if proxy.is_used)
            used.silence()
            assert await store.append(b"a", controller_epoch=epoch) == 1
            assert not used.is_used or any(proxy.is_used for proxy in between if proxy is not used)

    run(test)


def test_a_killed_leader_is_replaced(cluster: Cluster) -> None:
    async def test() -> None:
        kind = cluster.kind()
        async with kind.opened() as store, kind.opened() as other:
            store.on_session_lost = lambda: pytest.fail("the session went on")
            epoch = await lead(store, 1)
            await other.register(Registration(2, b"2"))
            leader = cluster.servers.leader()
            cluster.servers.kill(leader)
            try:
                assert await store.append(b"a", controller_epoch=epoch) == 1
                assert (await other.read(START)).end == 1
                assert [each.broker_id for each in await other.registrations()] == [1, 2]
            finally:
                cluster.servers.start(leader)
                await asyncio.to_thread(cluster.servers.wait_until_all_serve)

    run(test)


def test_without_a_majority_nobody_decides(cluster: Cluster) -> None:
    async def test() -> None:
        kind = cluster.kind()
        async with kind.opened(session_timeout_ms=3_000) as store:
            epoch = await lead(store, 1)
            await store.append(b"a", controller_epoch=epoch)
            lost = asyncio.Event()
            store.on_session_lost = lost.set
            cluster.servers.kill(0)
            cluster.servers.kill(1)
            try:
                with pytest.raises(Fenced):
                    await store.append(b"b", controller_epoch=epoch)
                await lost.wait()
                with pytest.raises(StoreError, match="has answered for 3 s"):
                    await store.read(START)
            finally:
                cluster.servers.start(0)
                cluster.servers.start(1)
                await asyncio.to_thread(cluster.servers.wait_until_all_serve)
            again = await lead_and_append(store, b"c")
            assert again > epoch
            payloads = [entry.payload for entry in (await store.read(START)).entries]
            assert payloads in ([b"a", b"c"], [b"a", b"b", b"c"])

    run(test)


async def lead_and_append(store: MetadataStore, payload: bytes) -> int:
    """As a broker does whose servers have just come back: a session may be lost once more before all is well."""
    while True:
        try:
            epoch = await lead(store, 1)
            break
        except StoreError:
            await asyncio.sleep(0.05)
    await store.append(payload, controller_epoch=epoch)
    return epoch

"""Brokers whose sessions end although they live: one that was stopped for a while, one that lost its ensemble."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import moldau
from moldau.embedded.requests import describe
from tests.cluster.asking import until
from tests.cluster.members import Writing, chroot, three_members, values_of, writing
from tests.store.ensemble import Ensemble
from tests.store.proxy import Proxy

pytestmark = pytest.mark.xdist_group("store")

ALL = frozenset({1, 2, 3})
SESSION_MS = 3_000


class ProxyThread:
    """A proxy before one server of the ensemble, for tests that have no loop."""

    def __init__(self, target_port: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.proxy = Proxy(target_port)
        self._run(self.proxy.start())

    @contextmanager
    def silence(self) -> Iterator[None]:
        self._loop.call_soon_threadsafe(self.proxy.silence)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self.proxy.heal)

    def stop(self) -> None:
        self._run(self.proxy.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cables(ensemble: Ensemble) -> Iterator[dict[int, ProxyThread]]:
    """What connects each broker with the ensemble."""
    made = {broker_id: ProxyThread(ensemble.ports[broker_id % len(ensemble.ports)]) for broker_id in ALL}
    yield made
    for each in made.values():
        each.stop()


@pytest.fixture(scope="module")
def cluster(
    cables: dict[int, ProxyThread], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[moldau.EmbeddedCluster]:
    path = chroot()
    connects = {broker_id: f"127.0.0.1:{each.proxy.port}{path}" for broker_id, each in cables.items()}
    with three_members(
        tmp_path_factory.mktemp("brokers"), connects, zookeeper_session_timeout_ms=SESSION_MS
    ) as running:
        yield running


def in_sync(cluster: moldau.EmbeddedCluster, topic: str) -> set[frozenset[int]]:
    return set(cluster.seen(topic).in_sync.values())


def seen_by_others(cluster: moldau.EmbeddedCluster, victim: int, topic: str) -> tuple[int, set[int]]:
    """The controller and the leaders, as a broker that nothing happened to knows them."""
    other = next(each for each in ALL if each != victim)
    seen = describe(cluster.brokers[other].address, topic)
    return seen.controller_id, set(seen.leaders.values())


@contextmanager
def nothing_lost(cluster: moldau.EmbeddedCluster, topic: str) -> Iterator[Writing]:
    """Of what is written meanwhile."""
    cluster.create_topic(topic, partitions=6, replication_factor=3, config={"min.insync.replicas": 2})
    with writing(cluster.bootstrap_servers, topic) as writes:
        yield writes
    until(lambda: in_sync(cluster, topic) == {ALL})
    found = values_of(cluster, topic, len(writes.acknowledged))
    assert set(writes.acknowledged) <= set(found)
    assert len(found) == len(set(found))


def is_replaced(cluster: moldau.EmbeddedCluster, victim: int, topic: str) -> bool:
    controller, leaders = seen_by_others(cluster, victim, topic)
    return victim not in {controller, *leaders} and -1 not in {controller, *leaders}


def test_a_controller_that_was_stopped_wakes_up_and_does_no_harm(cluster: moldau.EmbeddedCluster) -> None:
    victim = cluster.controller
    with nothing_lost(cluster, "paused") as writes:
        os.kill(cluster.brokers[victim].pid, signal.SIGSTOP)
        try:
            until(lambda: is_replaced(cluster, victim, "paused"))
            writes.until_more()
        finally:
            os.kill(cluster.brokers[victim].pid, signal.SIGCONT)
        until(lambda: in_sync(cluster, "paused") == {ALL})
        writes.until_more()
    assert "registers anew" in cluster.brokers[victim].output()


def test_a_broker_without_its_ensemble_stops_leading_and_comes_back(
    cluster: moldau.EmbeddedCluster, cables: dict[int, ProxyThread]
) -> None:
    victim = cluster.controller
    with nothing_lost(cluster, "cut") as writes:
        with cables[victim].silence():
            until(lambda: is_replaced(cluster, victim, "cut"))
            writes.until_more()
            assert cluster.brokers[victim].is_running
        until(lambda: in_sync(cluster, "cut") == {ALL})
        writes.until_more()
    assert "registers anew" in cluster.brokers[victim].output()

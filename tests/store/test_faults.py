"""A minute of faults: three brokers that want to control, and servers that come and go, as connections do."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from moldau.store.store import START, ControllerAndEpoch, Fenced, MetadataStore, Registration, StoreError, Tail
from tests.store.ensemble import Ensemble, running_ensemble
from tests.store.etcd_cluster import EtcdCluster, running_cluster
from tests.store.kinds import EtcdKind, ZookeeperKind, open_in_etcd, open_in_zookeeper, run
from tests.store.proxy import Proxy, proxies

DURATION_S = float(os.environ.get("MOLDAU_STORE_FAULTS_S", "60"))
SESSION_TIMEOUT_MS = 4_000
LARGE_BYTES = 700_000  # some entries have parts

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("store"), pytest.mark.timeout(DURATION_S + 240)]


Servers = Ensemble | EtcdCluster


class History:
    """What the brokers were told, to be compared with what the log says in the end."""

    def __init__(self) -> None:
        self.written: dict[int, bytes] = {}
        self.epochs: list[int] = []
        self.deciding: dict[int, int] = {}
        self.wrong: list[str] = []
        self.unknown = 0

    def elected(self, leadership: ControllerAndEpoch) -> None:
        others = {broker_id: epoch for broker_id, epoch in self.deciding.items() if broker_id != leadership.broker_id}
        if others:
            self.wrong.append(f"{leadership} was elected while {others} still decided")
        if self.epochs and leadership.epoch <= self.epochs[-1]:
            self.wrong.append(f"{leadership} after epoch {self.epochs[-1]}")
        self.epochs.append(leadership.epoch)
        self.deciding[leadership.broker_id] = leadership.epoch

    def stopped(self, broker_id: int) -> None:
        self.deciding.pop(broker_id, None)


class Contender:
    """A broker that registers, waits for its turn, writes for a while and resigns or goes on."""

    def __init__(self, store: MetadataStore, broker_id: int, history: History, chance: random.Random) -> None:
        self._store = store
        self._broker_id = broker_id
        self._history = history
        self._chance = chance
        self._incarnation = 0
        store.on_session_lost = lambda: history.stopped(broker_id)

    async def contend(self) -> None:
        while True:
            try:
                self._incarnation += 1
                await self._store.register(Registration(self._broker_id, b"%d" % self._incarnation))
                while True:
                    await self._take_turn()
            except StoreError:
                self._history.stopped(self._broker_id)
                await asyncio.sleep(0.05)

    async def _take_turn(self) -> None:
        leadership = await self._store.elect(self._broker_id)
        if leadership.broker_id != self._broker_id:
            await asyncio.sleep(0.05)
            return
        self._history.elected(leadership)
        for number in range(self._chance.randint(1, 30)):
            await self._write(leadership, number)
        self._history.stopped(self._broker_id)
        if self._chance.random() < 0.5:
            await self._store.resign(leadership)

    async def _write(self, leadership: ControllerAndEpoch, number: int) -> None:
        text = b"%d %d %d " % (leadership.epoch, self._broker_id, number)
        if self._chance.random() < 0.05:
            text = text.ljust(LARGE_BYTES, b".")
        try:
            position = await self._store.append(text, controller_epoch=leadership.epoch)
        except Fenced:
            self._history.unknown += 1
            raise
        if position in self._history.written:
            self._history.wrong.append(f"two entries were given position {position}")
        self._history.written[position] = text
        if self._chance.random() < 0.02:
            await self._store.snapshot(b"up to %d" % position, position=position, controller_epoch=leadership.epoch)


async def disturb(servers: Servers, between: list[list[Proxy]], chance: random.Random) -> None:
    while True:
        await asyncio.sleep(chance.uniform(0.2, 2.0))
        ways = chance.choice(between)
        match chance.choice(["cut", "silence", "half", "server", "leader"]):
            case "cut":
                for proxy in ways:
                    proxy.cut()
            case "silence":
                await silenced(ways, chance, answers_only=False)
            case "half":
                await silenced(ways, chance, answers_only=True)
            case "server":
                await restarted(servers, chance.randrange(3), chance)
            case "leader":
                leader = next((number for number in range(3) if servers.is_leader(number)), 0)
                await restarted(servers, leader, chance)


async def silenced(ways: list[Proxy], chance: random.Random, *, answers_only: bool) -> None:
    for proxy in ways:
        proxy.silence(answers_only=answers_only)
    await asyncio.sleep(chance.uniform(0.1, 6.0))
    for proxy in ways:
        proxy.heal()
        if chance.random() < 0.5:
            proxy.cut()


async def restarted(servers: Servers, number: int, chance: random.Random) -> None:
    servers.kill(number)
    await asyncio.sleep(chance.uniform(0.0, 2.0))
    servers.start(number)


@asynccontextmanager
async def contenders(
    servers: Servers, history: History, chance: random.Random
) -> AsyncIterator[tuple[ZookeeperKind | EtcdKind, list[list[Proxy]], list[Contender]]]:
    is_etcd = isinstance(servers, EtcdCluster)
    kind = EtcdKind(servers.connect) if is_etcd else ZookeeperKind(servers.connect)
    async with AsyncExitStack() as stack:
        between = [await stack.enter_async_context(proxies(servers.ports)) for _ in range(3)]
        made = []
        for broker_id, ways in enumerate(between):
            connect = ",".join(f"127.0.0.1:{proxy.port}" for proxy in ways)
            open_store = open_in_etcd if is_etcd else open_in_zookeeper
            store = await open_store(connect + kind.chroot, session_timeout_ms=SESSION_TIMEOUT_MS)
            stack.push_async_callback(store.close)
            made.append(Contender(store, broker_id, history, chance))
        yield kind, between, made


@pytest.mark.parametrize("running", [running_ensemble, running_cluster], ids=["zookeeper", "etcd"])
def test_what_was_written_is_there_once_and_in_order(
    tmp_path: Path, running: Callable[[Path], AbstractContextManager[Servers]]
) -> None:
    seed = int(os.environ.get("MOLDAU_STORE_FAULTS_SEED", "1"))
    chance, history = random.Random(seed), History()

    async def test(servers: Servers) -> None:
        async with contenders(servers, history, chance) as (kind, between, made):
            tasks = [asyncio.ensure_future(each.contend()) for each in made]
            tasks.append(asyncio.ensure_future(disturb(servers, between, chance)))
            await asyncio.wait(tasks, timeout=DURATION_S, return_when=asyncio.FIRST_COMPLETED)
            ended = [task for task in tasks if task.done()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for task in ended:
                task.result()
            for proxy in [proxy for ways in between for proxy in ways]:
                proxy.heal()
            for number in range(3):
                if number not in servers.running:
                    servers.start(number)
            await asyncio.to_thread(servers.wait_until_all_serve)
            async with kind.opened() as reader:
                check(history, await reader.read(START))

    with running(tmp_path) as servers:
        run(lambda: test(servers), limit_s=DURATION_S + 180)
    print(f"seed {seed}: {len(history.epochs)} elections, {len(history.written)} entries, {history.unknown} unknown")


def check(history: History, tail: Tail) -> None:
    assert not history.wrong, history.wrong
    assert len(history.written) > 20
    assert len(history.epochs) > 3
    first = tail.snapshot.position + 1 if tail.snapshot else 1
    assert [entry.position for entry in tail.entries] == list(range(first, first + len(tail.entries)))
    assert max(history.written) <= (tail.end or START), "an acknowledged entry is gone"
    payloads = {entry.position: entry.payload for entry in tail.entries}
    lost = [at for at, text in history.written.items() if at >= first and payloads[at] != text]
    assert not lost
    order = [int(entry.payload.split()[0]) for entry in tail.entries]
    assert order == sorted(order), "somebody wrote after the next one was elected"

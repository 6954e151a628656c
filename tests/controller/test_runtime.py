from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.controller import log_length, records, subscriptions
from moldau.controller.image import NO_CONTROLLER, BrokerImage, ClusterImage
from moldau.controller.members.brokers import decide_register_broker
from moldau.controller.producer_ids import ProducerIds
from moldau.controller.records import TopicDeleted
from moldau.controller.runtime import Controller
from moldau.controller.topics import CreatedTopic, NewTopic, TopicReference, decide_create_topics, decide_delete_topics
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode
from moldau.store.process import ProcessId
from moldau.store.sqlite import SqliteStore
from moldau.store.store import START, StoreError
from tests.controller.clusters import ENDPOINTS, topic_id

CONFIG = BrokerConfig.of({"node.id": "1"})
GONE = ProcessId(pid=2**22 - 1, started=1)


@asynccontextmanager
async def controlling(path: Path, node_id: int = 1, **options: Any) -> AsyncIterator[Controller]:
    store = await SqliteStore.open(path, **options)
    try:
        controller = await Controller.open(store, node_id, cluster_id="cluster")
        if controller.is_active:
            await register(controller, BrokerImage(node_id, ENDPOINTS))
        yield controller
        await controller.close()
    finally:
        await store.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(bounded())


async def register(controller: Controller, broker: BrokerImage) -> None:
    await controller.write(lambda image: decide_register_broker(image, broker))


async def create(controller: Controller, *names: str) -> list[CreatedTopic]:
    return await controller.write(
        lambda image: decide_create_topics(image, [NewTopic(name) for name in names], config=CONFIG)
    )


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for happens in another controller
        await asyncio.sleep(0.005)


def test_a_broker_that_does_not_serve_yet_stands_for_no_election(tmp_path: Path) -> None:
    """Unless it is the whole cluster: then nobody else can be asked for anything, and it has to write its start."""

    async def test() -> None:
        path = tmp_path / "store.db"
        async with controlling(path) as alone:
            assert alone.is_active
        store = await SqliteStore.open(path)
        opening = await Controller.open(store, 1, cluster_id="cluster", is_serving=False)
        assert opening.is_active
        await register(opening, BrokerImage(2, ENDPOINTS))
        await opening.close()
        opening = await Controller.open(store, 1, cluster_id="cluster", is_serving=False)
        async with controlling(path, 2) as other:
            await until(lambda: opening.image.controller_id == 2)
            assert other.is_active
        await until(lambda: opening.image.controller_id == NO_CONTROLLER)
        assert not opening.is_active
        opening.candidacy.stand()
        await until(lambda: opening.is_active)
        await opening.close()
        await store.close()

    run(test)


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with controlling(path) as controller:
            await create(controller, "a", "b")
            await controller.write(lambda image: decide_delete_topics(image, [TopicReference("a")], config=CONFIG))
            written = controller.image
        async with controlling(path) as controller:
            assert controller.image == written
            assert controller.image.topics.keys() == {"b"}
            assert controller.image.controller_id == 1

    run(test)


def test_decisions_that_wait_together_share_an_entry_and_see_each_other(tmp_path: Path) -> None:
    async def test() -> None:
        async with controlling(tmp_path / "store.db") as controller:
            before = (await controller._store.read(START)).end or 0
            replies = await asyncio.gather(*(create(controller, f"topic-{number % 50}") for number in range(100)))
            errors = [reply[0].error for reply in replies]
            assert errors == [ErrorCode.NONE] * 50 + [ErrorCode.TOPIC_ALREADY_EXISTS] * 50
            after = (await controller._store.read(START)).end or 0
            assert after - before <= 2

    run(test)


def test_listeners_know_before_the_caller_does(tmp_path: Path) -> None:
    async def test() -> None:
        seen: list[tuple[set[str], frozenset[str]]] = []

        def follow(old: ClusterImage, new: ClusterImage) -> None:
            seen.append((new.topics.keys() - old.topics.keys(), new.changed_topics))

        def broken(_old: ClusterImage, _new: ClusterImage) -> None:
            raise RuntimeError("on purpose")

        async with controlling(tmp_path / "store.db") as controller:
            controller.subscribe(broken)
            leave = controller.subscribe(follow)
            await create(controller, "a")
            assert seen == [({"a"}, frozenset({"a"}))]
            leave()
            await create(controller, "b")
            assert len(seen) == 1

    run(test)


def test_a_listener_that_failed_is_told_of_everything_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "RETRY_MS", 5)

    async def test() -> None:
        followed: list[tuple[set[str], frozenset[str]]] = []
        broken = True

        def follow(old: ClusterImage, new: ClusterImage) -> None:
            if broken:
                raise RuntimeError("on purpose")
            followed.append((new.topics.keys() - old.topics.keys(), new.changed_topics))

        async with controlling(tmp_path / "store.db") as controller:
            controller.subscribe(follow)
            await create(controller, "a")
            await create(controller, "b")
            broken = False
            await until(lambda: bool(followed))
            await create(controller, "c")
            assert followed == [({"a", "b"}, frozenset({"a", "b"})), ({"c"}, frozenset({"c"}))]

    run(test)


def test_a_decision_that_cannot_be_applied_is_answered_and_harms_no_other(tmp_path: Path) -> None:
    def impossible(_image: ClusterImage) -> Decision[None]:
        return Decision(records=(TopicDeleted(topic_id(404)),), reply=None)

    async def test() -> None:
        async with controlling(tmp_path / "store.db") as controller:
            before = asyncio.ensure_future(create(controller, "a"))
            wrong = asyncio.ensure_future(controller.write(impossible))
            after = asyncio.ensure_future(create(controller, "b"))
            with pytest.raises(ApiError) as refused:
                await wrong
            assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
            assert [(await each)[0].error for each in (before, after)] == [ErrorCode.NONE] * 2
            assert controller.image.topics.keys() == {"a", "b"}

    run(test)


def test_a_decision_that_fails_harms_no_other(tmp_path: Path) -> None:
    def failing(_image: ClusterImage) -> Decision[None]:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no")

    async def test() -> None:
        async with controlling(tmp_path / "store.db") as controller:
            wrong = asyncio.ensure_future(controller.write(failing))
            right = asyncio.ensure_future(create(controller, "a"))
            with pytest.raises(ApiError):
                await wrong
            await right
            assert "a" in controller.image.topics

    run(test)


def test_a_caller_that_gives_up_leaves_no_trace_or_a_whole_topic(tmp_path: Path) -> None:
    async def test() -> None:
        async with controlling(tmp_path / "store.db") as controller:
            waiting = asyncio.ensure_future(create(controller, "a"))
            await asyncio.sleep(0)
            waiting.cancel()
            await create(controller, "b")
            assert "b" in controller.image.topics

    run(test)


class FullDisk:
    """The store of a test, whose appends or snapshots fail while there is no room for them."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.full = False
        self.full_for_snapshots = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def append(self, payload: bytes, *, controller_epoch: int, may_take_reserve: bool = False) -> int:
        if self.full and not may_take_reserve:
            raise StoreError("database or disk is full")
        return await self.store.append(payload, controller_epoch=controller_epoch, may_take_reserve=may_take_reserve)

    async def snapshot(self, payload: bytes, *, position: int, controller_epoch: int) -> None:
        if self.full_for_snapshots:
            raise StoreError("database or disk is full")
        await self.store.snapshot(payload, position=position, controller_epoch=controller_epoch)


def test_a_write_that_the_disk_refuses_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        disk = FullDisk(await SqliteStore.open(tmp_path / "store.db"))
        controller = await Controller.open(disk, 1, cluster_id="cluster")
        await register(controller, BrokerImage(1, ENDPOINTS))
        image = controller.image
        disk.full = True
        for _ in range(3):
            with pytest.raises(ApiError, match="disk is full"):
                await create(controller, "a")
        assert controller.image is image
        assert caplog.messages == ["metadata can't be changed: database or disk is full"], "one line, however many try"
        disk.full = False
        await create(controller, "a")
        assert "a" in controller.image.topics
        await controller.close()
        await disk.close()

    run(test)


def test_a_snapshot_that_the_disk_refuses_takes_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_length, "ENTRIES_PER_SNAPSHOT_MIN", 1)

    async def test() -> None:
        disk = FullDisk(await SqliteStore.open(tmp_path / "store.db"))
        controller = await Controller.open(disk, 1, cluster_id="cluster")
        disk.full_for_snapshots = True
        await register(controller, BrokerImage(1, ENDPOINTS))
        assert [made.error for made in await create(controller, "a")] == [ErrorCode.NONE]
        disk.full_for_snapshots = False
        await create(controller, "b")
        assert not (await disk.read(START)).entries
        await controller.close()
        await disk.close()

    run(test)


def test_the_log_stays_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_length, "ENTRIES_PER_SNAPSHOT_MIN", 10)

    async def test() -> None:
        path = tmp_path / "store.db"
        async with controlling(path) as controller:
            for _ in range(40):
                await create(controller, "a")
                await controller.write(lambda image: decide_delete_topics(image, [TopicReference("a")], config=CONFIG))
            tail = await controller._store.read(START)
            assert tail.snapshot is not None
            assert len(tail.entries) <= 40
            written = controller.image
        async with controlling(path) as controller:
            assert controller.image == written
            assert not (await controller._store.read(START)).entries

    run(test)


def test_a_store_of_another_cluster_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with controlling(path):
            pass
        store = await SqliteStore.open(path)
        with pytest.raises(StoreError, match="belongs to cluster cluster, the log directory to other"):
            await Controller.open(store, 1, cluster_id="other")
        await store.close()

    run(test)


def test_a_second_broker_follows_and_takes_over(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with controlling(path, 2) as second:
            await second.close()
            async with controlling(path, 1) as first:
                await create(first, "a")
                async with controlling(path, 3) as third:
                    assert third.image == first.image
                    with pytest.raises(ApiError):
                        await create(third, "b")
                    await create(first, "b")
                    await until(lambda: "b" in third.image.topics)
                    await first.close()
                    await until(lambda: third.is_active)
                    await create(third, "c")
                    assert third.image.topics.keys() == {"a", "b", "c"}
                    with pytest.raises(ApiError) as fenced:
                        await create(first, "d")
                    assert fenced.value.code is ErrorCode.NOT_CONTROLLER
                    await until(lambda: "c" in first.image.topics)

    run(test)


def test_producer_ids_are_handed_out_once(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with controlling(path) as controller:
            ids = ProducerIds(controller)
            taken = await asyncio.gather(*(ids.next() for _ in range(2_500)))
            assert sorted(taken) == list(range(2_500))
        async with controlling(path) as controller:
            assert await ProducerIds(controller).next() == 3_000

    run(test)


ENDLESS = """
import asyncio, sys
from pathlib import Path
from tests.controller.test_runtime import controlling, create

async def main():
    async with controlling(Path(sys.argv[1])) as controller:
        for number in range(1_000_000):
            await create(controller, f"topic-{number}")
            print(number, flush=True)

asyncio.run(main())
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(path)],
        stdout=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": "."},
    ) as child:
        assert child.stdout is not None
        acknowledged = [int(child.stdout.readline()) for _ in range(50)]
        child.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in child.stdout.readlines()]

    async def test() -> None:
        async with controlling(path) as controller:
            missing = [number for number in acknowledged if f"topic-{number}" not in controller.image.topics]
            assert not missing

    run(test)


def test_a_snapshot_covers_no_entry_that_came_while_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "SLICE_BYTES", 1)

    async def test() -> None:
        path = tmp_path / "store.db"
        async with controlling(path) as controller:
            names = [f"topic-{number}" for number in range(5_000)]
            await create(controller, *names)
            await asyncio.gather(controller._take_snapshot(), create(controller, "late"))
            async with controlling(path, 2) as reader:
                assert reader.image.topics.keys() == {*names, "late"}

    run(test)

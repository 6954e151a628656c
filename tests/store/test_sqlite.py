from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.core.clock import SystemClock
from moldau.store.process import ProcessId, is_alive, this_process
from moldau.store.sqlite import SqliteStore
from moldau.store.store import (
    START,
    ControllerAndEpoch,
    CorruptStore,
    Fenced,
    MetadataEntry,
    Registration,
    StoreError,
    Tail,
)

GONE = ProcessId(pid=2**22 - 1, started=1)  # above the default limit of process numbers


class SetClock:
    def __init__(self) -> None:
        self.time_ms = 1_000_000

    def now_ms(self) -> int:
        return self.time_ms


@asynccontextmanager
async def opened(path: Path, **options: Any) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, options.pop("clock", SystemClock()), **options)
    try:
        yield store
    finally:
        await store.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(bounded())


def test_entries_survive_and_are_numbered(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path / "store.db") as store:
            assert await store.read(START) == Tail(None, [])
            leader = await store.elect(1)
            assert [await store.append(text, controller_epoch=leader.epoch) for text in (b"a", b"b", b"c")] == [1, 2, 3]
        async with opened(tmp_path / "store.db") as store:
            assert await store.read(1) == Tail(None, [MetadataEntry(2, b"b"), MetadataEntry(3, b"c")])
            assert (await store.read(3)).end is None

    run(test)


def test_a_snapshot_stands_for_the_entries_before_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path / "store.db") as store:
            epoch = (await store.elect(1)).epoch
            for text in (b"a", b"b", b"c"):
                await store.append(text, controller_epoch=epoch)
            await store.snapshot(b"ab", position=2, controller_epoch=epoch)
            assert await store.read(START) == Tail(MetadataEntry(2, b"ab"), [MetadataEntry(3, b"c")])
            assert await store.read(2) == Tail(None, [MetadataEntry(3, b"c")])
            await store.snapshot(b"abc", position=3, controller_epoch=epoch)
            assert (await store.read(START)).end == 3
            assert await store.append(b"d", controller_epoch=epoch) == 4

    run(test)


def test_an_older_controller_is_fenced(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with opened(path, process=GONE) as old, opened(path) as new:
            await old.register(Registration(1, b""))
            await new.register(Registration(2, b""))
            first = await old.elect(1)
            await old.append(b"a", controller_epoch=first.epoch)
            second = await new.elect(2)
            assert (second.broker_id, second.epoch) == (2, first.epoch + 1)
            with pytest.raises(Fenced):
                await old.append(b"late", controller_epoch=first.epoch)
            with pytest.raises(Fenced):
                await old.snapshot(b"late", position=1, controller_epoch=first.epoch)
            await new.append(b"b", controller_epoch=second.epoch)
            assert await old.read(START) == Tail(None, [MetadataEntry(1, b"a"), MetadataEntry(2, b"b")])

    run(test)


def test_a_living_controller_stays_until_it_resigns(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as one, opened(path) as two:
            await one.register(Registration(1, b""))
            await two.register(Registration(2, b""))
            leader = await one.elect(1)
            assert await two.elect(2) == leader
            await one.resign(leader)
            assert await two.elect(2) == ControllerAndEpoch(2, leader.epoch + 1)
            await one.resign(leader)
            assert await one.elect(1) == ControllerAndEpoch(2, leader.epoch + 1)

    run(test)


def test_a_broker_that_comes_back_controls_under_a_new_epoch(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path / "store.db") as store:
            assert [(await store.elect(1)).epoch, (await store.elect(1)).epoch] == [1, 2]

    run(test)


def test_a_broker_that_is_silent_for_too_long_is_gone(tmp_path: Path) -> None:
    async def test() -> None:
        clock = SetClock()
        async with opened(tmp_path / "store.db", clock=clock, session_timeout_ms=9_000) as store:
            await store.register(Registration(1, b"one"))
            clock.time_ms += 8_999
            assert await store.registrations() == [Registration(1, b"one")]
            clock.time_ms += 1
            assert await store.registrations() == []

    run(test)


def test_a_broker_keeps_saying_that_it_lives(tmp_path: Path) -> None:
    async def test() -> None:
        clock = SetClock()
        async with opened(tmp_path / "store.db", clock=clock, heartbeat_interval_ms=5) as store:
            await store.register(Registration(1, b""))
            clock.time_ms += 1_000_000
            while not await store.registrations():  # noqa: ASYNC110 - the heartbeat tells no one but the file
                await asyncio.sleep(0.001)

    run(test)


def test_one_broker_id_is_held_by_one_living_process(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with opened(path, process=started(other.pid)) as theirs, opened(path) as ours:
            await theirs.register(Registration(1, b"theirs"))
            with pytest.raises(StoreError, match=f"broker 1 is already running as process {other.pid}"):
                await ours.register(Registration(1, b"ours"))
            other.communicate(b"\n")
            await ours.register(Registration(1, b"ours"))
            assert await ours.registrations() == [Registration(1, b"ours")]

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        run(test)


def started(pid: int) -> ProcessId:
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return ProcessId(pid, int(stat[19]))


def test_closing_takes_the_registration_away(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as store:
            async with opened(path) as other:
                await other.register(Registration(2, b""))
                assert await store.registrations() == [Registration(2, b"")]
            assert await store.registrations() == []

    run(test)


def test_a_disk_that_takes_nothing_does_not_keep_a_store_from_closing(tmp_path: Path) -> None:
    async def test() -> None:
        store = await SqliteStore.open(tmp_path / "store.db", SystemClock(), process=GONE)
        await store.register(Registration(1, b""))
        await store._run(lambda: store._pulse.execute("PRAGMA query_only = ON").fetchone())
        await store.close()
        async with opened(tmp_path / "store.db") as next_one:
            await next_one.register(Registration(1, b""))

    run(test)


def test_watching_tells_of_what_others_append(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as writer, opened(path) as reader:
            epoch = (await writer.elect(1)).epoch
            await writer.append(b"a", controller_epoch=epoch)
            changes = reader.watch(START)
            assert await anext(changes) == 1
            coming = asyncio.ensure_future(anext(changes))
            await writer.append(b"b", controller_epoch=epoch)
            assert await coming == 2

    run(test)


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + os.urandom(5_000)])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        path.write_bytes(content)
        with pytest.raises(StoreError, match=r"store\.db"):
            await SqliteStore.open(path, SystemClock())
        assert path.read_bytes() == content

    run(test)


@pytest.mark.parametrize("application_id", [0, 7])
def test_another_applications_database_is_left_alone(tmp_path: Path, application_id: int) -> None:
    path = tmp_path / "store.db"
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("CREATE TABLE theirs (x)")
    database.execute(f"PRAGMA application_id={application_id}")
    database.close()

    async def test() -> None:
        with pytest.raises(CorruptStore, match="another application"):
            await SqliteStore.open(path, SystemClock())

    run(test)


def test_a_newer_version_is_named(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with opened(path):
            pass
        database = sqlite3.connect(path)
        database.execute("PRAGMA user_version=99")
        database.close()
        with pytest.raises(StoreError, match="has version 99"):
            await SqliteStore.open(path, SystemClock())

    run(test)


def test_a_damaged_entry_is_found(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as store:
            epoch = (await store.elect(1)).epoch
            await store.append(b"some topic", controller_epoch=epoch)
        content = path.read_bytes()
        assert content.count(b"some topic") == 1
        path.write_bytes(content.replace(b"some topic", b"same topic"))
        async with opened(path) as store:
            with pytest.raises(CorruptStore, match="entry 1 is damaged"):
                await store.read(START)

    run(test)


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    async def test() -> None:
        with pytest.raises(StoreError, match="nowhere"):
            await SqliteStore.open(tmp_path / "nowhere" / "store.db", SystemClock())

    run(test)


def test_a_process_is_known_by_number_and_start() -> None:
    ours = this_process()
    assert is_alive(ours)
    assert not is_alive(GONE)
    assert not is_alive(ProcessId(ours.pid, ours.started + 1))

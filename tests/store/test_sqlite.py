from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.store.process import this_process
from moldau.store.sqlite import SqliteStore
from moldau.store.sqlite.reserve import Reserve
from moldau.store.sqlite.schema import WRITE_AHEAD_BYTES, open_database, shorten
from moldau.store.store import START, CorruptStore, Fenced, Registration, StoreError
from tests.store.holder import holding
from tests.store.kinds import SqliteKind, lead, run, until

GONE = this_process()._replace(pid=2**22 - 1, started=1)  # above the default limit of process numbers


class SetClock:
    def __init__(self) -> None:
        self.time_ms = 1_000_000
        self.asked = 0

    def __call__(self) -> int:
        self.asked += 1
        return self.time_ms


@asynccontextmanager
async def opened(path: Path, **options: Any) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, **options)
    try:
        yield store
    finally:
        await store.close()


def test_a_broker_that_is_silent_for_too_long_is_gone(tmp_path: Path) -> None:
    async def test() -> None:
        clock = SetClock()
        path, options = tmp_path / "store.db", {"now_ms": clock, "session_timeout_ms": 9_000}
        async with opened(path, **options) as silent, opened(path, **options) as store:
            lost: list[bool] = []
            silent.on_session_lost = lambda: lost.append(True)
            await silent.register(Registration(1, b"one"))
            epoch = (await silent.elect(1)).epoch
            clock.time_ms += 8_999
            assert await store.registrations() == [Registration(1, b"one")]
            clock.time_ms += 1
            assert await store.registrations() == []
            with pytest.raises(Fenced, match="session ended"):
                await silent.append(b"late", controller_epoch=epoch)
            with pytest.raises(StoreError, match="session ended"):
                await silent.update(Registration(1, b"late"))
            assert lost == [True]

    run(test)


def test_a_broker_that_nobody_missed_goes_on(tmp_path: Path) -> None:
    """As a lone broker that was stopped does, or one whose heartbeats a full disk did not take."""

    async def test() -> None:
        clock = SetClock()
        async with opened(tmp_path / "store.db", now_ms=clock) as store:
            epoch = await lead(store, 1)
            clock.time_ms += 1_000_000
            assert await store.append(b"a", controller_epoch=epoch) == 1
            assert await store.registrations() == [Registration(1, b"1")]

    run(test)


def test_a_broker_keeps_saying_that_it_lives(tmp_path: Path) -> None:
    async def test() -> None:
        clock = SetClock()
        path = tmp_path / "store.db"
        async with opened(path, now_ms=clock, heartbeat_interval_ms=5) as store, opened(path, now_ms=clock) as other:
            await store.register(Registration(1, b""))
            for _ in range(5):
                clock.time_ms += 8_000
                await beaten(path, clock.time_ms)
                assert await other.registrations() == [Registration(1, b"")]

    run(test)


def test_a_file_that_can_not_be_looked_at_ends_no_heartbeats(tmp_path: Path) -> None:
    """As when the folder is moved, or the disk fails for a moment: what is open can still be written."""

    async def test() -> None:
        clock = SetClock()
        path = tmp_path / "store.db"
        async with opened(path, now_ms=clock, heartbeat_interval_ms=5) as store:
            await store.register(Registration(1, b""))
            Path(f"{path}-wal").rename(tmp_path / "moved")
            asked = clock.asked
            await until(lambda: clock.asked > asked + 2)
            (tmp_path / "moved").rename(f"{path}-wal")
            clock.time_ms += 8_000
            await beaten(path, clock.time_ms)

    run(test)


def test_whoever_fails_to_hear_of_a_lost_session_ends_no_heartbeats(tmp_path: Path) -> None:
    async def test() -> None:
        clock, told = SetClock(), asyncio.Event()
        path = tmp_path / "store.db"

        def lose() -> None:
            told.set()
            raise KeyError("a mistake of ours")

        async with opened(path, now_ms=clock, heartbeat_interval_ms=5) as store:
            store.on_session_lost = lose
            await store.register(Registration(1, b""))
            assert await store.evict(Registration(1, b""))
            await told.wait()
            await store.register(Registration(1, b""))
            clock.time_ms += 8_000
            await beaten(path, clock.time_ms)

    run(test)


async def beaten(path: Path, time_ms: int) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database:
        while database.execute("SELECT heartbeat_ms FROM registration").fetchone() != (time_ms,):  # noqa: ASYNC110 - files
            await asyncio.sleep(0.001)


def test_a_broker_of_another_boot_is_gone(tmp_path: Path) -> None:
    """Its heartbeats were counted from another start of the clock, and its number may be somebody's."""

    async def test() -> None:
        path = tmp_path / "store.db"
        before = this_process()._replace(boot="the last one")
        async with opened(path, process=before) as old, opened(path) as new:
            await old.register(Registration(1, b"old"))
            assert await new.registrations() == []
            await new.register(Registration(1, b"new"))

    run(test)


def test_a_broker_of_another_container_is_known_by_its_heartbeats(tmp_path: Path) -> None:
    async def test() -> None:
        clock = SetClock()
        path = tmp_path / "store.db"
        there = GONE._replace(namespace="pid:[1]")
        async with opened(path, process=there, now_ms=clock) as other, opened(path, now_ms=clock) as ours:
            await other.register(Registration(1, b"theirs"))
            assert await ours.registrations() == [Registration(1, b"theirs")]
            with pytest.raises(StoreError, match="already running"):
                await ours.register(Registration(1, b"ours"))
            clock.time_ms += 9_000
            await ours.register(Registration(1, b"ours"))

    run(test)


def test_a_killed_process_is_missed_within_200_ms(tmp_path: Path) -> None:
    async def test() -> None:
        kind = SqliteKind(tmp_path / "store.db")
        async with holding(kind.spec, 1, session_timeout_ms=60_000) as other, kind.opened() as ours:
            await other.ask("register", "one")
            await ours.register(Registration(2, b"two"))
            changes = ours.watch_registrations()
            assert len(await anext(changes)) == 2
            await other.kill()
            began_s = time.monotonic()
            assert await anext(changes) == [Registration(2, b"two")]
            taken_s.append(time.monotonic() - began_s)

    # The processor may be busy with others for as long as that; one of three is not.
    taken_s: list[float] = []
    for _ in range(3):
        run(test)
        if taken_s[-1] < 0.2:
            return
    raise AssertionError(taken_s)


def test_a_store_of_the_first_version_is_read(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as store:
            epoch = await lead(store, 1)
            await store.append(b"a", controller_epoch=epoch)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            for table in ("registration", "controller"):
                database.execute(f"DROP TABLE {table}")
            database.execute(
                "CREATE TABLE registration (broker_id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, "
                "started INTEGER NOT NULL, heartbeat_ms INTEGER NOT NULL, payload BLOB NOT NULL)"
            )
            database.execute("INSERT INTO registration VALUES (1, 1, 1, 1, x'00')")
            database.execute("CREATE TABLE controller (broker_id INTEGER, epoch INTEGER NOT NULL)")
            database.execute("INSERT INTO controller VALUES (1, 7)")
            database.execute("PRAGMA user_version=1")
        async with opened(path) as store, opened(path):
            assert await store.registrations() == []
            assert await lead(store, 1) == 8
            assert await store.append(b"b", controller_epoch=8) == 2
            assert [entry.payload for entry in (await store.read(START)).entries] == [b"a", b"b"]

    run(test)


def test_a_broker_says_that_it_serves_on_a_full_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with opened(tmp_path / "store.db") as store:

            def allow(pages: int) -> bool:
                store._pulse.execute(f"PRAGMA max_page_count = {pages}").fetchone()
                return True

            await store.register(Registration(1, b""))
            await store._run(lambda: allow(1))  # no more than there are
            monkeypatch.setattr(Reserve, "give_up_some", lambda _: allow(1_000))
            await store.update(Registration(1, bytes(100_000)))
            assert await store.registrations() == [Registration(1, bytes(100_000))]

    run(test)


def test_a_disk_that_takes_nothing_does_not_keep_a_store_from_closing(tmp_path: Path) -> None:
    async def test() -> None:
        store = await SqliteStore.open(tmp_path / "store.db", process=GONE)
        await store.register(Registration(1, b""))
        await store._run(lambda: store._pulse.execute("PRAGMA query_only = ON").fetchone())
        await store.close()
        async with opened(tmp_path / "store.db") as next_one:
            await next_one.register(Registration(1, b""))

    run(test)


@pytest.mark.parametrize(
    "content", [b"no database at all" * 100, b"SQLite format 3\0" + os.urandom(5_000)], ids=["text", "noise"]
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        path.write_bytes(content)
        with pytest.raises(StoreError, match=r"store\.db"):
            await SqliteStore.open(path)
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
            await SqliteStore.open(path)

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
            await SqliteStore.open(path)

    run(test)


def test_a_damaged_entry_is_found(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as store:
            epoch = await lead(store, 1)
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
            await SqliteStore.open(tmp_path / "nowhere" / "store.db")

    run(test)


def test_a_change_is_seen_by_others_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the file for as long as this test may take, unless told to."""
    monkeypatch.setattr("moldau.store.sqlite.store.WATCH_INTERVAL_MS", 3_600_000)

    async def test() -> None:
        path = tmp_path / "store.db"
        async with opened(path) as one, opened(path) as other:
            await one.register(Registration(1, b"one"))
            await other.register(Registration(2, b"other"))
            ends = asyncio.ensure_future(anext(other.watch(START)))
            controllers = asyncio.create_task(elected_by(other))
            watching = asyncio.ensure_future(anext(one.watch(START)))
            while not all((tmp_path / f"store.wake-{broker_id}").exists() for broker_id in (1, 2)):  # noqa: ASYNC110 - files
                await asyncio.sleep(0.01)
            epoch = (await one.elect(1)).epoch
            assert await controllers == (1, epoch)
            end = await one.append(b"first", controller_epoch=epoch)
            assert await ends == end
            watching.cancel()

    async def elected_by(store: SqliteStore) -> tuple[int, int]:
        async for controller in store.watch_controller():
            if controller is not None:
                return controller.broker_id, controller.epoch
        raise AssertionError

    run(test)


def test_a_store_waits_for_another_broker_that_makes_it(tmp_path: Path) -> None:
    """SQLite itself refuses at once to change the journal of a file that somebody is about to write."""
    path = tmp_path / "store.db"
    open_database(path, synchronous="FULL").close()
    other = sqlite3.connect(path, isolation_level=None)
    assert other.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as thread:
        opening = thread.submit(lambda: open_database(path, synchronous="FULL").close())
        with pytest.raises(TimeoutError):
            opening.result(timeout=0.3)
        other.execute("COMMIT")
        opening.result()
    other.close()


def test_brokers_that_start_together_make_one_store(tmp_path: Path) -> None:
    def open_and_close(path: Path) -> None:
        begin.wait()
        for synchronous in ("FULL", "OFF"):
            open_database(path, synchronous=synchronous).close()

    with ThreadPoolExecutor(3) as threads:
        for number in range(30):
            begin = threading.Barrier(3)
            list(threads.map(open_and_close, [tmp_path / f"{number}.db"] * 3))


def test_a_long_write_ahead_log_is_copied_while_nobody_commits(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    ahead = path.with_name("store.db-wal")

    async def test() -> None:
        async with opened(path, heartbeat_interval_ms=10) as store, opened(path) as other:
            await store.register(Registration(1, b"one"))
            epoch = (await store.elect(1)).epoch
            for number in range(4):
                await store.append(bytes([number]) * WRITE_AHEAD_BYTES, controller_epoch=epoch)
            await until(lambda: ahead.stat().st_size < WRITE_AHEAD_BYTES)
            assert path.stat().st_size >= 4 * WRITE_AHEAD_BYTES
            tail = await other.read(START)
            assert [entry.payload[0] for entry in tail.entries] == list(range(4))

    run(test)


def test_a_write_ahead_log_waits_for_whoever_commits(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    db, other = (open_database(path, synchronous="OFF") for _ in range(2))
    writer = open_database(path, synchronous="OFF")
    try:
        payload = b"x" * WRITE_AHEAD_BYTES
        assert [each.execute("PRAGMA wal_autocheckpoint").fetchone() for each in (db, other)] == [(0,), (0,)]
        other.execute("INSERT INTO log (payload, crc) VALUES (?, 0)", (payload,))
        writer.execute("BEGIN IMMEDIATE")
        other.execute("PRAGMA busy_timeout=1")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            shorten(db, other, path)
        assert path.stat().st_size < WRITE_AHEAD_BYTES
        writer.execute("COMMIT")
        shorten(db, other, path)
        assert path.stat().st_size >= WRITE_AHEAD_BYTES
    finally:
        for each in (db, other, writer):
            each.close()

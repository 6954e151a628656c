"""The metadata store in one SQLite file, for all the brokers of one machine.

One thread owns the connection, so the event loop never waits for a disk. Appends are forced to disk (WAL with
synchronous=FULL); registrations are not, because a machine that lost them has no living brokers either.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from moldau.core.clock import Clock
from moldau.store.process import ProcessId, is_alive, this_process
from moldau.store.reserve import Reserve
from moldau.store.schema import checksum, open_database
from moldau.store.store import (
    ControllerAndEpoch,
    CorruptStore,
    Fenced,
    MetadataEntry,
    Registration,
    StoreError,
    StoreFailed,
    Tail,
)

FILE_NAME = "moldau-metadata.db"
RESERVE_SUFFIX = ".reserve"

HEARTBEAT_INTERVAL_MS = 2_000  # Kafka's broker.heartbeat.interval.ms
SESSION_TIMEOUT_MS = 9_000  # Kafka's broker.session.timeout.ms
WATCH_INTERVAL_MS = 50  # how late another broker may see a change; asking costs some tens of microseconds

PRIMARY_CODE = 0xFF  # SQLite's extended codes tell more in the bits above

T = TypeVar("T")


class SqliteStore:
    """An open store. All methods run on its one thread, in the order they were called."""

    def __init__(
        self, path: Path, clock: Clock, *, session_timeout_ms: int, heartbeat_interval_ms: int, process: ProcessId
    ) -> None:
        self.path = path
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._process = process
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata-store")
        self._heartbeat: asyncio.Task[None] | None = None
        self._registered: set[int] = set()
        self.on_failure: Callable[[StoreError], None] | None = None
        self._db: sqlite3.Connection
        self._pulse: sqlite3.Connection
        self._reserve = Reserve(path.with_suffix(RESERVE_SUFFIX))

    @classmethod
    async def open(
        cls,
        path: Path,
        clock: Clock,
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS,
        process: ProcessId | None = None,
    ) -> Self:
        store = cls(
            path,
            clock,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            process=process or this_process(),
        )
        try:
            await store._run(store._open)
        except BaseException:
            store._thread.shutdown(wait=False)
            raise
        return store

    async def append(self, payload: bytes, *, controller_epoch: int, may_take_reserve: bool = False) -> int:
        def transaction() -> int:
            with _transaction(self._db):
                self._check_epoch(controller_epoch)
                cursor = self._db.execute(
                    "INSERT INTO log (position, payload, crc) "
                    "VALUES (1 + MAX((SELECT COALESCE(MAX(position), 0) FROM log), "
                    "(SELECT COALESCE(MAX(position), 0) FROM snapshot)), ?, ?)",
                    (payload, checksum(payload)),
                )
            assert cursor.lastrowid is not None
            return cursor.lastrowid

        return await self._run(partial(self._with_reserve, transaction) if may_take_reserve else transaction)

    async def read(self, position: int) -> Tail:
        def query() -> Tail:
            # One transaction, or a snapshot could be taken between its two reads.
            with _transaction(self._db, "DEFERRED"):
                row = self._db.execute("SELECT position, payload, crc FROM snapshot WHERE position > ?", (position,))
                snapshot = next((_checked(self.path, each) for each in row), None)
                rows = self._db.execute(
                    "SELECT position, payload, crc FROM log WHERE position > ? ORDER BY position", (position,)
                )
                return Tail(snapshot, [_checked(self.path, each) for each in rows])

        return await self._run(query)

    async def snapshot(self, payload: bytes, *, position: int, controller_epoch: int) -> None:
        def transaction() -> None:
            with _transaction(self._db):
                self._check_epoch(controller_epoch)
                self._db.execute("DELETE FROM snapshot")
                self._db.execute(
                    "INSERT INTO snapshot (position, payload, crc) VALUES (?, ?, ?)",
                    (position, payload, checksum(payload)),
                )
                self._db.execute("DELETE FROM log WHERE position <= ?", (position,))

        await self._run(transaction)

    async def watch(self, position: int) -> AsyncIterator[int]:
        seen_version = -1
        while True:
            version, end = await self._run(partial(self._newest, seen_version))
            if version != seen_version and end > position:
                position = end
                yield end
            seen_version = version
            await asyncio.sleep(WATCH_INTERVAL_MS / 1000)

    async def register(self, registration: Registration) -> None:
        def transaction() -> None:
            now_ms = self._clock.now_ms()
            with _transaction(self._pulse):
                row = self._pulse.execute(
                    "SELECT pid, started, heartbeat_ms FROM registration WHERE broker_id = ?",
                    (registration.broker_id,),
                ).fetchone()
                if row and ProcessId(row[0], row[1]) != self._process and self._lives(now_ms, *row):
                    raise StoreError(f"broker {registration.broker_id} is already running as process {row[0]}")
                self._pulse.execute(
                    "INSERT OR REPLACE INTO registration (broker_id, pid, started, heartbeat_ms, payload) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (registration.broker_id, self._process.pid, self._process.started, now_ms, registration.payload),
                )

        await self._run(partial(self._with_reserve, transaction))
        self._registered.add(registration.broker_id)
        if self._heartbeat is None:
            self._heartbeat = asyncio.create_task(self._keep_alive(), name="metadata-store-heartbeat")

    async def registrations(self) -> Sequence[Registration]:
        def query() -> list[Registration]:
            now_ms = self._clock.now_ms()
            rows = self._db.execute(
                "SELECT broker_id, payload, pid, started, heartbeat_ms FROM registration ORDER BY broker_id"
            ).fetchall()
            return [Registration(row[0], row[1]) for row in rows if self._lives(now_ms, *row[2:])]

        return await self._run(query)

    async def elect(self, broker_id: int) -> ControllerAndEpoch:
        def transaction() -> ControllerAndEpoch:
            now_ms = self._clock.now_ms()
            with _transaction(self._db):
                holder, epoch, *process = self._db.execute(
                    "SELECT controller.broker_id, controller.epoch, pid, started, heartbeat_ms FROM controller "
                    "LEFT JOIN registration ON registration.broker_id = controller.broker_id"
                ).fetchone()
                # The same broker in a new process is a new controller: what the old one still has in flight is fenced.
                known = process[0] is not None and self._lives(now_ms, *process)
                if holder is not None and holder != broker_id and known:
                    return ControllerAndEpoch(holder, epoch)
                self._db.execute("UPDATE controller SET broker_id = ?, epoch = ?", (broker_id, epoch + 1))
                return ControllerAndEpoch(broker_id, epoch + 1)

        return await self._run(partial(self._with_reserve, transaction))

    async def resign(self, leadership: ControllerAndEpoch) -> None:
        def transaction() -> None:
            with _transaction(self._db):
                self._db.execute(
                    "UPDATE controller SET broker_id = NULL WHERE broker_id = ? AND epoch = ?",
                    (leadership.broker_id, leadership.epoch),
                )

        await self._run(transaction)

    async def close(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._heartbeat
        try:
            await self._run(self._close)
        finally:
            self._thread.shutdown(wait=False)

    # What follows runs on the store's thread.

    def _open(self) -> None:
        self._db = self._with_reserve(partial(open_database, self.path, synchronous="FULL"))
        try:
            self._pulse = self._with_reserve(partial(open_database, self.path, synchronous="OFF"))
        except BaseException:
            self._db.close()
            raise
        self._reserve.take()

    def _close(self) -> None:
        # On a full disk the registration stays, and its process number shows that it is nobody's.
        with contextlib.suppress(sqlite3.OperationalError):
            for broker_id in self._registered:
                self._pulse.execute(
                    "DELETE FROM registration WHERE broker_id = ? AND pid = ? AND started = ?",
                    (broker_id, self._process.pid, self._process.started),
                )
        self._pulse.close()
        self._db.close()

    def _with_reserve(self, work: Callable[[], T]) -> T:
        """For what makes room, and for what a broker needs to start, without which nobody can make room."""
        while True:
            try:
                return work()
            except sqlite3.OperationalError as wrong:
                if not (_is_full(wrong) or _lacks_memory(wrong)) or not self._reserve.give_up_some():
                    raise

    def _check_epoch(self, controller_epoch: int) -> None:
        (epoch,) = self._db.execute("SELECT epoch FROM controller").fetchone()
        if epoch != controller_epoch:
            raise Fenced(f"controller epoch {controller_epoch} was replaced by {epoch}")

    def _newest(self, seen_version: int) -> tuple[int, int]:
        """SQLite counts what other connections commit, so asking again is cheap while nothing happens."""
        (version,) = self._pulse.execute("PRAGMA data_version").fetchone()
        if version == seen_version:
            return version, 0
        (end,) = self._pulse.execute(
            "SELECT MAX((SELECT COALESCE(MAX(position), 0) FROM log), "
            "(SELECT COALESCE(MAX(position), 0) FROM snapshot))"
        ).fetchone()
        return version, end

    def _lives(self, now_ms: int, pid: int, started: int, heartbeat_ms: int) -> bool:
        return heartbeat_ms + self._session_timeout_ms > now_ms and is_alive(ProcessId(pid, started))

    def _beat(self) -> None:
        self._reserve.take()
        self._pulse.execute(
            "UPDATE registration SET heartbeat_ms = ? WHERE pid = ? AND started = ?",
            (self._clock.now_ms(), self._process.pid, self._process.started),
        )

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_interval_ms / 1000)
            with contextlib.suppress(StoreError):  # a busy file is met again at the next beat
                await self._run(self._beat)

    async def _run(self, work: Callable[[], T]) -> T:
        def named() -> T:
            try:
                return work()
            except sqlite3.DatabaseError as wrong:
                kind = StoreFailed if _is_disk_failure(wrong) else StoreError
                advice = "; make room there, or delete topics" if _is_full(wrong) else ""
                raise kind(f"metadata store {self.path}: {wrong}{advice}") from wrong

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, named)
        except StoreFailed as failed:
            if self.on_failure is not None:
                self.on_failure(failed)
            raise


def _is_disk_failure(wrong: sqlite3.DatabaseError) -> bool:
    """Not a full disk, which SQLite tells apart and after which it goes on with what it had."""
    return _primary_code(wrong) == sqlite3.SQLITE_IOERR


def _is_full(wrong: sqlite3.DatabaseError) -> bool:
    return _primary_code(wrong) == sqlite3.SQLITE_FULL


def _lacks_memory(wrong: sqlite3.DatabaseError) -> bool:
    """No room for the file that its users share as memory, which is made anew and holds nothing that counts."""
    return getattr(wrong, "sqlite_errorcode", 0) in (sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN)


def _primary_code(wrong: sqlite3.DatabaseError) -> int:
    return getattr(wrong, "sqlite_errorcode", 0) & PRIMARY_CODE


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _checked(path: Path, row: tuple[int, bytes, int]) -> MetadataEntry:
    position, payload, crc = row
    if checksum(payload) != crc:
        raise CorruptStore(f"metadata store {path}: entry {position} is damaged (its checksum is wrong)")
    return MetadataEntry(position, payload)

"""The metadata store in one SQLite file, for all the brokers of one machine.

One thread owns the connections, so the event loop never waits for a disk. Appends are forced to disk (WAL with
synchronous=FULL); registrations are not, because a machine that lost them has no living brokers either.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import msgspec

from moldau.core.clock import monotonic_ms
from moldau.store.process import ProcessId, this_process
from moldau.store.sqlite.failures import is_disk_failure, is_full, lacks_memory
from moldau.store.sqlite.reserve import Reserve
from moldau.store.sqlite.schema import checksum, open_database, shorten, transaction
from moldau.store.sqlite.sessions import NO_SESSION, Sessions
from moldau.store.store import (
    SESSION_TIMEOUT_MS,
    ControllerAndEpoch,
    CorruptStore,
    MetadataEntry,
    Registration,
    StoreError,
    StoreFailed,
    Tail,
)

if TYPE_CHECKING:
    from moldau.store.sqlite.wakes import Wakes

FILE_NAME = "moldau-metadata.db"
LOCATION_FILE = "moldau-metadata.location"  # in a log directory without that file: where the metadata is
RESERVE_SUFFIX = ".reserve"

NO_BROKER = -1
HEARTBEAT_INTERVAL_MS = 2_000  # Kafka's broker.heartbeat.interval.ms
WATCH_INTERVAL_MS = 50  # how late a change may be seen that nobody tells of; asking costs some tens of microseconds
LONE_WATCH_INTERVAL_MS = 250  # the same for a broker that has no others: how late it may see the first one come

T = TypeVar("T")

LOGGER = logging.getLogger(__name__)


class Sight(msgspec.Struct, frozen=True):
    """What one look at the file showed, and the versions that SQLite had for it."""

    versions: tuple[int, int]
    end: int
    controller: ControllerAndEpoch | None
    sessions: dict[int, Registration]

    @property
    def registrations(self) -> list[Registration]:
        return list(self.sessions.values())


class SqliteStore:
    """An open store. All methods run on its one thread, in the order they were called."""

    def __init__(
        self,
        path: Path,
        *,
        session_timeout_ms: int,
        heartbeat_interval_ms: int,
        process: ProcessId,
        now_ms: Callable[[], int],
    ) -> None:
        self.path = path
        self.on_failure: Callable[[StoreError], None] | None = None
        self.on_session_lost: Callable[[], None] | None = None
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._process = process
        self._now_ms = now_ms
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata-store")
        self._heartbeat: asyncio.Task[None] | None = None
        self._session = NO_SESSION
        self._sight: Sight | None = None
        self._look_again_s = 0.0
        self._looking = asyncio.Lock()
        self._broker_id = NO_BROKER
        self._wakes: Wakes | None = None  # as soon as there are others
        self._db: sqlite3.Connection
        self._pulse: sqlite3.Connection
        self._sessions: Sessions
        self._reserve = Reserve(path.with_suffix(RESERVE_SUFFIX))

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS,
        process: ProcessId | None = None,
        now_ms: Callable[[], int] = monotonic_ms,
    ) -> Self:
        """`now_ms` is a clock that nobody sets and that all processes of the machine share."""
        store = cls(
            path,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            process=process or this_process(),
            now_ms=now_ms,
        )
        try:
            await store._run(store._open)
        except BaseException:
            store._thread.shutdown(wait=False)
            raise
        return store

    async def append(self, payload: bytes, *, controller_epoch: int, may_take_reserve: bool = False) -> int:
        session = self._session

        def append() -> int:
            with transaction(self._db):
                self._sessions.check(controller_epoch, session)
                cursor = self._db.execute(
                    "INSERT INTO log (position, payload, crc) "
                    "VALUES (1 + MAX((SELECT COALESCE(MAX(position), 0) FROM log), "
                    "(SELECT COALESCE(MAX(position), 0) FROM snapshot)), ?, ?)",
                    (payload, checksum(payload)),
                )
            assert cursor.lastrowid is not None
            return cursor.lastrowid

        position = await self._run(partial(self._with_reserve, append) if may_take_reserve else append)
        self._wrote()
        return position

    async def read(self, position: int) -> Tail:
        def query() -> Tail:
            # One transaction, or a snapshot could be taken between its two reads.
            with transaction(self._db, "DEFERRED"):
                row = self._db.execute("SELECT position, payload, crc FROM snapshot WHERE position > ?", (position,))
                snapshot = next((_checked(self.path, each) for each in row), None)
                rows = self._db.execute(
                    "SELECT position, payload, crc FROM log WHERE position > ? ORDER BY position", (position,)
                )
                return Tail(snapshot, [_checked(self.path, each) for each in rows])

        return await self._run(query)

    async def snapshot(self, payload: bytes, *, position: int, controller_epoch: int) -> None:
        session = self._session

        def replace() -> None:
            with transaction(self._db):
                self._sessions.check(controller_epoch, session)
                self._db.execute("DELETE FROM snapshot")
                self._db.execute(
                    "INSERT INTO snapshot (position, payload, crc) VALUES (?, ?, ?)",
                    (position, payload, checksum(payload)),
                )
                self._db.execute("DELETE FROM log WHERE position <= ?", (position,))

        await self._run(replace)

    async def watch(self, position: int) -> AsyncIterator[int]:
        async for sight in self._sights():
            if sight.end > position:
                position = sight.end
                yield position

    async def register(self, registration: Registration) -> None:
        begin = partial(self._sessions.begin, registration)
        self._session = await self._run(partial(self._with_reserve, begin))
        self._broker_id = registration.broker_id
        self._wrote()
        if self._heartbeat is None:
            self._heartbeat = asyncio.create_task(self._keep_alive(), name="metadata-store-heartbeat")

    async def update(self, registration: Registration) -> None:
        session = self._session
        change = partial(self._sessions.change, registration, session)
        if not await self._run(partial(self._with_reserve, change)):
            self._lose(session)
            raise StoreError(f"broker {registration.broker_id} is not registered, or its session ended")
        self._wrote()

    async def registrations(self) -> Sequence[Registration]:
        return (await self._run(self._look)).registrations

    async def watch_registrations(self) -> AsyncIterator[Sequence[Registration]]:
        last: list[Registration] | None = None
        async for sight in self._sights():
            if sight.registrations != last:
                last = sight.registrations
                yield last

    async def evict(self, registration: Registration) -> bool:
        is_evicted = await self._run(partial(self._with_reserve, partial(self._sessions.evict, registration)))
        self._wrote()
        return is_evicted

    async def elect(self, broker_id: int) -> ControllerAndEpoch:
        session = self._session

        def elect() -> ControllerAndEpoch:
            self._end_sessions()
            return self._sessions.elect(broker_id, session)

        elected = await self._run(partial(self._with_reserve, elect))
        self._wrote()
        return elected

    async def watch_controller(self) -> AsyncIterator[ControllerAndEpoch | None]:
        last: ControllerAndEpoch | None = None
        is_first = True
        async for sight in self._sights():
            if is_first or sight.controller != last:
                last, is_first = sight.controller, False
                yield last

    async def resign(self, leadership: ControllerAndEpoch) -> None:
        await self._run(partial(self._with_reserve, partial(self._sessions.resign, leadership)))
        self._wrote()

    async def close(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._heartbeat
        try:
            await self._run(self._close)
        finally:
            self._thread.shutdown(wait=False)
            self._wrote()
            if self._wakes is not None:
                self._wakes.close()

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_interval_ms / 1000)
            session = self._session
            try:
                if session != NO_SESSION and not await self._run(partial(self._beat, session)):
                    self._lose(session)
            except StoreError:
                continue  # a busy file is met again at the next beat
            except Exception:  # this broker would be missed for ever after
                LOGGER.exception("a heartbeat into the metadata store %s failed", self.path)

    def _lose(self, session: int) -> None:
        """Somebody missed us for too long and wrote it down, so another may be elected already."""
        if session == NO_SESSION or session != self._session:
            return
        self._session = NO_SESSION
        if self.on_session_lost is not None:
            self.on_session_lost()

    async def _sights(self) -> AsyncIterator[Sight]:
        """What the file shows, again and again; one look serves all who watch at about the same time."""
        loop = asyncio.get_running_loop()
        while True:
            session = self._session
            async with self._looking:
                if self._sight is None or loop.time() >= self._look_again_s:
                    self._sight = await self._run(self._look)
                    self._look_again_s = loop.time() + WATCH_INTERVAL_MS / 2000
                sight = self._sight
            if session not in sight.sessions:
                self._lose(session)
            yield sight
            if sight.sessions.keys() == {session}:
                await asyncio.sleep(LONE_WATCH_INTERVAL_MS / 1000)
            elif self._broker_id == NO_BROKER:
                await asyncio.sleep(WATCH_INTERVAL_MS / 1000)
            else:
                self._wakes = self._wakes or self._listen(self._broker_id)
                await self._wakes.pause(WATCH_INTERVAL_MS / 1000)

    def _listen(self, broker_id: int) -> Wakes:
        from moldau.store.sqlite.wakes import Wakes

        return Wakes(self.path, broker_id, self._look_at_once)

    def _wrote(self) -> None:
        """Others are told to look, and whoever watches here looks again: it must not miss what it wrote itself."""
        if self._wakes is not None and self._sight is not None:
            self._wakes.tell(registration.broker_id for registration in self._sight.sessions.values())
        self._look_again_s = 0.0

    async def _look_at_once(self) -> None:
        with contextlib.suppress(StoreError):  # whoever watches meets it at the next look
            self._sight = await self._run(self._look)
            self._look_again_s = asyncio.get_running_loop().time() + WATCH_INTERVAL_MS / 2000

    # What follows runs on the store's thread.

    def _open(self) -> None:
        self._db = self._with_reserve(partial(open_database, self.path, synchronous="FULL"))
        try:
            self._pulse = self._with_reserve(partial(open_database, self.path, synchronous="OFF"))
        except BaseException:
            self._db.close()
            raise
        self._sessions = Sessions(
            self._db, self._pulse, process=self._process, timeout_ms=self._session_timeout_ms, now_ms=self._now_ms
        )
        self._reserve.take()

    def _close(self) -> None:
        # On a full disk the registration stays, and its process number shows that it is nobody's.
        with contextlib.suppress(sqlite3.OperationalError):
            self._sessions.end(self._session)
        self._pulse.close()
        self._db.close()

    def _with_reserve(self, work: Callable[[], T]) -> T:
        """For what makes room, and for what a broker needs to start, without which nobody can make room."""
        while True:
            try:
                return work()
            except sqlite3.OperationalError as wrong:
                if not (is_full(wrong) or lacks_memory(wrong)) or not self._reserve.give_up_some():
                    raise

    def _look(self) -> Sight:
        """SQLite counts what other connections commit, so looking again is cheap while nothing happens."""
        self._end_sessions()
        before = self._sight
        with transaction(self._db, "DEFERRED"):
            versions = (_version(self._db), _version(self._pulse))
            if before is not None and before.versions == versions:
                return before
            (end,) = self._db.execute(
                "SELECT MAX((SELECT COALESCE(MAX(position), 0) FROM log), "
                "(SELECT COALESCE(MAX(position), 0) FROM snapshot))"
            ).fetchone()
            return Sight(versions, end, self._sessions.controller(), self._sessions.registered())

    def _end_sessions(self) -> None:
        """Silence proves nothing on a full disk, where heartbeats can't be written either; an ended process does."""
        ended = self._sessions.ended(self._session)
        certain = [each for each in ended if each.is_certain]
        if certain:
            self._with_reserve(partial(self._sessions.write_down, certain))
        if len(ended) > len(certain):
            try:
                self._sessions.write_down(ended)
            except sqlite3.OperationalError as wrong:
                if not is_full(wrong):
                    raise

    def _beat(self, session: int) -> bool:
        self._reserve.take()
        is_there = self._sessions.beat(session)
        try:
            shorten(self._db, self._pulse, self.path)
        except sqlite3.OperationalError as wrong:
            if not is_full(wrong):  # it is done when there is room
                raise
        return is_there

    async def _run(self, work: Callable[[], T]) -> T:
        def named() -> T:
            try:
                return work()
            except sqlite3.DatabaseError as wrong:
                kind = StoreFailed if is_disk_failure(wrong) else StoreError
                advice = "; make room there, or delete topics" if is_full(wrong) else ""
                raise kind(f"metadata store {self.path}: {wrong}{advice}") from wrong
            except OSError as wrong:  # of what is done beside SQLite; a heartbeat that fails must not be the last one
                raise StoreError(f"metadata store {self.path}: {wrong}") from wrong

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, named)
        except StoreFailed as failed:
            if self.on_failure is not None:
                self.on_failure(failed)
            raise


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA data_version").fetchone()[0]
    return version


def _checked(path: Path, row: tuple[int, bytes, int]) -> MetadataEntry:
    position, payload, crc = row
    if checksum(payload) != crc:
        raise CorruptStore(f"metadata store {path}: entry {position} is damaged (its checksum is wrong)")
    return MetadataEntry(position, payload)

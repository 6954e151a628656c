"""A registry at work: the topic is read into the state, the leader writes, all others know who that is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from moldau.client.cluster import Cluster, NoAnswer, Refused
from moldau.core.clock import Clock, SystemClock
from moldau.core.errors import ProtocolViolation
from moldau.registry import refusals
from moldau.registry.checking import Checker
from moldau.registry.deciding.decision import Decision
from moldau.registry.state import State
from moldau.registry.storing.electing import Elector, Identity
from moldau.registry.storing.reading import CUT, Batch, TopicReader, end_of
from moldau.registry.storing.writing import Fenced, TooLarge, Uncertain, Writer

R = TypeVar("R")
READ_S_MAX = 60.0  # for the topic's end to be read behind a write, or by a new leader
LEAD_AGAIN_S = 0.5
ELECTION_MORE_S = 5.0

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    topic: str = "_schemas"
    group: str = "schema-registry"
    default_level: str = "BACKWARD"
    default_mode: str = "READWRITE"
    may_change_modes: bool = True
    timeout_s: float = 10.0
    session_ms: int = 10_000
    heartbeat_ms: int = 3_000
    read_s_max: float = READ_S_MAX

    @property
    def election_s(self) -> float:
        """For another leader to be there: the session of one that died, and a heartbeat of the others."""
        return max(self.timeout_s, self.session_ms / 1_000 + ELECTION_MORE_S)

    @property
    def transactional_id(self) -> str:
        return f"{self.group}-{self.topic}-leader"


@dataclass(slots=True)
class Registry:
    """Everything here runs on the event loop but what the threads of reader, elector and writer do."""

    open_cluster: Callable[[], Cluster]
    """A new one for each thread."""
    identity: Identity
    settings: Settings = field(default_factory=Settings)
    clock: Clock = field(default_factory=SystemClock)
    state: State = field(init=False)
    checker: Checker = field(init=False, default_factory=Checker)
    leader: Identity | None = field(init=False, default=None)
    offset: int = field(init=False, default=0)
    """Up to which the topic is in the state."""
    is_read: bool = field(init=False, default=False)
    """Whether the state has all that was there at the start."""
    writes: int = field(init=False, default=0)
    _writer: Writer | None = field(init=False, default=None)
    _writing: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _read: asyncio.Condition = field(init=False, default_factory=asyncio.Condition)
    _leading: asyncio.Task[None] | None = field(init=False, default=None)
    _is_cut: bool = field(init=False, default=False)
    _unable: str | None = field(init=False, default=None)
    """Why whoever was elected does not write."""
    _told: asyncio.Task[None] | None = field(init=False, default=None)
    _reader: TopicReader = field(init=False)
    _elector: Elector = field(init=False)
    _loop: asyncio.AbstractEventLoop = field(init=False)

    def __post_init__(self) -> None:
        self.state = State(default_level=self.settings.default_level, default_mode=self.settings.default_mode)

    async def start(self) -> None:
        """Returns when the topic is read. Raises NoAnswer or Refused."""
        self._loop = asyncio.get_running_loop()
        self._reader = TopicReader(self.open_cluster(), self.settings.topic, self._take_from_thread)
        self._elector = Elector(
            self.open_cluster(),
            self.settings.group,
            self.identity,
            lambda leader: self._call(self._elected, leader),
            self.clock,
            session_ms=self.settings.session_ms,
            heartbeat_ms=self.settings.heartbeat_ms,
        )
        end = await asyncio.to_thread(self._end_of_topic)
        self._reader.start()
        await self.wait_for(end)
        self.is_read = True

    def elect(self) -> None:
        """Join the others; from here on forwarded requests may come."""
        self._elector.start()

    async def stop(self) -> None:
        for thread in (self._elector, self._reader):
            thread.end()
        if self._leading is not None:
            self._leading.cancel()
        for thread in (self._elector, self._reader):
            if thread.is_alive():
                await asyncio.to_thread(thread.join, self.settings.timeout_s)
        self._resign()
        self.checker.close()

    @property
    def is_leading(self) -> bool:
        return self._writer is not None

    async def wait_for_leader(self) -> Identity:
        """Whoever leads, as soon as that is known and, if it is this instance, it can write. Raises 50001 or 50004."""
        self._check_is_whole()
        try:
            async with asyncio.timeout(self.settings.election_s), self._read:
                await self._read.wait_for(lambda: self.leader is not None and self._is_able)
        except TimeoutError:
            raise refusals.no_leader() from None
        assert self.leader is not None, "waited for"
        return self.leader

    async def wait_for_another_leader(self, leader: Identity) -> None:
        async with self._read:
            await self._read.wait_for(lambda: self.leader is not None and not leader.is_still(self.leader))

    @property
    def _is_able(self) -> bool:
        return self.is_leading or not self.identity.is_same(self.leader)

    @property
    def problems(self) -> list[str]:
        """Why no writes are taken, or nothing new is read."""
        reasons = (self._reader.failure, self._elector.failure, self._unable)
        found = [each for each in reasons if each is not None]
        if self._is_cut:
            found.insert(0, CUT.format(self.offset))
        return [*dict.fromkeys(found)] if self.is_read else ["the topic is being read", *found]

    def _check_is_whole(self) -> None:
        """Raises 50001. What was read answers on: it may be the only copy of the schemas."""
        if self._is_cut or self._reader.is_cut:
            self._is_cut = True
            self._elector.end()
            told = f"{CUT.format(self.offset)}; nothing is written until all instances were started again"
            raise refusals.store_failed(told)

    def _check_place(self, offset: int, read: int) -> None:
        """Of a record that was just written: if it stands before what had been read, the topic is another one."""
        if offset < read:
            self._is_cut = True
            LOGGER.error(CUT.format(self.offset))
            self._check_is_whole()

    async def wait_for(self, offset: int) -> None:
        """Until everything before this offset is in the state. Raises 50002."""
        timeout_s = self.settings.read_s_max
        try:
            async with asyncio.timeout(timeout_s), self._read:
                await self._read.wait_for(lambda: self.offset >= offset)
        except TimeoutError:
            raise refusals.timed_out(f"the topic was not read up to offset {offset} in {timeout_s:g} s") from None

    async def write(self, decide: Callable[[State], Decision[R]]) -> R:
        """Decide on the state that all earlier writes are in, write, and reply when that is read back.

        Raises what `decide` refuses with, and 50001, 50002 or 50004.
        """
        async with self._writing:
            self._check_is_whole()
            writer = self._writer
            if writer is None or not self._elector.has_session:
                raise refusals.no_leader()
            decision = decide(self.state)
            if decision.entries:
                await self._append(writer, decision)
            return decision.reply

    async def _append(self, writer: Writer, decision: Decision[R]) -> None:
        """Whatever goes wrong: nothing more is decided until all that may have been written is read."""
        read = self.offset
        try:
            last = await asyncio.to_thread(writer.append, decision.entries)
            self._check_place(last + 1 - len(decision.entries), read)
            await self.wait_for(last + 1)
        except TooLarge as wrong:
            raise refusals.schema_too_large(f"Write failed because schema is too large: {wrong}") from None
        except Fenced as wrong:
            LOGGER.warning("another instance leads, or did: %s", wrong)
            self._lead_anew()
            raise refusals.no_leader() from None
        except (Uncertain, Refused, NoAnswer, OSError, ProtocolViolation) as wrong:
            LOGGER.warning("a write may have failed: %s", wrong)
            self._lead_anew()
            raise refusals.timed_out(f"Write to the Kafka store timed out: {wrong}") from None
        except BaseException:
            self._lead_anew()
            raise
        self.writes += 1

    def _call(self, what: Callable[..., None], *given: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, *given)

    def _take_from_thread(self, batch: Batch) -> None:
        """In the reader's thread, which waits: a topic is not read faster than it is understood."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._take(batch), self._loop).result()

    async def _take(self, batch: Batch) -> None:
        for entry in batch.entries:
            try:
                self.state.apply(entry)
            except Exception:  # in all instances alike; the reader's thread must not end by it
                LOGGER.exception("passed over a record before offset %d: %s", batch.next_offset, entry.key)
        async with self._read:
            self.offset = batch.next_offset
            self._read.notify_all()

    def _end_of_topic(self) -> int:
        with self.open_cluster() as cluster:
            return end_of(cluster, self._reader.place)

    def _elected(self, leader: Identity | None) -> None:
        if leader != self.leader and leader is not None:
            LOGGER.info("the leader is %s", leader.url, extra={"leader": leader.url})
        self.leader = leader
        self._tell()
        if self.identity.is_same(leader):
            self._lead_if_elected()
        elif leader is not None:
            self._unable = None
            self._resign()

    def _tell(self) -> None:
        async def notify() -> None:
            async with self._read:
                self._read.notify_all()

        self._told = asyncio.create_task(notify())

    def _lead_if_elected(self) -> None:
        is_under_way = self._leading is not None and not self._leading.done()
        if self._writer is None and not is_under_way and self.identity.is_same(self.leader):
            self._leading = asyncio.create_task(self._lead())

    def _lead_anew(self) -> None:
        self._resign()
        self._lead_if_elected()

    async def _lead(self) -> None:
        """Fence whoever led, and read all that they wrote, before the first decision."""
        while self.identity.is_same(self.leader) and not self._is_cut:
            if not self._elector.has_session:  # somebody else may lead, who is not to be fenced
                await asyncio.sleep(LEAD_AGAIN_S)
                continue
            writer = Writer(
                self.open_cluster(),
                self.settings.topic,
                self.settings.transactional_id,
                self.clock,
                timeout_s=self.settings.timeout_s,
            )
            read = self.offset
            try:
                noop = await asyncio.to_thread(writer.open)
                self._check_place(noop, read)
                await self.wait_for(noop + 1)
            except asyncio.CancelledError:
                writer.close()
                raise
            except Exception as wrong:  # whoever is elected and gave up would leave all without a leader
                self._unable = f"cannot lead yet: {str(wrong) or repr(wrong)}"
                LOGGER.warning("%s", self._unable)
                writer.close()
                await asyncio.sleep(LEAD_AGAIN_S)
                continue
            if not self.identity.is_same(self.leader):  # it has changed meanwhile
                writer.close()
                return
            self._writer, self._unable = writer, None
            self._tell()
            LOGGER.info("leading from offset %d", noop, extra={"offset": noop})
            return

    def _resign(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

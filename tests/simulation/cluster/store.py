"""A metadata store for simulated brokers: it never forgets, but sessions end and questions get lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import Context
from typing import Any, Protocol, TypeVar

from moldau.store.store import ControllerAndEpoch, Fenced, MetadataEntry, Registration, StoreError, Tail
from tests.simulation.cluster.network import STORE, Connection, Network

SESSION_S = 3.0
LEASE_S = 2.0  # after which a broker that heard nothing takes its session for lost
HEARTBEAT_S = 0.5
ANSWER_S_MAX = 1.5

T = TypeVar("T")


class Owner(Protocol):
    """The process that a session is of."""

    broker_id: int
    is_dead: bool
    context: Context

    @property
    def is_stopped(self) -> bool: ...


class Ensemble:
    """The servers, as one that is there or not."""

    def __init__(self, network: Network, *, dead_s: float, on_entry: Callable[[bytes], None]) -> None:
        self.is_down = False
        self.version = 0
        self.network = network
        self.entries: list[MetadataEntry] = []
        self.snapshot: MetadataEntry | None = None
        self.controller: ControllerAndEpoch | None = None
        self.sessions: dict[int, SimulatedStore] = {}
        self._epoch = 0
        self._controlling: SimulatedStore | None = None
        self._dead_s = dead_s  # after which a process that ended is missed
        self._on_entry = on_entry

    async def keep_sessions(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            for session in [*self.sessions.values()]:
                if self.is_down:
                    session.heard_s = loop.time()  # as servers count anew when there is a majority again
                elif session.is_heard:
                    session.heard_s = loop.time()
                    self.network.send(STORE, session.broker_id, session.hear)
                elif loop.time() - session.heard_s > (self._dead_s if session.owner.is_dead else SESSION_S):
                    self.end(session)

    def come_back(self) -> None:
        self.is_down = False

    def end(self, session: SimulatedStore) -> None:
        """Of a session: its registration is gone, and what it controlled is nobody's."""
        if self.sessions.get(session.broker_id) is session:
            del self.sessions[session.broker_id]
        if self._controlling is session:
            self.controller = self._controlling = None
        session.is_there = False
        self.changed()

    def changed(self) -> None:
        self.version += 1
        for session in self.sessions.values():
            self.network.send(STORE, session.broker_id, session.hear)

    def check(self, session: SimulatedStore, controller_epoch: int) -> None:
        if self._controlling is not session or self.controller is None or self.controller.epoch != controller_epoch:
            raise Fenced(f"controller epoch {controller_epoch} is over")

    def append(self, session: SimulatedStore, payload: bytes, controller_epoch: int) -> int:
        self.check(session, controller_epoch)
        position = self.end_position + 1
        self.entries.append(MetadataEntry(position, payload))
        self._on_entry(payload)
        self.changed()
        return position

    @property
    def end_position(self) -> int:
        if self.entries:
            return self.entries[-1].position
        return 0 if self.snapshot is None else self.snapshot.position

    def shorten(self, session: SimulatedStore, entry: MetadataEntry, controller_epoch: int) -> None:
        self.check(session, controller_epoch)
        self.snapshot = entry
        self.entries = [each for each in self.entries if each.position > entry.position]

    def read(self, position: int) -> Tail:
        snapshot = self.snapshot if self.snapshot is not None and position < self.snapshot.position else None
        return Tail(snapshot, [each for each in self.entries if each.position > position])

    def register(self, session: SimulatedStore, registration: Registration) -> None:
        other = self.sessions.get(session.broker_id)
        if other is not None and other is not session:
            if not other.owner.is_dead:
                raise StoreError(f"broker {session.broker_id} lives already")
            self.end(other)
        session.registration, session.is_there = registration, True
        session.heard_s = asyncio.get_running_loop().time()
        self.sessions[session.broker_id] = session
        self.changed()

    def elect(self, session: SimulatedStore, broker_id: int) -> ControllerAndEpoch:
        if not session.is_there:
            raise StoreError("there is no session")
        if self.controller is None or self.controller.broker_id == broker_id:
            self._epoch += 1
            self.controller, self._controlling = ControllerAndEpoch(broker_id, self._epoch), session
            self.changed()
        return self.controller

    def resign(self, leadership: ControllerAndEpoch) -> None:
        if self.controller == leadership:
            self.controller = self._controlling = None
            self.changed()

    def evict(self, registration: Registration) -> bool:
        for session in [*self.sessions.values()]:
            if session.registration == registration:
                self.end(session)
                return True
        return False


class SimulatedStore:
    """One broker's connection, and its session; a `MetadataStore`."""

    def __init__(self, ensemble: Ensemble, owner: Owner) -> None:
        self.on_session_lost: Callable[[], None] | None = None
        self.owner = owner
        self.broker_id = owner.broker_id
        self.registration: Registration | None = None
        self.is_there = False  # as the servers know it
        self.heard_s = 0.0
        self._ensemble = ensemble
        self._network = ensemble.network
        self._holds_session = False  # as this process believes
        self._told_s = 0.0
        self._told_version = -1
        self._waiting: list[asyncio.Future[None]] = []
        self._is_closed = False
        self._questions, self._answers = Connection(), Connection()

    @property
    def is_heard(self) -> bool:
        network = self._network
        is_cut = network.is_cut(self.broker_id, STORE) or network.is_cut(STORE, self.broker_id)
        return not (is_cut or self.owner.is_dead or self.owner.is_stopped)

    def hear(self) -> None:
        """The servers said something: on the process's own turn, for one that is stopped hears nothing."""
        if not self.owner.is_dead:
            self.owner.context.run(asyncio.get_running_loop().call_soon, self._heard)

    def _heard(self) -> None:
        if not self.is_there:
            self._lose()
            return
        self._told_s = asyncio.get_running_loop().time()
        if self._told_version != self._ensemble.version:
            self._told_version = self._ensemble.version
            self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def news(self, version: int) -> None:
        """Until more is known than a version, which may be told before the answer that has it."""
        if self._told_version <= version:
            waits = asyncio.get_running_loop().create_future()
            self._waiting.append(waits)
            await waits

    def _lose(self) -> None:
        if self._holds_session:
            self._holds_session = False
            if self.on_session_lost is not None:
                self.on_session_lost()

    async def _keep_lease(self) -> None:
        loop = asyncio.get_running_loop()
        while self._holds_session and not self._is_closed:
            await asyncio.sleep(HEARTBEAT_S)
            if loop.time() - self._told_s > LEASE_S or not self.is_there:
                self._lose()

    async def _ask(self, work: Callable[[], T]) -> T:
        """StoreError without an answer: it may be done or not."""
        loop, ensemble = asyncio.get_running_loop(), self._ensemble
        answer: asyncio.Future[T] = loop.create_future()

        def arrive() -> None:
            if ensemble.is_down or self.owner.is_dead:
                return
            result: Any
            try:
                result = work()
            except StoreError as wrong:
                result = wrong
            self._network.send(STORE, self.broker_id, lambda: _settle(answer, result), self._answers)

        self._network.send(self.broker_id, STORE, arrive, self._questions)
        lost = StoreError("the metadata store does not answer")
        patience = loop.call_later(ANSWER_S_MAX, _settle, answer, lost)
        try:
            return await answer
        finally:
            patience.cancel()

    async def append(self, payload: bytes, *, controller_epoch: int, may_take_reserve: bool = False) -> int:
        if not self._holds_session:
            raise Fenced("the session is lost")
        return await self._ask(lambda: self._ensemble.append(self, payload, controller_epoch))

    async def read(self, position: int) -> Tail:
        return await self._ask(lambda: self._ensemble.read(position))

    async def snapshot(self, payload: bytes, *, position: int, controller_epoch: int) -> None:
        entry = MetadataEntry(position, payload)
        await self._ask(lambda: self._ensemble.shorten(self, entry, controller_epoch))

    def watch(self, position: int) -> AsyncIterator[int]:
        return _Watch(self, lambda: self._ensemble.end_position, lambda newest: newest > position)

    async def register(self, registration: Registration) -> None:
        await self._ask(lambda: self._ensemble.register(self, registration))
        self._holds_session, self._told_s = True, asyncio.get_running_loop().time()
        asyncio.get_running_loop().create_task(self._keep_lease())

    async def update(self, registration: Registration) -> None:
        def update() -> None:
            if not self.is_there:
                raise StoreError("there is no session")
            self.registration = registration
            self._ensemble.changed()

        await self._ask(update)

    async def registrations(self) -> Sequence[Registration]:
        return await self._ask(self._living)

    def _living(self) -> list[Registration]:
        sessions = self._ensemble.sessions
        return [each for key in sorted(sessions) if (each := sessions[key].registration) is not None]

    def watch_registrations(self) -> AsyncIterator[Sequence[Registration]]:
        return _Watch(self, self._living)

    def watch_controller(self) -> AsyncIterator[ControllerAndEpoch | None]:
        return _Watch(self, lambda: self._ensemble.controller)

    async def look(self, look: Callable[[], T]) -> tuple[int, T]:
        """What there is, and the version that has it."""
        return await self._ask(lambda: (self._ensemble.version, look()))

    async def evict(self, registration: Registration) -> bool:
        return await self._ask(lambda: self._ensemble.evict(registration))

    async def elect(self, broker_id: int) -> ControllerAndEpoch:
        if not self._holds_session:
            raise StoreError("there is no session")
        return await self._ask(lambda: self._ensemble.elect(self, broker_id))

    async def resign(self, leadership: ControllerAndEpoch) -> None:
        await self._ask(lambda: self._ensemble.resign(leadership))

    async def close(self) -> None:
        self._is_closed, self._holds_session = True, False
        await self._ask(lambda: self._ensemble.end(self))


class _Watch(AsyncIterator[T]):
    """What there is, at once if it is `wanted`, and whenever it is something else; not a generator, whose end nobody
    can foretell."""

    def __init__(
        self, store: SimulatedStore, look: Callable[[], T], wanted: Callable[[T], bool] = lambda _: True
    ) -> None:
        self._store = store
        self._look = look
        self._wanted = wanted
        self._last: list[T] = []

    async def __anext__(self) -> T:
        while True:
            version, seen = await self._store.look(self._look)
            if [seen] != self._last and self._wanted(seen):
                self._last = [seen]
                return seen
            await self._store.news(version)


def _settle(answer: asyncio.Future[Any], result: Any) -> None:
    if answer.done():
        return
    if isinstance(result, StoreError):
        answer.set_exception(result)
    else:
        answer.set_result(result)

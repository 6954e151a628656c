"""The metadata store in a service for consensus, for brokers of many machines."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Self, TypeVar

from moldau.core.clock import Clock
from moldau.store.process import ProcessId, this_process
from moldau.store.store import ControllerAndEpoch, Fenced, Registration, StoreError, Tail
from moldau.store.tree.brokers import Brokers
from moldau.store.tree.client import TreeClient, Unanswered
from moldau.store.tree.elections import Elections, Fence
from moldau.store.tree.lease import Lease
from moldau.store.tree.log import MetadataLog

PROBES_PER_LEASE = 4  # how often a broker asks for its registration: one answer may be lost, and another be late

LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


class TreeStore:
    """A broker's store. Its session is held as a lease, which lapses before the ensemble can end the session."""

    def __init__(self, client: TreeClient, clock: Clock, process: ProcessId) -> None:
        self.on_session_lost: Callable[[], None] | None = None
        self._client = client
        self._log = MetadataLog(client)
        self._brokers = Brokers(client, clock, process)
        self._elections = Elections(client, clock)
        self._lease = Lease(client, on_lapse=self._session_ended)
        self._broker_id: int | None = None
        self._session_id: int | None = None
        self._fence: Fence | None = None
        self._probe: asyncio.Task[None] | None = None
        client.on_session_ended = self._session_ended

    @classmethod
    async def open(cls, client: TreeClient, clock: Clock, *, process: ProcessId | None = None) -> Self:
        """With a client that is connected, and that is stopped with the store.

        `clock` is for what operators read; nothing is decided by it.
        """
        store = cls(client, clock, process or this_process())
        try:
            await store._log.prepare()
        except BaseException:
            await store.close()
            raise
        return store

    async def append(
        self,
        payload: bytes,
        *,
        controller_epoch: int,
        may_take_reserve: bool = False,  # noqa: ARG002 - disks are the ensemble's
    ) -> int:
        fence = self._fence_of(controller_epoch)
        return await self._while_held(self._log.append(payload, fence))

    async def read(self, position: int) -> Tail:
        return await self._log.read(position)

    async def snapshot(self, payload: bytes, *, position: int, controller_epoch: int) -> None:
        fence = self._fence_of(controller_epoch)
        await self._while_held(self._log.snapshot(payload, position=position, fence=fence))

    def watch(self, position: int) -> AsyncIterator[int]:
        return self._log.watch(position)

    async def register(self, registration: Registration) -> None:
        self._let_go()
        session_id = await self._brokers.register(registration)
        while session_id != self._client.session_id:  # it ended meanwhile
            session_id = await self._brokers.register(registration)
        self._broker_id, self._session_id = registration.broker_id, session_id
        self._lease.begin()
        if self._probe is None:
            self._probe = asyncio.create_task(self._keep_probing(), name="metadata-store-probe")

    async def update(self, registration: Registration) -> None:
        session_id, over = self._session_id, self._lease.over
        if session_id is None or not await self._brokers.update(registration, session_id, is_over=over.is_set):
            self._lose(over)
            raise StoreError(f"broker {registration.broker_id} is not registered, or its session ended")

    async def registrations(self) -> Sequence[Registration]:
        await self._client.catch_up()
        return await self._brokers.living()

    def watch_registrations(self) -> AsyncIterator[Sequence[Registration]]:
        return self._brokers.watch()

    async def evict(self, registration: Registration) -> bool:
        return await self._brokers.evict(registration)

    async def elect(self, broker_id: int) -> ControllerAndEpoch:
        session_id, over = self._session_id, self._lease.over
        if session_id is None or broker_id != self._broker_id:
            raise Fenced(f"broker {broker_id} is not registered, or its session ended")
        self._fence = None
        try:
            leadership, fence = await self._while_held(self._elections.elect(broker_id, session_id))
            if fence is not None:
                await self._while_held(self._log.lead())
        except Fenced:
            self._lose(over)
            raise
        self._fence = fence
        return leadership

    def watch_controller(self) -> AsyncIterator[ControllerAndEpoch | None]:
        return self._elections.watch()

    async def resign(self, leadership: ControllerAndEpoch) -> None:
        fence = self._fence
        if fence is None or fence.epoch != leadership.epoch:
            return
        await self._elections.resign(fence)
        if self._fence is fence:  # only then: whoever could not resign has to try again
            self._fence = None

    async def name_cluster(self, proposed: str) -> str:
        """The cluster's id: the one that is there, or else this one, from now on."""
        return await self._brokers.name_cluster(proposed)

    async def close(self) -> None:
        """The registration vanishes with the session, at once if the ensemble can be told."""
        if self._probe is not None:
            self._probe.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._probe
        self._let_go()
        await self._client.stop()
        for each in (self._log, self._brokers, self._elections):
            each.close()

    def _fence_of(self, controller_epoch: int) -> Fence:
        if self._fence is None or self._fence.epoch != controller_epoch:
            raise Fenced(f"controller epoch {controller_epoch} was replaced or given up, or its session ended")
        return self._fence

    async def _while_held(self, work: Coroutine[Any, Any, T]) -> T:
        """Fenced as soon as another may be elected, whatever becomes of the requests that were sent."""
        over = self._lease.over
        if not self._lease.is_held:  # of a process that was stopped, before its timers have run
            work.close()
            self._lose(over)
            raise Fenced("this broker is not registered, or its session may have ended")
        tasks = asyncio.create_task(work), asyncio.create_task(over.wait())
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            # What went wrong otherwise does not matter any more once the lease is over.
            if tasks[0].done() and (tasks[0].exception() is None or not over.is_set()):
                return tasks[0].result()
            raise Fenced("the session of this broker may have ended; what it wrote last may be there or not")
        finally:
            for task in tasks:
                task.cancel()

    async def _keep_probing(self) -> None:
        """Renews the lease, notices a registration that somebody removed, and a connection that leads nowhere."""
        while True:
            duration_s = self._lease.duration_s
            await asyncio.sleep(duration_s / PROBES_PER_LEASE)
            broker_id, session_id, over = self._broker_id, self._session_id, self._lease.over
            if broker_id is None or session_id is None or not self._client.is_connected:
                continue
            try:
                async with asyncio.timeout(duration_s / 2):
                    is_registered = await self._brokers.is_registered(broker_id, session_id)
            except TimeoutError:
                self._client.drop_connection()
            except (StoreError, Unanswered):
                continue
            else:
                if not is_registered:
                    self._lose(over)

    def _session_ended(self) -> None:
        self._lose(self._lease.over)

    def _lose(self, over: asyncio.Event) -> None:
        """Of a registration, by its lease: who was evicted may have registered anew in the same session."""
        if self._session_id is None or over.is_set():
            return
        LOGGER.warning("the registration of broker %d may have ended, so it stops deciding", self._broker_id)
        self._let_go()
        if self.on_session_lost is not None:
            self.on_session_lost()

    def _let_go(self) -> None:
        self._broker_id = self._session_id = self._fence = None
        self._lease.end()

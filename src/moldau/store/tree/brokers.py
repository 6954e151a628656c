"""Registrations: the ephemeral nodes below /brokers/ids.

Whoever puts a node there, or takes another's away, sets the data of /brokers/ids too. That node's version so counts
them all, and whoever found an old node removes that one or none: versions of the nodes themselves begin anew with each.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from moldau.core.clock import Clock
from moldau.core.repeated_line import RepeatedLine
from moldau.store.process import ProcessId, is_alive, is_gone
from moldau.store.store import CorruptStore, Registration, StoreError
from moldau.store.tree import layout
from moldau.store.tree.client import (
    Change,
    Check,
    Create,
    Delete,
    NoNode,
    Operation,
    Signal,
    TransactionRefused,
    TreeClient,
    Unanswered,
    patiently,
)

LOGGER = logging.getLogger(__name__)

WAIT_SHARE = 1.5  # of a session's time-out: the ensemble counts in ticks, and a node of ours may be that late


@dataclass(frozen=True, slots=True)
class Found:
    """A registration, and its node."""

    payload: bytes
    process: ProcessId
    host: str
    version: int
    session_id: int


class Brokers:
    def __init__(self, client: TreeClient, clock: Clock, process: ProcessId) -> None:
        self._client = client
        self._clock = clock
        self._process = process
        self._changed = Signal()
        self._ended = Signal()  # one for all that is waited for: a client keeps what it was given to fire
        self._unreadable = RepeatedLine(LOGGER, logging.ERROR)

    async def register(self, registration: Registration) -> int:
        """The session that the registration belongs to. Waits for what an earlier process left to end."""
        await self._check_cluster(registration.description.cluster_id)
        path = layout.broker_path(registration.broker_id)
        waited_for: int | None = None
        while True:
            count, node = await self._look(path)
            if node is None or self._may_replace(node):
                session_id = await self._put(path, count, node, registration)
                if session_id is not None:
                    return session_id
            elif node.session_id == waited_for or self._lives_here(node):
                where = f"as process {node.process.pid} on {node.host}"
                advice = "stop it, or choose another node.id and an empty directory (log.dirs)"
                raise StoreError(f"broker {registration.broker_id} is already running {where}; {advice}")
            else:
                waited_for = node.session_id
                LOGGER.warning(
                    "broker %d is registered as process %d on %s; waiting for that session to end",
                    registration.broker_id, node.process.pid, node.host,
                )  # fmt: skip
                await self._wait_for_end(path)

    async def update(self, registration: Registration, session_id: int, *, is_over: Callable[[], bool]) -> bool:
        """Whether the registration of this session was there to be changed, and is not `over` for its owner."""
        path = layout.broker_path(registration.broker_id)
        while True:
            await self._client.catch_up()
            node = await self._client.find(path)
            if node is None or node.session_id != session_id or is_over():
                return False
            changed = Change(path, self._encoded(registration), version=node.version)
            with contextlib.suppress(Unanswered, TransactionRefused):
                await self._client.commit_once(changed)
                return True

    async def is_registered(self, broker_id: int, session_id: int) -> bool:
        node = await self._client.find_once(layout.broker_path(broker_id))
        return node is not None and node.session_id == session_id

    async def living(self, *, watch: Signal | None = None) -> list[Registration]:
        ids = sorted(
            int(name) for name in await self._client.children(layout.BROKER_IDS, watch=watch) if name.isdigit()
        )
        paths = [layout.broker_path(broker_id) for broker_id in ids]
        found = await asyncio.gather(*(self._client.find(path, watch=watch) for path in paths))
        living: list[Registration] = []
        for broker_id, path, node in zip(ids, paths, found, strict=True):
            try:
                if node is not None:
                    living.append(Registration(broker_id, layout.decode_broker(path, node.data)[0]))
            except CorruptStore as wrong:
                # Whoever wrote there, what becomes of all other brokers must not depend on it.
                self._unreadable.say(f"broker {broker_id} counts as gone: {wrong}")
        return living

    async def watch(self) -> AsyncIterator[list[Registration]]:
        last: list[Registration] | None = None
        while True:
            changed = self._changed.next()
            living = await patiently(lambda: self.living(watch=self._changed))
            if living != last:
                last = living
                yield living
            await changed.wait()

    async def evict(self, registration: Registration) -> bool:
        """Whether this very registration was there, and is not any more."""
        path = layout.broker_path(registration.broker_id)
        while True:
            count, node = await self._look(path)
            if node is None or node.payload != registration.payload:
                return False
            with contextlib.suppress(Unanswered, TransactionRefused):
                await self._client.commit_once(self._counted(count), *await self._removal(path, node))
                return True

    async def name_cluster(self, proposed: str) -> str:
        with contextlib.suppress(TransactionRefused):  # it is there
            await self._client.commit(Create(layout.CLUSTER_ID, layout.encode_cluster_id(proposed)))
        await self._client.catch_up()
        return layout.decode_cluster_id((await self._client.get(layout.CLUSTER_ID)).data)

    def close(self) -> None:
        self._changed.fire()

    async def _check_cluster(self, cluster_id: str) -> None:
        """The first broker names the cluster, for operators; one with another cluster's data does not belong here."""
        if cluster_id and (known := await self.name_cluster(cluster_id)) != cluster_id:
            raise StoreError(
                f"the metadata store at {self._client.servers} belongs to cluster {known}, this broker to {cluster_id}"
            )

    async def _look(self, path: str) -> tuple[int, Found | None]:
        """The count of registrations first: if it still holds later, so does what was found."""
        await self._client.catch_up()
        folder = await self._client.get(layout.BROKER_IDS)
        node = await self._client.find(path)
        if node is None:
            return folder.version, None
        return folder.version, Found(*layout.decode_broker(path, node.data), node.version, node.session_id)

    def _may_replace(self, node: Found) -> bool:
        """Our own from before, or one whose process has ended on this machine: nobody has to wait for its session."""
        return node.process == self._process or is_gone(node.process)

    def _lives_here(self, node: Found) -> bool:
        """A process that was stopped lives, too: nobody can tell it from a slow one."""
        here = (self._process.boot, self._process.namespace)
        return (node.process.boot, node.process.namespace) == here and is_alive(node.process)

    async def _put(self, path: str, count: int, old: Found | None, registration: Registration) -> int | None:
        """None when something came between, or may have: the next look tells."""
        with contextlib.suppress(Unanswered, TransactionRefused, NoNode):
            removal = await self._removal(path, old) if old else []
            created = Create(path, self._encoded(registration), ephemeral=True)
            await self._client.commit_once(self._counted(count), *removal, created)
            node = await self._client.get(path)
            if node.session_id == self._client.session_id:
                return node.session_id
        return None

    async def _removal(self, path: str, node: Found) -> list[Operation]:
        """Of a node, and of /controller if the same session was elected; every election changes the epoch's version."""
        removal: list[Operation] = [Delete(path, version=node.version)]
        epoch = await self._client.get(layout.CONTROLLER_EPOCH)
        controller = await self._client.find(layout.CONTROLLER)
        if controller is not None and controller.session_id == node.session_id:
            removal += [Check(layout.CONTROLLER_EPOCH, epoch.version), Delete(layout.CONTROLLER)]
        return removal

    def _counted(self, count: int) -> Operation:
        return Change(layout.BROKER_IDS, b"", version=count)

    async def _wait_for_end(self, path: str) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SHARE * self._client.session_timeout_s):
                while True:
                    changed = self._ended.next()
                    if await self._client.find(path, watch=self._ended) is None:
                        return
                    await changed.wait()

    def _encoded(self, registration: Registration) -> bytes:
        return layout.encode_broker(
            registration, self._process, host=socket.gethostname(), timestamp_ms=self._clock.now_ms()
        )

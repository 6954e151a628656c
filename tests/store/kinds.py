"""The stores that the one suite runs on: how each is opened, here and in another process."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from moldau.core.clock import SystemClock
from moldau.store.process import ProcessId
from moldau.store.sqlite import SqliteStore
from moldau.store.store import MetadataStore, Registration

SESSION_TIMEOUT_MS = 12_000  # no busy machine keeps a process from its heartbeats for so long
BRIEF_TIMEOUT_MS = 2_000  # for a broker whose session is to end
TEST_S_MAX = 60.0


class Kind(Protocol):
    def opened(self, **options: Any) -> Any: ...

    @property
    def spec(self) -> str: ...


@dataclass(frozen=True)
class SqliteKind:
    path: Path

    @asynccontextmanager
    async def opened(self, **options: Any) -> AsyncIterator[MetadataStore]:
        store = await open_sqlite(self.path, **options)
        try:
            yield store
        finally:
            await store.close()

    @property
    def spec(self) -> str:
        return json.dumps({"sqlite": str(self.path)})


@dataclass(frozen=True)
class ZookeeperKind:
    connect: str
    chroot: str = field(default_factory=lambda: f"/tests/{uuid.uuid4().hex}")

    @asynccontextmanager
    async def opened(self, **options: Any) -> AsyncIterator[MetadataStore]:
        store = await open_in_zookeeper(self.connect + self.chroot, **options)
        try:
            yield store
        finally:
            await store.close()

    @property
    def spec(self) -> str:
        return json.dumps({"zookeeper": self.connect + self.chroot})


@dataclass(frozen=True)
class EtcdKind:
    connect: str
    chroot: str = field(default_factory=lambda: f"/tests/{uuid.uuid4().hex}")

    @asynccontextmanager
    async def opened(self, **options: Any) -> AsyncIterator[MetadataStore]:
        store = await open_in_etcd(self.connect + self.chroot, **options)
        try:
            yield store
        finally:
            await store.close()

    @property
    def spec(self) -> str:
        return json.dumps({"etcd": self.connect + self.chroot})


async def open_store(spec: str, **options: Any) -> MetadataStore:
    fields = json.loads(spec)
    if "sqlite" in fields:
        return await open_sqlite(Path(fields["sqlite"]), **options)
    if "etcd" in fields:
        return await open_in_etcd(fields["etcd"], **options)
    return await open_in_zookeeper(fields["zookeeper"], **options)


async def open_sqlite(
    path: Path, *, session_timeout_ms: int = SESSION_TIMEOUT_MS, process: ProcessId | None = None
) -> SqliteStore:
    beat_ms = session_timeout_ms // 10
    return await SqliteStore.open(
        path, session_timeout_ms=session_timeout_ms, heartbeat_interval_ms=beat_ms, process=process
    )


async def open_in_zookeeper(
    connect: str, *, session_timeout_ms: int = SESSION_TIMEOUT_MS, process: ProcessId | None = None
) -> MetadataStore:
    from moldau.store.zookeeper import open_zookeeper

    return await open_zookeeper(
        connect, SystemClock(), session_timeout_ms=session_timeout_ms, connection_timeout_ms=30_000, process=process
    )


async def open_in_etcd(
    connect: str, *, session_timeout_ms: int = SESSION_TIMEOUT_MS, process: ProcessId | None = None
) -> MetadataStore:
    from moldau.store.etcd import open_etcd

    return await open_etcd(
        connect, SystemClock(), session_timeout_ms=session_timeout_ms, connection_timeout_ms=30_000, process=process
    )


async def lead(store: MetadataStore, broker_id: int) -> int:
    """Register and be elected: the epoch."""
    await store.register(Registration(broker_id, b"%d" % broker_id))
    leadership = await store.elect(broker_id)
    assert leadership.broker_id == broker_id
    return leadership.epoch


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for happens in a callback or another process
        await asyncio.sleep(0.01)


def run(test: Callable[[], Awaitable[None]], *, limit_s: float = TEST_S_MAX) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(limit_s):
            await test()

    asyncio.run(bounded())

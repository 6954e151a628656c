"""A store in a ZooKeeper ensemble, from `zookeeper.connect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.core.clock import Clock
from moldau.store.process import ProcessId
from moldau.store.store import SESSION_TIMEOUT_MS
from moldau.store.tree.connect_string import ConnectString
from moldau.store.tree.store import TreeStore
from moldau.store.zookeeper.client import ZookeeperClient

if TYPE_CHECKING:
    from moldau.store.zookeeper.security import ZookeeperSecurity

PORT = 2181


async def open_zookeeper(
    connect: str,
    clock: Clock,
    *,
    session_timeout_ms: int = SESSION_TIMEOUT_MS,
    connection_timeout_ms: int | None = None,
    process: ProcessId | None = None,
    security: ZookeeperSecurity | None = None,
) -> TreeStore:
    """Raises StoreError when no server takes the session in time, by default in a session's."""
    servers = ConnectString.parse(connect, key="zookeeper.connect", port=PORT)
    client = ZookeeperClient(servers, session_timeout_ms=session_timeout_ms, security=security)
    await client.start((connection_timeout_ms or session_timeout_ms) / 1000)
    return await TreeStore.open(client, clock, process=process)

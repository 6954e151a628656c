"""A store in an etcd cluster, from `etcd.connect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.core.clock import Clock
from moldau.store.etcd.client import EtcdClient
from moldau.store.process import ProcessId
from moldau.store.store import SESSION_TIMEOUT_MS
from moldau.store.tree.connect_string import ConnectString
from moldau.store.tree.store import TreeStore

if TYPE_CHECKING:
    from moldau.security.tls.client_contexts import ClientTls

PORT = 2379


async def open_etcd(
    connect: str,
    clock: Clock,
    *,
    session_timeout_ms: int = SESSION_TIMEOUT_MS,
    connection_timeout_ms: int | None = None,
    process: ProcessId | None = None,
    tls: ClientTls | None = None,
) -> TreeStore:
    """Raises StoreError when no server takes the session in time, by default in a session's."""
    servers = ConnectString.parse(connect, key="etcd.connect", port=PORT)
    client = EtcdClient(servers, session_timeout_ms=session_timeout_ms, tls=tls)
    await client.start((connection_timeout_ms or session_timeout_ms) / 1000)
    return await TreeStore.open(client, clock, process=process)

"""etcd as a tree of nodes: keys are paths, revisions are versions, and a lease is a session."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.core.clock import elapsed_s
from moldau.store.etcd.http import HttpFailed, HttpServer
from moldau.store.etcd.transactions import MISSING, decoded, encoded, paths, refusal, transaction
from moldau.store.etcd.watching import Watches
from moldau.store.store import StoreError
from moldau.store.tree.client import NO_SESSION, Create, Node, NoNode, Operation, Signal, Unanswered, Unreachable
from moldau.store.tree.connect_string import ConnectString

if TYPE_CHECKING:
    from moldau.security.tls.client_contexts import ClientTls

ANSWER_SHARE = 1 / 4  # of a session: how long one server may take, so that another can be asked in time
KEEP_ALIVE_SHARE = 1 / 6  # of a session: four in what the store takes for its lease
RETRY_S = 0.05
STOP_S_MAX = 3.0  # for the cluster to hear that the session ends; otherwise it finds out on its own
OK, NOT_FOUND = 200, 404
# 408 and the 500s: the server was stopped, has no leader, lost it, or the others did not answer it.
UNANSWERED_STATUS = (408, 500, 502, 503, 504)

LOGGER = logging.getLogger(__name__)


class EtcdClient:
    """Asks one server until it fails to answer, then the next. A session that ended is followed by another."""

    service = "etcd"

    def __init__(self, servers: ConnectString, *, session_timeout_ms: int, tls: ClientTls | None = None) -> None:
        self.servers = servers
        self.session_timeout_s = session_timeout_ms / 1000
        self.session_id: int | None = None
        self.prolonged_s = -math.inf
        self.on_session_ended: Callable[[], None] | None = None
        hosts = [server.rpartition(":")[::2] for server in servers.servers]
        self._servers = [HttpServer(host.strip("[]"), int(port), tls) for host, port in hosts]
        self._turn = 0
        self._is_failing = False
        self._is_closed = False
        self._has_session = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None
        self._watches = Watches(self._server, self._leave, idle_s_max=self.session_timeout_s / 2)

    @property
    def is_connected(self) -> bool:
        return self.session_id is not None and not self._is_closed

    async def start(self, timeout_s: float) -> None:
        """Raises Unreachable when none of the servers takes the session in time."""
        try:
            await self._begin_session(timeout_s)
        except BaseException:
            await self.stop()
            raise
        self._keeping = asyncio.create_task(self._keep_alive(), name="etcd-lease")

    async def connected(self) -> None:
        """A majority answers: else this asks until one does."""
        if self._is_closed:
            raise StoreError("the metadata store is closed")
        if self._is_failing:
            await self._ask("/v3/kv/range", {"key": self._key("/"), "keys_only": True})

    async def get(self, path: str, *, watch: Signal | None = None) -> Node:
        node = await self.find(path, watch=watch)
        if node is None:
            raise NoNode(path)
        return node

    async def find(self, path: str, *, watch: Signal | None = None) -> Node | None:
        if watch is not None:
            await self._watched(path, watch, is_folder=False)
        return _node(await self._ask("/v3/kv/range", {"key": self._key(path)}))

    async def find_once(self, path: str) -> Node | None:
        return _node(await self._call("/v3/kv/range", {"key": self._key(path)}))

    async def children(self, path: str, *, watch: Signal | None = None) -> list[str]:
        if watch is not None:
            await self._watched(path, watch, is_folder=True)
        prefix = f"{self.servers.chroot}{path}/"
        wanted = {"key": encoded(prefix.encode()), "range_end": encoded(_end_of(prefix)), "keys_only": True}
        found = (await self._ask("/v3/kv/range", wanted)).get("kvs", [])
        names = [decoded(each["key"]).decode().removeprefix(prefix) for each in found]
        return [name for name in names if "/" not in name]

    async def catch_up(self) -> None:
        """Nothing to do: etcd's reads go through a majority."""

    async def commit(self, *operations: Operation) -> None:
        while True:
            await self.connected()
            with contextlib.suppress(Unanswered):
                return await self.commit_once(*operations)

    async def commit_once(self, *operations: Operation) -> None:
        if any(isinstance(each, Create) and each.ephemeral for each in operations):
            await self._in_session()
        answer = await self._call("/v3/kv/txn", transaction(operations, self._key, self.session_id))
        if answer.get("succeeded"):
            return
        found = [each["response_range"].get("kvs", []) for each in answer["responses"]]
        revisions = [int(kvs[0]["mod_revision"]) if kvs else MISSING for kvs in found]
        raise refusal(operations, dict(zip(paths(operations), revisions, strict=True))) or Unanswered

    async def prepare(self, path: str) -> None:
        """Nothing is above a key; the key itself marks the tree as ours."""
        await self._ask("/v3/kv/put", {"key": self._key(path)})

    def drop_connection(self) -> None:
        self._leave(self._server())

    async def stop(self) -> None:
        self._is_closed = True
        tasks = [self._keeping] if self._keeping else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._watches.stop(), return_exceptions=True)
        if self.session_id is not None:
            with contextlib.suppress(Unanswered, StoreError):
                await self._call("/v3/lease/revoke", {"ID": str(self.session_id)}, timeout_s=STOP_S_MAX)
        for server in self._servers:
            server.close()

    async def _ask(self, path: str, body: dict[str, Any], *, timeout_s: float | None = None) -> dict[str, Any]:
        limit_s = timeout_s or self.session_timeout_s
        until_s = elapsed_s() + limit_s
        while not self._is_closed:
            with contextlib.suppress(Unanswered):
                return await self._call(path, body)
            if elapsed_s() >= until_s:
                raise Unreachable(f"no etcd server of {self.servers} has answered for {limit_s:g} s")
            await asyncio.sleep(RETRY_S)
        raise StoreError("the metadata store is closed")

    async def _call(self, path: str, body: dict[str, Any], *, timeout_s: float | None = None) -> dict[str, Any]:
        """One server, once."""
        server = self._server()
        try:
            async with asyncio.timeout(timeout_s or self.session_timeout_s * ANSWER_SHARE):
                status, answer = await server.post(path, body)
        except (HttpFailed, TimeoutError) as wrong:
            self._leave(server)
            raise Unanswered from wrong
        if status == OK:
            self._is_failing = False
            return answer
        if status in UNANSWERED_STATUS:
            self._leave(server)
            raise Unanswered(answer.get("error", status))
        if status == NOT_FOUND and "lease" in str(answer.get("error")):
            self._end_session()
            raise Unanswered("the session ended")
        raise StoreError(f"etcd at {self.servers} refused a request: {answer.get('error', status)}")

    def _server(self) -> HttpServer:
        return self._servers[self._turn % len(self._servers)]

    def _leave(self, server: HttpServer) -> None:
        if server is self._server():
            self._turn += 1
        self._is_failing = True
        server.close()

    async def _watched(self, path: str, watch: Signal, *, is_folder: bool) -> None:
        try:
            async with asyncio.timeout(self.session_timeout_s):
                await self._watches.begin(self.servers.chroot + path + ("/" if is_folder else ""), watch)
        except TimeoutError:
            limit_s = self.session_timeout_s
            raise Unreachable(f"no etcd server of {self.servers} has answered for {limit_s:g} s") from None

    async def _in_session(self) -> None:
        """A node that goes with its session must not be made between two of them: it would stay for ever."""
        try:
            async with asyncio.timeout(self.session_timeout_s):
                await self._has_session.wait()
        except TimeoutError:
            limit_s = self.session_timeout_s
            raise Unreachable(f"there was no session with etcd at {self.servers} for {limit_s:g} s") from None

    async def _begin_session(self, timeout_s: float | None = None) -> None:
        wanted = {"TTL": math.ceil(self.session_timeout_s)}
        sent_s = elapsed_s()
        self.session_id = int((await self._ask("/v3/lease/grant", wanted, timeout_s=timeout_s))["ID"])
        self.prolonged_s = sent_s
        self._has_session.set()

    async def _keep_alive(self) -> None:
        """etcd's lease is prolonged by this and by nothing else."""
        while True:
            await asyncio.sleep(self.session_timeout_s * KEEP_ALIVE_SHARE)
            try:
                if self.session_id is None:
                    await self._begin_session()
                else:
                    await self._prolong(self.session_id)
            except (Unanswered, StoreError):
                continue
            except Exception:  # nobody else would prolong this session, nor begin another
                LOGGER.exception("the session with etcd at %s can't be kept; it is tried again", self.servers)

    async def _prolong(self, session_id: int) -> None:
        sent_s = elapsed_s()
        answer = await self._call("/v3/lease/keepalive", {"ID": str(session_id)})
        if session_id != self.session_id:
            return
        if int(answer.get("result", {}).get("TTL", 0)) <= 0:
            self._end_session()
        else:
            self.prolonged_s = sent_s

    def _end_session(self) -> None:
        if self.session_id is None:
            return
        LOGGER.warning("the session with etcd at %s is lost", self.servers)
        self.session_id = None
        self._has_session.clear()
        if self.on_session_ended is not None:
            self.on_session_ended()

    def _key(self, path: str) -> str:
        return encoded((self.servers.chroot + path).encode())


def _node(answer: dict[str, Any]) -> Node | None:
    kvs = answer.get("kvs")
    if not kvs:
        return None
    return Node(decoded(kvs[0].get("value", "")), int(kvs[0]["mod_revision"]), int(kvs[0].get("lease", NO_SESSION)))


def _end_of(prefix: str) -> bytes:
    """The first key after all that begin with the prefix, whose last character is a slash."""
    return prefix[:-1].encode() + b"0"

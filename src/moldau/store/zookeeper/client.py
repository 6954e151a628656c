"""kazoo on asyncio: what its threads hear is handed to the loop, and nothing of it is waited for on the loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionDropped,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KazooState

from moldau.core.clock import elapsed_s
from moldau.store.store import StoreError
from moldau.store.tree.client import (
    Change,
    Check,
    Create,
    Delete,
    Node,
    NoNode,
    Operation,
    Refusal,
    Signal,
    TransactionRefused,
    Unanswered,
    Unreachable,
)
from moldau.store.tree.connect_string import ConnectString

if TYPE_CHECKING:  # an ensemble that is open needs none of it
    from moldau.store.zookeeper.security import ZookeeperSecurity

# kazoo writes one byte for each request that it has not sent to a pipe that holds 278, and then waits.
REQUESTS_MAX = 64
CONNECT_TIMEOUT_SHARE = 6  # of a session, over all servers: a silent server must leave time to try the others
STOP_S_MAX = 3.0  # for the ensemble to hear that the session ends; otherwise it finds out on its own
ANY_VERSION = -1
RECONNECT = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 0.5}

UNANSWERED = (ConnectionLoss, SessionExpiredError, SessionMovedError, OperationTimeoutError)
REFUSALS = {NodeExistsError: Refusal.EXISTS, NoNodeError: Refusal.MISSING, BadVersionError: Refusal.CHANGED}

LOGGER = logging.getLogger(__name__)
KAZOO_LOGGER = logging.getLogger(f"{__name__}.kazoo")
KAZOO_LOGGER.setLevel(logging.CRITICAL)  # what it has to say about a connection is said here, in one line

Send = Callable[[KazooClient], Any]


class ZookeeperClient:
    """kazoo's client, as the store's tree needs it. kazoo begins the next session by itself when one has ended."""

    service = "ZooKeeper"

    def __init__(
        self, servers: ConnectString, *, session_timeout_ms: int, security: ZookeeperSecurity | None = None
    ) -> None:
        self.servers = servers
        self.session_timeout_s = self._wanted_timeout_s = session_timeout_ms / 1000
        self.session_id: int | None = None
        self.prolonged_s = -math.inf
        self.on_session_ended: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._connected = asyncio.Event()
        self._room = asyncio.Semaphore(REQUESTS_MAX)
        self._is_closed = False
        self._socket: socket.socket | None = None
        self._security = security
        self._logs_in = security is not None and security.user is not None
        self._refused = ""  # why the last connection was not secured, for people
        handler = SequentialThreadingHandler()
        self._create_connection = handler.create_connection
        handler.create_connection = self._open_connection
        self._kazoo = KazooClient(
            ",".join(servers.servers),
            timeout=self._wanted_timeout_s,
            handler=handler,
            connection_retry=RECONNECT,
            logger=KAZOO_LOGGER,
        )
        self._kazoo.add_listener(self._hear_state)
        self._negotiate = self._kazoo._connection._connect
        self._kazoo._connection._connect = self._connect

    @property
    def is_connected(self) -> bool:
        return self._connected.is_set() and not self._is_closed

    async def start(self, timeout_s: float) -> None:
        """Raises Unreachable when none of the servers takes the session in time."""
        self._kazoo.start_async()
        try:
            await self.connected(timeout_s)
        except BaseException:
            await self.stop()
            raise

    async def connected(self, timeout_s: float | None = None) -> None:
        limit_s = timeout_s or self.session_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                await self._connected.wait()
        except TimeoutError:
            why = f"; {self._refused}" if self._refused else ""
            raise Unreachable(f"no ZooKeeper server of {self.servers} has answered for {limit_s:g} s{why}") from None
        if self._is_closed:
            raise StoreError("the metadata store is closed")

    async def get(self, path: str, *, watch: Signal | None = None) -> Node:
        fire = watch.fire if watch else None
        data, stat = await self._ask(lambda kazoo: kazoo.get_async(self._rooted(path), fire))
        return Node(data, stat.version, stat.ephemeralOwner)

    async def find(self, path: str, *, watch: Signal | None = None) -> Node | None:
        fire = watch.fire if watch else None
        while True:
            try:
                return await self.get(path, watch=watch)
            except NoNode:
                if await self._ask(lambda kazoo: kazoo.exists_async(self._rooted(path), fire)) is None:
                    return None

    async def find_once(self, path: str) -> Node | None:
        try:
            data, stat = await self._ask_once(lambda kazoo: kazoo.get_async(self._rooted(path)))
        except NoNode:
            return None
        return Node(data, stat.version, stat.ephemeralOwner)

    async def children(self, path: str, *, watch: Signal | None = None) -> list[str]:
        fire = watch.fire if watch else None
        names: list[str] = await self._ask(lambda kazoo: kazoo.get_children_async(self._rooted(path), fire))
        return names

    async def catch_up(self) -> None:
        """The server that answers us may be behind the others."""
        await self._ask(lambda kazoo: kazoo.sync_async(self._rooted("/")))

    async def commit(self, *operations: Operation) -> None:
        while True:
            await self.connected()
            with contextlib.suppress(Unanswered):
                return await self.commit_once(*operations)

    async def commit_once(self, *operations: Operation) -> None:
        def send(kazoo: KazooClient) -> Any:
            transaction = kazoo.transaction()
            for operation in operations:
                self._add(operation, transaction)
            return transaction.commit_async()

        for index, result in enumerate(await self._ask_once(send)):
            # What stands before and after the operation that was refused was rolled back, or not looked at.
            if isinstance(result, KazooException) and not isinstance(result, RolledBackError | RuntimeInconsistency):
                reason = REFUSALS.get(type(result))
                raise self._unexpected(result) if reason is None else TransactionRefused(index, reason)

    async def prepare(self, path: str) -> None:
        await self._ask(lambda kazoo: kazoo.ensure_path_async(self._rooted(path), self._acl(path)))

    def drop_connection(self) -> None:
        """kazoo takes requests that it can send for a sign of life, and would go on for a quarter of an hour."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # By TCP's own: that of a TLS socket forgets the session, and kazoo's thread would read ciphertext.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    async def stop(self) -> None:
        """kazoo waits for its threads, and they for the network: that has no place on the loop, nor at its end."""
        self._is_closed = True
        stopped = asyncio.Event()

        def stop() -> None:
            with contextlib.suppress(Exception):
                self._kazoo.stop()
                self._kazoo.close()
            self._on_loop(stopped.set)

        threading.Thread(target=stop, name="zookeeper-stop", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S_MAX):
                await stopped.wait()
        self._connected.set()  # whoever waits for a connection learns that there will be none

    async def _ask(self, send: Send) -> Any:
        while True:
            await self.connected()
            with contextlib.suppress(Unanswered):
                return await self._ask_once(send)

    async def _ask_once(self, send: Send) -> Any:
        await self._room.acquire()
        answer: asyncio.Future[Any] = self._loop.create_future()
        sent_s = elapsed_s()

        def answered(result: Any) -> None:
            self._on_loop(self._settle, answer, result, sent_s)

        try:
            send(self._kazoo).rawlink(answered)
        except BaseException:
            self._room.release()
            raise
        try:
            return await answer
        except UNANSWERED as wrong:
            raise Unanswered from wrong
        except NoNodeError as wrong:
            raise NoNode from wrong
        except KazooException as wrong:
            raise self._unexpected(wrong) from None

    def _unexpected(self, wrong: KazooException) -> StoreError:
        if isinstance(wrong, ConnectionClosedError):
            return StoreError("the metadata store is closed")
        return StoreError(f"ZooKeeper at {self.servers} refused a request: {type(wrong).__name__} {wrong}".rstrip())

    def _add(self, operation: Operation, transaction: TransactionRequest) -> None:
        path = self._rooted(operation.path)
        match operation:
            case Check(version=version):
                transaction.check(path, ANY_VERSION if version is None else version)
            case Create(data=data, ephemeral=ephemeral):
                transaction.create(path, data, acl=self._acl(operation.path), ephemeral=ephemeral)
            case Change(data=data, version=version):
                transaction.set_data(path, data, ANY_VERSION if version is None else version)
            case Delete(version=version):
                transaction.delete(path, ANY_VERSION if version is None else version)

    def _rooted(self, path: str) -> str:
        return (self.servers.chroot + path).rstrip("/") or "/"

    def _acl(self, path: str) -> list[Any] | None:
        return None if self._security is None else self._security.acl(path)

    # What follows runs on kazoo's threads.

    def _open_connection(self, *args: Any, **options: Any) -> Any:
        timeout_s = self._wanted_timeout_s / CONNECT_TIMEOUT_SHARE
        opened = self._create_connection(*args, **{**options, "timeout": timeout_s})
        if self._security is not None:
            opened = self._trusted(self._security.secured, opened, options["hostname"], timeout_s)
        self._socket = opened
        return opened

    def _trusted(self, securing: Callable[..., Any], *args: Any) -> Any:
        """What it gives; a failure is told once, and is one more connection that kazoo has to make anew."""
        from moldau.store.zookeeper.security import NotTrusted

        try:
            return securing(*args)
        except NotTrusted as wrong:
            if str(wrong) != self._refused:
                LOGGER.warning("ZooKeeper at %s: %s", self.servers, wrong)
            self._refused = str(wrong)
            raise ConnectionDropped(str(wrong)) from None

    def _connect(self, *args: Any) -> Any:
        """`args` begin with the server's host.

        kazoo keeps what it and the server agreed on to itself; two thirds of it are how long it waits to read.
        """
        login = self._begin_login(args[0]) if self._logs_in else None
        read_timeout_ms, connect_timeout_ms = self._negotiate(*args)
        self.session_timeout_s = min(self._wanted_timeout_s, read_timeout_ms * 1.5 / 1000)
        if login is not None:
            from moldau.store.zookeeper.security import log_in

            self._trusted(log_in, login, self._kazoo._connection, connect_timeout_ms / 1000)
            self._on_loop(self._change_state, KazooState.CONNECTED, self._kazoo.client_id[0])
        self._refused = ""
        return read_timeout_ms, connect_timeout_ms

    def _begin_login(self, host: str) -> Any:
        assert self._security is not None, "it names the user"
        return self._trusted(self._security.begin_login, host)

    def _hear_state(self, state: str) -> None:
        if state == KazooState.CONNECTED and self._logs_in:
            return  # kazoo says so before the login
        client_id = self._kazoo.client_id if state == KazooState.CONNECTED else None
        self._on_loop(self._change_state, state, client_id[0] if client_id else None)

    def _on_loop(self, function: Callable[..., object], *args: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
            self._loop.call_soon_threadsafe(function, *args)

    # And this on the loop again.

    def _change_state(self, state: str, session_id: int | None) -> None:
        if state == KazooState.CONNECTED:
            LOGGER.info("connected with ZooKeeper at %s", self.servers)
            self.session_id = session_id
            self._connected.set()
            return
        if not self._is_closed:
            self._connected.clear()
            what = "session" if state == KazooState.LOST else "connection"
            LOGGER.warning("the %s with ZooKeeper at %s is lost", what, self.servers)
        if state == KazooState.LOST:
            self.session_id = None
            if self.on_session_ended is not None:
                self.on_session_ended()

    def _settle(self, answer: asyncio.Future[Any], result: Any, sent_s: float) -> None:
        self._room.release()
        wrong = result.exception
        # A refusal is an answer, too; only silence is none.
        if not isinstance(wrong, (*UNANSWERED, ConnectionClosedError)):
            self.prolonged_s = max(self.prolonged_s, sent_s)
        if answer.done():
            return
        if wrong is None:
            answer.set_result(result.value)
        else:
            answer.set_exception(wrong)

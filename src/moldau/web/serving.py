"""One application at several listeners, until it is told to end: what is under way is answered first."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from ssl import SSLContext
from typing import TypeVar

from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import ServerState

from moldau.core.clock import Clock, SystemClock
from moldau.web.guarding import Guard, GuardedConnection
from moldau.web.limits import Limits
from moldau.web.listening import BACKLOG, Bound

ENDINGS = (signal.SIGINT, signal.SIGTERM)
DATE_S = 1.0
CLOSE_S = 1.0  # for a request to close what it opened, behind its answer

T = TypeVar("T")

LOGGER = logging.getLogger(__name__)


@dataclass(slots=True)
class Server:
    """`serve` returns when `end` was called, and all connections are closed."""

    application: ASGIApp
    bound: Sequence[Bound]
    limits: Limits = field(default_factory=Limits)
    tls: SSLContext | None = None
    """Of all listeners for https."""
    clock: Clock = field(default_factory=SystemClock)
    guard: Guard = field(init=False)
    state: ServerState = field(init=False, default_factory=ServerState)
    _ended: asyncio.Event = field(init=False, default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.guard = Guard(self.limits, lambda: self.clock.elapsed_ms() / 1_000)

    def end(self) -> None:
        self._ended.set()

    async def serve(self, on_ready: Callable[[], None] = lambda: None) -> None:
        config = Config(
            self.application,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=3_600,  # the guard is stricter
        )
        config.load()
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns of whatever strangers send
        loop = asyncio.get_running_loop()
        self._tell_date()
        servers = [
            await loop.create_server(
                lambda: GuardedConnection(config, self.state, self.guard),
                sock=each.socket,
                backlog=BACKLOG,
                ssl=self.tls if each.listener.is_tls else None,
                ssl_handshake_timeout=self.limits.handshake_s if each.listener.is_tls else None,
            )
            for each in self.bound
        ]
        tasks = [asyncio.create_task(self.guard.run()), asyncio.create_task(self._keep_date())]
        try:
            on_ready()
            await self._ended.wait()
        finally:
            for server in servers:
                server.close()
            await self._leave()
            for task in tasks:
                task.cancel()

    async def _leave(self) -> None:
        self.guard.leave()
        try:
            async with asyncio.timeout(self.limits.leave_s):
                await self.guard.is_empty.wait()
        except TimeoutError:
            LOGGER.warning("%d requests were not done in %g s", len(self.state.tasks), self.limits.leave_s)
        for each in [*self.guard.connections]:
            each.transport.abort()
        await self._close_requests()

    async def _close_requests(self) -> None:
        """Answers are out before what made them is closed. What is late is not told as a failure."""
        under_way = [*self.state.tasks]
        late = (await asyncio.wait(under_way, timeout=CLOSE_S))[1] if under_way else set()
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=CLOSE_S)

    async def _keep_date(self) -> None:
        while True:
            await asyncio.sleep(DATE_S)
            self._tell_date()

    def _tell_date(self) -> None:
        date = formatdate(self.clock.now_ms() / 1_000, usegmt=True)
        self.state.default_headers = [(b"date", date.encode())]


async def until_signal(serve: Callable[[Callable[[Callable[[], None]], None]], Awaitable[T]]) -> T:
    """Run a service. It gets a function, to be told how the service is ended, which SIGINT and SIGTERM do then.

    A second signal has the process end at once.
    """
    loop = asyncio.get_running_loop()
    enders: list[Callable[[], None]] = []
    has_ended = False

    def end() -> None:
        nonlocal has_ended
        has_ended = True
        for each in ENDINGS:
            loop.remove_signal_handler(each)
        for ender in enders:
            ender()

    def take(ender: Callable[[], None]) -> None:
        enders.append(ender)
        if has_ended:
            ender()

    for each in ENDINGS:
        loop.add_signal_handler(each, end)
    try:
        return await serve(take)
    finally:
        for each in ENDINGS:
            loop.remove_signal_handler(each)

"""Connections that cost nobody else anything: deadlines for each part of a request, and a number that is never passed.

Who sends a byte a second, or reads nothing, is dropped. One sweep looks at all connections; nothing has timers of its
own. It extends uvicorn's protocol, which is made for it (`http=`): the phases of a request are known nowhere else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from enum import Enum
from typing import Any, cast
from urllib.parse import unquote

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from moldau.web.limits import Limits

SWEEP_S = 0.5
NEVER = float("inf")


class Phase(Enum):
    HEAD = "head"
    BODY = "body"
    ANSWER = "answer"
    IDLE = "idle"


class _HeadTooLarge(Exception):
    pass


class _TooManyAhead(Exception):
    """Out of the parser, which would go on with whatever else came."""


class Guard:
    """All connections of a server, by the time they came."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self.limits = limits
        self.linger_s = limits.linger_s
        self.now = now
        self.connections: dict[GuardedConnection, None] = {}
        self.is_empty = asyncio.Event()
        self.is_empty.set()
        self.dropped = {"connections": 0, "head": 0, "body": 0, "answer": 0, "idle": 0, "pipelined": 0}

    def admit(self, connection: GuardedConnection) -> None:
        """Somebody who asks nothing makes room, the longest first; without such a one, whoever came is not taken."""
        if len(self.connections) >= self.limits.connections:
            waiting = (each for each in self.connections if each.phase in {Phase.IDLE, Phase.HEAD})
            unlucky = next(waiting, connection)
            self.drop(unlucky, "connections")
            if unlucky is connection:
                return
        self.connections[connection] = None
        self.is_empty.clear()

    def forget(self, connection: GuardedConnection) -> None:
        self.connections.pop(connection, None)
        if not self.connections:
            self.is_empty.set()

    def drop(self, connection: GuardedConnection, reason: str) -> None:
        self.dropped[reason] += 1
        self.forget(connection)
        connection.transport.abort()

    def sweep(self) -> None:
        now_s = self.now()
        for each in [each for each in self.connections if each.is_late(now_s)]:
            self.drop(each, each.phase.value)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            self.sweep()

    def leave(self) -> None:
        """No connection gets another request, and each ends with what it has."""
        self.linger_s = SWEEP_S
        for each in [*self.connections]:
            each.shutdown()


class GuardedConnection(HttpToolsProtocol):
    def __init__(self, config: Config, state: ServerState, guard: Guard) -> None:
        super().__init__(config, state, {})
        self.guard = guard
        self.limits = guard.limits
        self.phase = Phase.IDLE
        self.deadline_s = guard.now() + guard.limits.head_s
        self.unread_deadline_s = NEVER
        self.head_bytes = 0
        self.is_stream = False
        self.is_left = False
        """Everything is said; whatever the client still sends is thrown away."""
        self.answering: Any = None
        """The cycle at work: uvicorn knows the last that came, which may wait behind it."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.transport = cast("asyncio.Transport", _Lingering(transport, self))
        self.guard.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.guard.forget(self)
        if self.answering is not None and not self.answering.response_complete:
            self.answering.disconnected = True  # or it writes all of its answer to nobody, and a stream never ends
            self.answering.message_event.set()
        super().connection_lost(exc)

    def lingers(self) -> bool:
        """Instead of closing: upon bytes that nobody has read that is a reset, which overtakes the answer."""
        is_sending = self.phase is Phase.BODY and self.cycle.response_complete
        if is_sending and not self.is_left and not self.transport.is_closing():
            self._linger()
            return True
        return False

    def _linger(self) -> None:
        self.is_left = True
        self.deadline_s = self.guard.now() + self.guard.linger_s
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self.answering = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        if self.is_left:
            if self.phase is Phase.BODY:
                super().data_received(data)  # to see the end of it
            return
        before = self.phase
        super().data_received(data)
        if self.phase is Phase.HEAD and before is Phase.HEAD:
            self.head_bytes += len(data)
            if self.head_bytes > self.limits.header_bytes:
                self.send_400_response("")
        elif self.phase is Phase.BODY and not self.is_stream and not self.is_left:
            # What came fast earns no silence: whoever sends megabytes at once could hold them for half an hour.
            later_s = self.deadline_s + len(data) / self.limits.body_bytes_per_s
            self.deadline_s = min(later_s, self.guard.now() + self.limits.body_s)

    def is_late(self, now_s: float) -> bool:
        if now_s >= self.unread_deadline_s:
            self.phase = Phase.ANSWER
            return True
        if self.phase is Phase.BODY and self.flow.read_paused:
            self.deadline_s += SWEEP_S  # we are the ones who don't read
            return False
        return now_s >= self.deadline_s

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= self.limits.pipelined:
            self.guard.drop(self, "pipelined")
            raise _TooManyAhead
        super().on_message_begin()
        self.phase = Phase.HEAD
        self.head_bytes = 0
        self.deadline_s = self.guard.now() + self.limits.head_s

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count_head(len(name) + len(value))

    def _count_head(self, size: int) -> None:
        self.head_bytes += size
        if self.head_bytes > self.limits.header_bytes:
            raise _HeadTooLarge

    def on_headers_complete(self) -> None:
        self.phase = Phase.BODY
        path = unquote(self.url.partition(b"?")[0].decode("ascii", "replace"))
        self.is_stream = self.limits.is_stream(path)
        self.deadline_s = NEVER if self.is_stream else self.guard.now() + self.limits.body_s
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self.is_left:
            self.transport.close()
            return
        self.phase = Phase.IDLE if self.cycle.response_complete else Phase.ANSWER
        self.deadline_s = self.guard.now() + self.limits.idle_s if self.phase is Phase.IDLE else NEVER

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self.is_left:  # the last one of those that were sent without waiting
            self.phase = Phase.IDLE
            self.deadline_s = self.guard.now() + self.limits.idle_s

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread_deadline_s = self.guard.now() + self.limits.unread_s

    def resume_writing(self) -> None:
        super().resume_writing()
        self.unread_deadline_s = NEVER

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """No HTTP, or too much of it: in the shape of all errors."""
        status, words = 400, "Bad Request"
        if self.head_bytes > self.limits.header_bytes:
            status, words = 431, "Request Header Fields Too Large"
        if self.transport.is_closing() or self.is_left:
            return
        if self.cycle is not None and not self.cycle.response_complete and self.cycle.response_started:
            self.transport.abort()  # in the middle of another answer
            return
        content = json.dumps({"error_code": status, "message": f"HTTP {status} {words}"}).encode()
        head = (
            f"HTTP/1.1 {status} {words}\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + content)
        self.phase = Phase.HEAD
        self._linger()


class _Lingering:
    """A transport that is closed when its client has sent all of a request."""

    def __init__(self, transport: asyncio.Transport, connection: GuardedConnection) -> None:
        self._transport = transport
        self._connection = connection

    def close(self) -> None:
        if not self._connection.lingers():
            self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

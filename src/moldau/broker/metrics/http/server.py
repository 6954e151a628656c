"""The listening socket for scrapers and probes. It is open from the start to the end of the process."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket

from moldau.broker.metrics.http.connection import Answers, HttpConnection
from moldau.core.limits import HTTP_CONNECTIONS_MAX
from moldau.core.repeated_line import RepeatedLine

LOGGER = logging.getLogger(__name__)

BACKLOG = 64
PACE_S = 0.005  # from one request or connection to the next, of all together: each costs 0.2 ms of the loop
NO_DESCRIPTORS_S = 1.0
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class HttpServer:
    """Owned by one event loop."""

    def __init__(self) -> None:
        self.host = ""
        self.port = 0
        self._socket: socket.socket | None = None
        self._answers: Answers | None = None
        self._connections: set[HttpConnection] = set()
        self._arriving: set[asyncio.Task[None]] = set()
        self._next_s = 0.0
        self._no_descriptors = RepeatedLine(LOGGER, logging.WARNING)

    def bind(self, host: str, port: int) -> None:
        """Take the address. Raises OSError."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.setblocking(False)
            listening.bind(address)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
        self._socket = listening
        self.host, self.port = listening.getsockname()[:2]

    def start(self, answers: Answers) -> None:
        self._answers = answers
        self._listen()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    async def close(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None
        for task in self._arriving:
            task.cancel()
        for connection in tuple(self._connections):
            connection.abort()
        await asyncio.gather(*self._arriving, return_exceptions=True)

    async def wait_turn(self) -> None:
        """Requests are answered one after the other, at a pace that leaves the loop to the broker's clients."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        self._next_s = max(now_s, self._next_s + PACE_S)
        await asyncio.sleep(self._next_s - now_s)

    def _listen(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        assert self._socket is not None, "only an open socket is readable"
        pause_s = PACE_S
        try:
            sock, _ = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as wrong:
            if wrong.errno not in _NO_DESCRIPTORS:
                raise
            self._no_descriptors.say(f"metrics and probes are not answered for want of descriptors: {wrong.strerror}")
            pause_s = NO_DESCRIPTORS_S
        else:
            task = asyncio.get_running_loop().create_task(self._let_in(sock))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket.fileno())
        loop.call_later(pause_s, self._listen)

    async def _let_in(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._connection, sock)
        except OSError:
            sock.close()

    def _connection(self) -> HttpConnection:
        assert self._answers is not None, "nobody is let in before there are answers"
        if len(self._connections) >= HTTP_CONNECTIONS_MAX:
            self._make_room()
        connection = HttpConnection(self._answers, wait_turn=self.wait_turn, on_close=self._connections.discard)
        self._connections.add(connection)
        return connection

    def _make_room(self) -> None:
        """Whoever was silent for longest goes, and first of all who asked for nothing that is being answered."""
        most_idle = min(self._connections, key=lambda one: (one.is_answering, one.last_active_s))
        self._connections.discard(most_idle)
        most_idle.abort()

"""One connection to one broker: requests go out in order, answers come back in that order."""

from __future__ import annotations

import socket
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from moldau.wire.codec import decode, encode_parts
from moldau.wire.frame import RequestHeader, read_response_header, request_parts
from moldau.wire.schema import Message

if TYPE_CHECKING:
    from moldau.client.security import ConnectionSecurity

ANSWER_BYTES_MAX = 1 << 30
LOGIN_BYTES_MAX = 524_288  # Kafka's own limit for the other direction
SOCKET_BYTES = 4 * 1024 * 1024  # the next answer arrives here while the last one is worked on

Answer = TypeVar("Answer", bound=Message)


class BrokerConnection:
    """Whatever goes wrong is an `OSError`, after which there is nothing to do but to close it."""

    def __init__(
        self, host: str, port: int, *, client_id: str, timeout_s: float, security: ConnectionSecurity | None = None
    ) -> None:
        self._host = host
        self._client_id = client_id
        self._correlation_id = 0
        self._unanswered: deque[tuple[int, int]] = deque()
        self._buffer = memoryview(b"")
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
        self._security = security
        self._kept: deque[memoryview] = deque()  # answers that came before a login and are not taken yet
        self._renewed_s = float("inf")
        if security is not None:
            self._secure(security)

    @property
    def is_closed(self) -> bool:
        return self._socket.fileno() < 0

    def close(self) -> None:
        self._socket.close()

    def __del__(self) -> None:
        # A worker keeps connections as long as it lives, and caches let go of the oldest.
        if hasattr(self, "_socket"):
            self._socket.close()

    def ask(self, request: Message, version: int) -> None:
        """Send a request without waiting for its answer."""
        if self._security is not None and time.monotonic() >= self._renewed_s:
            self._renew(self._security)
        self._correlation_id += 1
        self._unanswered.append((self._correlation_id, version))
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        is_flexible = version >= request.FLEXIBLE_FROM
        for part in request_parts(header, encode_parts(request, version), is_flexible=is_flexible):
            self._socket.sendall(part)

    def answer(self, kind: type[Answer]) -> Answer:
        """The answer to the oldest request that has none yet; bytes in it are valid until the next one is taken."""
        if not self._unanswered:
            raise OSError("nothing was asked on this connection")
        expected, version = self._unanswered.popleft()
        frame = self._kept.popleft() if self._kept else self._receive(self._size(ANSWER_BYTES_MAX))
        correlation_id, at = read_response_header(frame, kind, version)
        if correlation_id != expected:
            raise OSError("an answer to another request")
        message: Any = decode(kind, version, frame, at)[0]
        return message  # type: ignore[no-any-return]

    def call(self, request: Message, version: int, kind: type[Answer]) -> Answer:
        self.ask(request, version)
        return self.answer(kind)

    def _secure(self, security: ConnectionSecurity) -> None:
        try:
            self._socket = security.secured(self._socket, self._host)
            self._renewed_s = security.logged_in(self._client_id, self._exchange, self._host)
        except BaseException:
            self._socket.close()
            raise

    def _renew(self, security: ConnectionSecurity) -> None:
        """A broker answers in order: what was asked before is taken first, and kept (KIP-368)."""
        while len(self._kept) < len(self._unanswered):
            self._kept.append(self._copied(ANSWER_BYTES_MAX))
        self._renewed_s = security.logged_in(self._client_id, self._exchange, self._host)

    def _exchange(self, frame: bytes) -> memoryview:
        self._socket.sendall(frame)
        return self._copied(LOGIN_BYTES_MAX)

    def _copied(self, bytes_max: int) -> memoryview:
        """A frame in memory of its own: the answer before it may still be worked on."""
        return self._filled(memoryview(bytearray(self._size(bytes_max))))

    def _size(self, bytes_max: int) -> int:
        size = int.from_bytes(self._filled(memoryview(bytearray(4))), "big", signed=True)
        if not 0 < size <= bytes_max:
            raise OSError(f"an answer of {size} bytes")
        return size

    def _receive(self, size: int) -> memoryview:
        if size > len(self._buffer):
            # One buffer for all answers: a new one for each would be mapped page by page, which takes as long as to
            # fill it. numpy leaves new memory as it is, where a bytearray would be filled with zeros first.
            self._buffer = memoryview(np.empty(size + size // 4, np.uint8).data)
        return self._filled(self._buffer[:size])

    def _filled(self, view: memoryview) -> memoryview:
        size, filled = len(view), 0
        while filled < size:
            count = self._socket.recv_into(view[filled:], size - filled)
            if not count:
                raise OSError("the broker closed the connection")
            filled += count
        return view

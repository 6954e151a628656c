"""One connection to one broker that answers one question at a time, in the newest version that both ends know."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from moldau.core.errors import ProtocolViolation
from moldau.wire.api import ApiKey
from moldau.wire.codec import decode, encode_parts, is_flexible
from moldau.wire.frame import SIZE_BYTES, RequestHeader, read_response_header, request_parts
from moldau.wire.messages import ApiVersionsRequest, ApiVersionsResponse
from moldau.wire.schema import Message

if TYPE_CHECKING:
    from moldau.client.security import ConnectionSecurity

ANSWER_BYTES_MAX = 100 << 20  # as much as Java's clients take; something else than a broker may say any number
CHUNK_BYTES_MAX = 1 << 20
# Who sends byte by byte, each in time, may not hold a tool for ever; a large answer over a slow line may take longer.
ANSWER_BYTES_PER_S_MIN = 64 << 10

R = TypeVar("R", bound=Message)


class Unsupported(Exception):
    """The broker answers no version of this API that we know."""

    def __init__(self, server: str, api_key: int) -> None:
        super().__init__(f"the broker at {server} does not answer {ApiKey(api_key).name}")


class NotListening(OSError):
    """Nothing takes connections there, or nobody can be reached."""


class NotAccepted(OSError):
    """One end does not take the other for who it says it is: its certificate, or its password."""


class LoginRefused(NotAccepted):
    """The broker does not know this user, or not with this password."""


class Connection:
    """What goes wrong is an `OSError` or a `ProtocolViolation`, after which there is nothing to do but to close it."""

    def __init__(
        self, host: str, port: int, *, client_id: str, timeout_s: float, security: ConnectionSecurity | None = None
    ) -> None:
        self.server = f"{host}:{port}"
        self._client_id = client_id
        self._ids = count(1)
        self._versions: Mapping[int, tuple[int, int]] | None = None
        self._timeout_s = timeout_s
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
        except OSError as wrong:
            raise NotListening(wrong.errno, wrong.strerror or str(wrong)) from None
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if security is not None:
                self._socket = security.secured(self._socket, host)
                security.logged_in(client_id, self._exchange, host)  # long before its end a tool is done
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def wait_up_to(self, timeout_s: float) -> None:
        """How long answers may take from here on: some, as that to JoinGroup, come when others have done something."""
        self._timeout_s = timeout_s

    def buffer(self, receive_bytes: int) -> None:
        """What the system may keep of answers until they are read."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)

    @property
    def versions(self) -> Mapping[int, tuple[int, int]]:
        """The oldest and the newest version of each API that the broker answers."""
        if self._versions is None:
            found = self.ask_as(ApiVersionsRequest(), ApiVersionsResponse, 0)
            self._versions = {each.api_key: (each.min_version, each.max_version) for each in found.api_keys}
        return self._versions

    def ask(self, request: Message, response: type[R], *, version_max: int | None = None) -> R:
        oldest, newest = self.versions.get(request.API_KEY, (0, -1))
        version = min(newest, request.VERSIONS[1] if version_max is None else version_max)
        if version < max(oldest, request.VERSIONS[0]):
            raise Unsupported(self.server, request.API_KEY)
        return self.ask_as(request, response, version)

    def ask_as(self, request: Message, response: type[R], version: int) -> R:
        """In this version, which the broker is known to answer."""
        header = RequestHeader(request.API_KEY, version, next(self._ids), self._client_id)
        parts = request_parts(header, encode_parts(request, version), is_flexible=is_flexible(type(request), version))
        frame = self._exchange(b"".join(parts))
        correlation_id, at = read_response_header(frame, response, version)
        if correlation_id != header.correlation_id:
            raise ProtocolViolation("an answer to another request")
        message: R = decode(response, version, frame, at)[0]
        return message

    def _exchange(self, frame: bytes) -> memoryview:
        self._socket.settimeout(self._timeout_s)
        self._socket.sendall(frame)
        size = int.from_bytes(self._received(SIZE_BYTES), "big", signed=True)
        if not 0 < size <= ANSWER_BYTES_MAX:
            raise ProtocolViolation(f"an answer of {size} bytes")
        return self._received(size)

    def _received(self, size: int) -> memoryview:
        """Memory grows with what came, not with what was announced."""
        received = bytearray()
        deadline_s = time.monotonic() + self._timeout_s + size / ANSWER_BYTES_PER_S_MIN
        while len(received) < size:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("the answer did not come in time")
            self._socket.settimeout(min(self._timeout_s, left_s))
            more = self._socket.recv(min(size - len(received), CHUNK_BYTES_MAX))
            if not more:
                raise ConnectionError("it hung up")
            received += more
        return memoryview(received)

"""A connection that sends one request and waits for its answer, and says so when it is closed instead."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
from typing import Any, Final

from tests.differential import schema

CLOSED: Final = "connection closed"
SILENT: Final = "no answer"
ANSWER_WAIT_S = 4.0

Answer = schema.Fields | str


class Peer:
    def __init__(self, address: tuple[str, int], *, client_id: str | None = "differential", source: str = "") -> None:
        """`source` is the address that it comes from, which may be any of the loopback's."""
        self.address, self.client_id, self.source = address, client_id, source
        self.correlation_ids = itertools.count(1)
        self.socket = self.connected()

    def connected(self) -> socket.socket:
        return socket.create_connection(self.address, ANSWER_WAIT_S, (self.source, 0) if self.source else None)

    def close(self) -> None:
        self.socket.close()

    def reconnect(self) -> None:
        self.socket.close()
        self.socket = self.connected()

    def ask(self, api: str, version: int, /, **fields: Any) -> Answer:
        self.tell(api, version, **fields)
        return self.answer(api, version)

    def tell(self, api: str, version: int, /, **fields: Any) -> None:
        """Send a request, and leave its answer, if there is one, for later."""
        self.send_request(api, version, schema.encode(api + "Request", version, fields))

    def answer(self, api: str, version: int) -> Answer:
        frame = self.receive()
        if not isinstance(frame, bytes):
            return frame
        # The answer to ApiVersions has the oldest header at every version, for its asker can't know which we speak.
        has_tags = schema.is_flexible(api + "Response", version) and api != "ApiVersions"
        return schema.decode(api + "Response", version, frame[5:] if has_tags else frame[4:])

    def send_request(self, api: str, version: int, body: bytes) -> None:
        head = struct.pack(">hhi", schema.api_key(api), version, next(self.correlation_ids))
        name = None if self.client_id is None else self.client_id.encode()
        head += struct.pack(">h", -1) if name is None else struct.pack(">h", len(name)) + name
        if schema.is_flexible(api + "Request", version):
            head += b"\0"
        self.send_frame(head + body)

    def send_frame(self, frame: bytes) -> None:
        self.send(struct.pack(">i", len(frame)) + frame)

    def send(self, data: bytes) -> None:
        # The broker may hang up while we are sending; the next receive says so.
        with contextlib.suppress(OSError):
            self.socket.sendall(data)

    def receive(self, wait_s: float = ANSWER_WAIT_S) -> bytes | str:
        self.socket.settimeout(wait_s)
        try:
            (size,) = struct.unpack(">i", self.exactly(4))
            return self.exactly(size)
        except TimeoutError:
            return SILENT
        except OSError:
            return CLOSED

    def exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            more = self.socket.recv(size - len(received))
            if not more:
                raise ConnectionError("closed by the broker")
            received += more
        return bytes(received)

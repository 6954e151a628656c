"""A client that sends whatever it likes, built on the product's own messages so that it needs no Java."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
from typing import Any, Final

from moldau.wire.codec import decode, encode, is_flexible
from moldau.wire.frame import read_response_header
from moldau.wire.messages.registry import RESPONSES
from moldau.wire.schema import Message

CLOSED: Final = "connection closed"
ANSWER_WAIT_S = 20.0
ANSWERS = {response.API_KEY: response for response in RESPONSES}

Address = tuple[str, int]


def header(api_key: int, version: int, correlation_id: int = 1, *, flexible: bool) -> bytes:
    start = struct.pack(">hhih", api_key, version, correlation_id, -1)
    return start + b"\0" if flexible else start


def frame(request: Message, version: int, correlation_id: int = 1) -> bytes:
    """A whole request, size included."""
    start = header(request.API_KEY, version, correlation_id, flexible=is_flexible(type(request), version))
    return framed(start + encode(request, version))


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


class Attacker:
    """One connection; what the broker does with it is for the test to judge."""

    def __init__(self, address: Address, *, wait_s: float = ANSWER_WAIT_S) -> None:
        self.socket = socket.create_connection(address, wait_s)
        self.correlation_ids = itertools.count(1)

    def __enter__(self) -> Attacker:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """The broker may hang up in the middle: the next answer tells."""
        with contextlib.suppress(OSError):
            self.socket.sendall(data)

    def tell(self, request: Message, version: int) -> None:
        self.send(frame(request, version, next(self.correlation_ids)))

    def ask(self, request: Message, version: int) -> Any:
        """The decoded answer, or `CLOSED`."""
        self.tell(request, version)
        return self.answer_to(type(request), version)

    def answer_to(self, request: type[Message], version: int) -> Any:
        """The same for what was told before."""
        content = self.answer()
        if isinstance(content, str):
            return content
        kind = ANSWERS[request.API_KEY]
        _, at = read_response_header(memoryview(content), kind, version)
        return decode(kind, version, content, at)[0]

    def answer(self) -> bytes | str:
        """The content of one frame, or `CLOSED`; silence is an error of the test's."""
        try:
            (size,) = struct.unpack(">i", self.exactly(4))
            return self.exactly(size)
        except TimeoutError:
            raise
        except OSError:
            return CLOSED

    def answer_or_silence(self, wait_s: float) -> bytes | str | None:
        self.socket.settimeout(wait_s)
        try:
            return self.answer()
        except TimeoutError:
            return None

    def exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            more = self.socket.recv(min(1 << 20, size - len(received)))
            if not more:
                raise ConnectionError("closed by the broker")
            received += more
        return bytes(received)

"""What is told to the exporting process: frames on its standard input, which ends when whoever started it does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from struct import Struct
from typing import BinaryIO

HEADER = Struct(">cI")
PAGE, PUSH, SEND = b"P", b"C", b"S"
"""A page of Prometheus' text; metrics that a client pushed, behind what is known of it; and: send what came."""
FRAME_BYTES_MAX = (1 << 32) - 1
_SIZE = Struct(">I")


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    return HEADER.pack(kind, len(payload)) + payload


def push_frame(attributes: Mapping[str, str], data: bytes) -> bytes:
    head = json.dumps(attributes).encode()
    return frame(PUSH, _SIZE.pack(len(head)) + head + data)


def pushed(payload: bytes) -> tuple[dict[str, str], bytes]:
    (size,) = _SIZE.unpack_from(payload)
    at = _SIZE.size + size
    return json.loads(payload[_SIZE.size : at]), payload[at:]


def read_frame(stream: BinaryIO) -> tuple[bytes, bytes] | None:
    """None at the end."""
    head = stream.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    kind, size = HEADER.unpack(head)
    payload = stream.read(size)
    return None if len(payload) < size else (kind, payload)

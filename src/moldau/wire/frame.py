"""What stands around a message: a size, and a header that says which message it is or which request it answers.

A frame is a signed 32-bit size and that many bytes. A request's header is of version 2 when the message's version is
flexible, and of version 1 otherwise; a response's header is of version 1 or 0 likewise, except that an answer to
ApiVersions always has version 0: the client that reads it can't know yet what the broker speaks.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from moldau.core.errors import Truncated
from moldau.wire.api import ApiKey
from moldau.wire.decoding import skip_tags
from moldau.wire.schema import Message

SIZE_BYTES = 4

REQUEST_START = struct.Struct(">hhih")
_RESPONSE = struct.Struct(">ii")
_RESPONSE_FLEXIBLE = struct.Struct(">iib")


class RequestHeader(Struct, frozen=True, gc=False):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def has_flexible_header(response: type[Message], version: int) -> bool:
    return version >= response.FLEXIBLE_FROM and response.API_KEY != ApiKey.API_VERSIONS


def response_parts(correlation_id: int, body_parts: Sequence[Any], *, is_flexible: bool) -> list[Any]:
    """A whole response frame, in buffers to be sent in order; `is_flexible` is what `has_flexible_header` says."""
    size = len(body_parts[0]) if len(body_parts) == 1 else sum(map(len, body_parts))
    if is_flexible:
        start = _RESPONSE_FLEXIBLE.pack(size + 5, correlation_id, 0)
    else:
        start = _RESPONSE.pack(size + 4, correlation_id)
    # The encoder's first part is its small pieces joined, so one more copy costs less than one more buffer.
    return [start + body_parts[0], *body_parts[1:]] if body_parts else [start]


def read_response_header(view: memoryview, response: type[Message], version: int) -> tuple[int, int]:
    """The correlation id at the start of a response's content, and the position where the message begins."""
    if len(view) < 4:
        raise Truncated(needed=4, have=len(view))
    correlation_id = int.from_bytes(view[:4], "big", signed=True)
    return correlation_id, skip_tags(view, 4) if has_flexible_header(response, version) else 4


def request_parts(header: RequestHeader, body_parts: Sequence[Any], *, is_flexible: bool) -> list[Any]:
    """A whole request frame, in buffers to be sent in order: for a follower's fetcher, and for tests."""
    client_id = b"" if header.client_id is None else header.client_id.encode()
    client_id_size = -1 if header.client_id is None else len(client_id)
    start = REQUEST_START.pack(header.api_key, header.api_version, header.correlation_id, client_id_size) + client_id
    if is_flexible:
        start += b"\0"
    size = len(start) + sum(map(len, body_parts))
    return [size.to_bytes(SIZE_BYTES, "big") + start, *body_parts]

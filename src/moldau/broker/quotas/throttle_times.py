"""The throttle time of a response, whether it is a message still, or bytes already."""

from __future__ import annotations

from struct import Struct
from typing import Any

from moldau.broker.requests.answers import Encoded, Relayed
from moldau.wire.frame import read_response_header
from moldau.wire.messages.registry import RESPONSES
from moldau.wire.schema import Message, fields_of

NAME = "throttle_time_ms"

_INT32 = Struct(">i")
_BY_KEY: dict[int, type[Message]] = {kind.API_KEY: kind for kind in RESPONSES}


def told_ms(response: Any, key: int, version: int) -> int:
    """What the response says of it; 0 where that is not to be found."""
    if isinstance(response, Encoded | Relayed):
        found = _place(response, key, version)
        return 0 if found is None else int(_INT32.unpack_from(*found)[0])
    return int(getattr(response, NAME, 0))


def tell(response: Any, throttle_ms: int, key: int, version: int) -> None:
    """Have a response say so, if this version of it can. The connection is muted in any case."""
    if isinstance(response, Encoded):
        if _is_first(response.kind, version):
            response.body[0] = _INT32.pack(throttle_ms) + bytes(response.body[0][_INT32.size :])
    elif isinstance(response, Relayed):
        found = _place(response, key, version)
        if found is not None:
            frame = bytearray(response.frame)
            _INT32.pack_into(frame, found[1], throttle_ms)
            response.frame = bytes(frame)
    else:
        kind: Any = type(response)
        if any(field.name == NAME and version in field.versions for field in fields_of(kind)):
            response.throttle_time_ms = throttle_ms


def _place(response: Encoded[Any] | Relayed, key: int, version: int) -> tuple[Any, int] | None:
    """The bytes that it is in, and where; None where it does not come first."""
    if isinstance(response, Encoded):
        return (response.body[0], 0) if _is_first(response.kind, version) else None
    kind = _BY_KEY.get(key)
    if kind is None or not _is_first(kind, version):
        return None
    return response.frame, read_response_header(memoryview(response.frame), kind, version)[1]


def _is_first(kind: Any, version: int) -> bool:
    fields = [field for field in fields_of(kind) if version in field.versions and field.tag is None]
    return bool(fields) and fields[0].name == NAME

"""How a payload says which schema wrote it: an id before the payload, or one in a record header.

    prefix   0x00, id in 4 bytes, big-endian; [message indexes]; payload
    header   __key_schema_id or __value_schema_id = 0x01, GUID in 16 bytes; [message indexes]; the payload untouched

Readers find either form of id in either place. Message indexes are there with Protobuf only, so the payload's start is
known only when the id's schema, and with it its type, is known: that is why a `Frame` is read in two steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from moldau.schemas.model import InvalidValue

MAGIC_ID = 0x00
MAGIC_GUID = 0x01
ID_BYTES = 4
GUID_BYTES = 16
ID_MAX = 0x7FFFFFFF

# A message nested in a message is one more index, and compilers stop at 32 of them: any count beyond is no count.
MESSAGE_INDEXES_MAX = 64
# A zigzag of 32 bits: the index of a message in its file or its parent.
VARINT_BYTES_MAX = 5

FIRST_MESSAGE = (0,)

Headers = Iterable[tuple[str, bytes | None]]


class NotFramed(InvalidValue):
    """The payload names no schema: it was not written by a serializer that uses a registry."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A payload with the id of its schema, read so far as is possible without that schema."""

    schema: int | UUID
    after: bytes  # what follows the id: message indexes if it is Protobuf's, then the payload if `payload` is None
    payload: bytes | None = None  # of an id from a header

    def content(self, *, indexed: bool) -> tuple[tuple[int, ...], bytes]:
        """Message indexes (Protobuf has them: `indexed`) and the payload alone. Raises InvalidValue."""
        message, rest = read_message_indexes(self.after) if indexed else ((), self.after)
        return message, rest if self.payload is None else self.payload


def header_name(is_key: bool) -> str:
    return "__key_schema_id" if is_key else "__value_schema_id"


def write_id(schema: int | UUID, message: Sequence[int] = ()) -> bytes:
    """What stands before a payload or in the header; `message` is empty unless the schema is Protobuf's."""
    if isinstance(schema, UUID):
        start = bytes((MAGIC_GUID,)) + schema.bytes
    elif 0 <= schema <= ID_MAX:
        start = bytes((MAGIC_ID,)) + schema.to_bytes(ID_BYTES, "big")
    else:
        raise InvalidValue(f"{schema} is no schema id; allowed 0..{ID_MAX}")
    return start + write_message_indexes(message) if message else start


def read_frame(payload: bytes, is_key: bool, headers: Headers = ()) -> Frame:
    """The id in the record's headers, else the one before its payload. Raises NotFramed if there is none."""
    name, written = header_name(is_key), None
    for key, value in headers:
        if key == name:
            written = value  # the last one counts, as for Java's clients
    if written is not None:
        schema, after = read_id(written, f"the header {name}")
        return Frame(schema, after, payload)
    schema, after = read_id(payload, "the payload")
    return Frame(schema, after)


def read_id(data: bytes, place: str = "the payload") -> tuple[int | UUID, bytes]:
    """An id and what follows it."""
    if not data:
        raise NotFramed(f"{place} is empty: no schema id")
    if data[0] == MAGIC_ID:
        size = 1 + ID_BYTES
    elif data[0] == MAGIC_GUID:
        size = 1 + GUID_BYTES
    else:
        raise NotFramed(f"{place} starts with 0x{data[0]:02x}: no schema id (0x00 and an id, or 0x01 and a GUID)")
    if len(data) < size:
        raise NotFramed(f"{place} ends after {len(data)} bytes, within the schema id")
    number = bytes(data[1:size])
    schema = int.from_bytes(number, "big") if data[0] == MAGIC_ID else UUID(bytes=number)
    if isinstance(schema, int) and schema > ID_MAX:
        raise NotFramed(f"{place} starts with 0x{bytes(data[:size]).hex()}: no schema id has its highest bit set")
    return schema, bytes(data[size:])


def write_message_indexes(message: Sequence[int]) -> bytes:
    """The way to a message from its file; the first one, which most files have alone, is a single 0x00."""
    if tuple(message) == FIRST_MESSAGE:
        return b"\x00"
    if not 0 < len(message) <= MESSAGE_INDEXES_MAX or not all(0 <= index <= ID_MAX for index in message):
        raise InvalidValue(f"{list(message)} are no message indexes")
    return _zigzag(len(message)) + b"".join(map(_zigzag, message))


def read_message_indexes(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Message indexes and what follows them. Raises InvalidValue."""
    count, at = _unzigzag(data, 0)
    if count == 0:
        return FIRST_MESSAGE, data[at:]
    if not 0 < count <= MESSAGE_INDEXES_MAX:
        raise InvalidValue(f"{count} message indexes after the schema id; allowed 1..{MESSAGE_INDEXES_MAX}")
    message = []
    for _ in range(count):
        index, at = _unzigzag(data, at)
        if index < 0:
            raise InvalidValue(f"message index {index} after the schema id is negative")
        message.append(index)
    return tuple(message), data[at:]


def _zigzag(value: int) -> bytes:
    value <<= 1  # none is negative
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _unzigzag(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(VARINT_BYTES_MAX):
        if at >= len(data):
            raise InvalidValue("the bytes end within the message indexes after the schema id")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at
    raise InvalidValue(f"a message index after the schema id has more than {VARINT_BYTES_MAX} bytes")

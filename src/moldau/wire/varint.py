"""Variable-length integers: seven bits a byte, lowest first, the high bit says that more follow."""

from __future__ import annotations

from moldau.core.errors import ProtocolViolation, Truncated

UVARINT_BYTES_MAX = 5  # 32 bits
VARLONG_BYTES_MAX = 10  # 64 bits

# Nearly every length, count and tag is below 128, so its encoding is looked up and not made.
ONE_BYTE = tuple(bytes((value,)) for value in range(128))


def read_uvarint(view: memoryview | bytes | bytearray, at: int) -> tuple[int, int]:
    """An unsigned 32-bit value and the position after it."""
    return _read(view, at, UVARINT_BYTES_MAX)


def read_varint(view: memoryview | bytes | bytearray, at: int) -> tuple[int, int]:
    """A signed 32-bit value in zigzag order, as record batches use it, and the position after it."""
    raw, at = _read(view, at, UVARINT_BYTES_MAX)
    return (raw >> 1) ^ -(raw & 1), at


def read_varlong(view: memoryview | bytes | bytearray, at: int) -> tuple[int, int]:
    """A signed 64-bit value in zigzag order, and the position after it."""
    raw, at = _read(view, at, VARLONG_BYTES_MAX)
    return (raw >> 1) ^ -(raw & 1), at


def write_uvarint(value: int) -> bytes:
    if value < 0x80:
        return ONE_BYTE[value]
    raw = bytearray()
    while value > 0x7F:
        raw.append(value & 0x7F | 0x80)
        value >>= 7
    raw.append(value)
    return bytes(raw)


def write_varint(value: int) -> bytes:
    """Zigzag: the sign moves to the lowest bit, so that small negatives stay short. Also for 64-bit values."""
    return write_uvarint(value << 1 if value >= 0 else ~(value << 1))


def _read(view: memoryview | bytes | bytearray, at: int, bytes_max: int) -> tuple[int, int]:
    value = shift = 0
    try:
        for position in range(at, at + bytes_max):
            byte = view[position]
            if byte < 0x80:
                return value | byte << shift, position + 1
            value |= (byte & 0x7F) << shift
            shift += 7
    except IndexError:
        raise Truncated(needed=len(view) + 1, have=len(view)) from None
    raise ProtocolViolation(f"a variable-length integer is longer than {bytes_max} bytes")

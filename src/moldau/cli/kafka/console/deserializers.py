"""Keys and values as text, by the names of Java's deserializers; text is what Java's `toString` gives."""

from __future__ import annotations

import math
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from moldau.cli.failures import UsageError, meant
from moldau.cli.kafka.console import own_code

Deserializer = Callable[[bytes], bytes]

PACKAGE = "org.apache.kafka.common.serialization."
PLAIN_LEAST, PLAIN_MOST = 1e-3, 1e7  # outside of it Java writes an exponent
FLOAT_DIGITS_MAX = 9


class Undecodable(Exception):
    """Bytes that are none of this type."""


def deserializer(name: str, properties: Mapping[str, str], *, option: str) -> Deserializer:
    if own_code.is_own(name):
        decode = own_code.load(name, properties, option=option)
        return lambda content: _encoded(decode(content))
    kind = name.removeprefix(PACKAGE).removesuffix("Deserializer")
    if kind not in KINDS:
        known = [f"{PACKAGE}{each}Deserializer" for each in KINDS]
        near = meant(name, known) or f"; known are {', '.join(KINDS)}, and a deserializer of your own is MODULE:NAME"
        raise UsageError(f"{option}: unknown deserializer {name!r}{near}")
    return KINDS[kind]


def _encoded(found: Any) -> bytes:
    return found if isinstance(found, bytes) else str(found).encode()


def _same(content: bytes) -> bytes:
    return content


def _text(content: bytes) -> bytes:
    return content.decode(errors="replace").encode()


def _number(layout: str) -> Deserializer:
    packed = struct.Struct(layout)

    def decoded(content: bytes) -> bytes:
        if len(content) != packed.size:
            raise Undecodable(f"Size of data received is not {packed.size}")
        return java_number(packed.unpack(content)[0], is_float=layout == ">f").encode()

    return decoded


def java_number(number: float, *, is_float: bool = False) -> str:
    """Of a whole number its digits; of others the shortest that are read back the same."""
    if isinstance(number, int):
        return str(number)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "-Infinity" if number < 0 else "Infinity"
    text = _shortest_float(number) if is_float else repr(number)
    size = abs(number)
    if size == 0:
        return "-0.0" if text.startswith("-") else "0.0"
    sign, digits, exponent = _parts(text)
    if PLAIN_LEAST <= size < PLAIN_MOST:
        whole = digits[: exponent + 1].ljust(exponent + 1, "0") if exponent >= 0 else "0"
        rest = digits[exponent + 1 :] if exponent >= 0 else "0" * (-exponent - 1) + digits
        return f"{sign}{whole}.{rest or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest_float(number: float) -> str:
    for digits in range(1, FLOAT_DIGITS_MAX):
        text = f"{number:.{digits}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", number):
            return text
    return f"{number:.{FLOAT_DIGITS_MAX}g}"


def _parts(text: str) -> tuple[str, str, int]:
    """The sign, the digits without zeros around them, and the power of ten of the first one."""
    found = re.fullmatch(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:e([+-]?[0-9]+))?", text)
    assert found is not None, "Python's own words for a number"
    whole, rest, exponent = found[2], found[3] or "", int(found[4] or 0)
    digits = whole + rest
    first = len(digits) - len(digits.lstrip("0"))
    return found[1], digits.strip("0"), exponent + len(whole) - 1 - first


def _boolean(content: bytes) -> bytes:
    values = {b"\x01": b"true", b"\x00": b"false"}
    if content not in values:
        raise Undecodable("Unexpected byte received by BooleanDeserializer")
    return values[content]


def _uuid(content: bytes) -> bytes:
    try:
        return str(uuid.UUID(content.decode())).encode()
    except ValueError:
        raise Undecodable("Error parsing data into UUID") from None


def _void(_content: bytes) -> bytes:
    raise Undecodable("Data should be null for a VoidDeserializer.")


def _byte_buffer(content: bytes) -> bytes:
    return f"java.nio.HeapByteBuffer[pos=0 lim={len(content)} cap={len(content)}]".encode()


def _bytes(content: bytes) -> bytes:
    """Java's `Bytes` shows printable ASCII but the backslash, and the rest in hexadecimal."""
    return "".join(
        chr(each) if 0x20 <= each <= 0x7E and each != 0x5C else f"\\x{each:02X}" for each in content
    ).encode()


KINDS: dict[str, Deserializer] = {
    "String": _text,
    "ByteArray": _same,
    "Long": _number(">q"),
    "Integer": _number(">i"),
    "Short": _number(">h"),
    "Double": _number(">d"),
    "Float": _number(">f"),
    "Boolean": _boolean,
    "UUID": _uuid,
    "Void": _void,
    "ByteBuffer": _byte_buffer,
    "Bytes": _bytes,
}

"""A distinguished name as Java's `X500Principal.getName()` prints it: Kafka's mapping rules are written for that.

That is RFC 2253: the last part of the name first, nine short names for attributes, and a number with the value in hex
for all others, an e-mail address among them. Java escapes `=` and every `#` besides what the RFC demands.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moldau.security.tls.der import OBJECT_ID, SEQUENCE, SET, InvalidDer, element, elements, expect, object_id

_KEYWORDS: Mapping[str, str] = MappingProxyType(
    {
        "2.5.4.3": "CN",
        "2.5.4.6": "C",
        "2.5.4.7": "L",
        "2.5.4.8": "ST",
        "2.5.4.9": "STREET",
        "2.5.4.10": "O",
        "2.5.4.11": "OU",
        "0.9.2342.19200300.100.1.1": "UID",
        "0.9.2342.19200300.100.1.25": "DC",
    }
)
_UTF8, _PRINTABLE, _T61, _IA5, _GENERAL, _BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E
_STRINGS = frozenset({_UTF8, _PRINTABLE, _T61, _IA5, _GENERAL, _BMP})
_ESCAPES = str.maketrans({each: f"\\{each}" for each in ',=+<>#;"\\'} | {"\0": "\\00"})
_BLANKS = " \r"


def rfc2253(name: bytes) -> str:
    """Of a Name in DER; empty if it has no parts. Raises InvalidDer."""
    parts = [_relative_name(expect(part, SET).content) for part in elements(expect(element(name), SEQUENCE).content)]
    return ",".join(reversed(parts))


def _relative_name(content: bytes) -> str:
    return "+".join(_attribute(expect(one, SEQUENCE).content) for one in elements(content))


def _attribute(content: bytes) -> str:
    held = list(elements(content))
    if len(held) != 2:
        raise InvalidDer("an attribute has a type and one value")
    number, value = object_id(expect(held[0], OBJECT_ID).content), held[1]
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or number}=#{value.raw.hex()}"
    # Java takes every kind of string for UTF-8, those of two bytes a character too.
    return f"{keyword}={_escaped(value.content.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    inner = text.strip(_BLANKS)
    if not inner:
        return "".join(f"\\{each}" for each in text)
    begin = len(text) - len(text.lstrip(_BLANKS))
    end = begin + len(inner)
    before, after = ("".join(f"\\{each}" for each in blanks) for blanks in (text[:begin], text[end:]))
    return before + inner.translate(_ESCAPES) + after

"""Why a message can't be encoded: the one error that encoders raise, and the search for the field that is to blame.

An encoder checks nothing by itself. When it fails, whatever it failed with, the message is looked through here.
"""

from __future__ import annotations

import struct
from typing import Any

from msgspec import Struct

from moldau.core.limits import STRING_BYTES_MAX
from moldau.wire.schema import Field, Kind, fields_of

_LENGTH_MAX = 2**31 - 1
_SHOWN_CHARS_MAX = 60


class EncodeError(ValueError):
    """A message holds what its version can't carry. It names the field."""


def encode_error(cls: type[Struct], version: int, message: Any, cause: Exception) -> EncodeError:
    """What to raise instead of whatever an encoder has failed with."""
    if isinstance(cause, EncodeError):
        return cause
    found = _wrong_in_struct(cls, version, message) if isinstance(message, cls) else f" = {_shown(message)}"
    return EncodeError(f"{cls.__name__}{found or ''} (version {version}): {cause!r}")


def _wrong_in_struct(cls: type[Struct], version: int, value: Any) -> str | None:
    """The path to the first wrong field and what is wrong with it; None if nothing is."""
    for field in fields_of(cls):
        if version in field.versions:
            wrong = _wrong_in_field(field, version, getattr(value, field.name))
            if wrong is not None:
                return f".{field.name}{wrong}"
    return None


def _wrong_in_field(field: Field, version: int, value: Any) -> str | None:
    if value is None:
        return None if field.is_nullable_in(version) else " = None"
    if not field.is_array:
        return _wrong_in_one(field, version, value)
    if not hasattr(value, "__len__"):
        return f" = {_shown(value)}"
    for index, element in enumerate(value):
        wrong = _wrong_in_one(field, version, element)
        if wrong is not None:
            return f"[{index}]{wrong}"
    return None


def _wrong_in_one(field: Field, version: int, value: Any) -> str | None:
    if not isinstance(field.type, Kind):
        return _wrong_in_struct(field.type, version, value) if isinstance(value, field.type) else f" = {_shown(value)}"
    if field.type.is_fixed:
        try:
            struct.pack(">" + field.type.value, value)
        except (struct.error, OverflowError):
            return f" = {_shown(value)}"
        return None
    if field.type is not Kind.STRING:
        # Records may be anything that has a length; bytes are bytes.
        fits = field.type is Kind.RECORDS or isinstance(value, bytes | bytearray | memoryview)
        return None if fits and hasattr(value, "__len__") and len(value) <= _LENGTH_MAX else f" = {_shown(value)}"
    return _wrong_in_string(value)


def _wrong_in_string(value: Any) -> str | None:
    if not isinstance(value, str):
        return f" = {_shown(value)}"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return f" = {_shown(value)}, which is no text"
    return None if size <= STRING_BYTES_MAX else f", a string of {size} bytes; at most {STRING_BYTES_MAX}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}..."

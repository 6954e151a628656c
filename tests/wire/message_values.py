"""Every value that a message class can carry at a version, as a hypothesis strategy made from its annotations."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import Struct

from moldau.core.errors import ErrorCode
from moldau.wire.messages.registry import REQUESTS, RESPONSES
from moldau.wire.schema import Field, Kind, Message, fields_of

CLASSES: tuple[type[Message], ...] = REQUESTS + RESPONSES
CASES = [(cls, version) for cls in CLASSES for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1)]
CASE_IDS = [f"{cls.__name__}-v{version}" for cls, version in CASES]

_BITS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
_TEXT = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(["x" * 127, "ž" * 64, "t" * 200])
_OTHERS: dict[Kind, SearchStrategy[Any]] = {
    Kind.BOOL: st.booleans(),
    Kind.UINT16: st.integers(0, 2**16 - 1),
    Kind.UINT32: st.integers(0, 2**32 - 1),
    Kind.FLOAT64: st.floats(allow_nan=False),
    Kind.UUID: st.binary(min_size=16, max_size=16),
    Kind.STRING: _TEXT,
    Kind.BYTES: st.binary(max_size=200),
    Kind.RECORDS: st.binary(max_size=200) | st.just(bytes(5000)),
}
# Other implementations give these a type of their own, which holds fewer values than the bytes do.
_ERROR_CODES = st.sampled_from([int(code) for code in ErrorCode])
_TIME_MS = st.integers(0, 4_000_000_000_000)
_TIMES: dict[str, SearchStrategy[int]] = {
    "log_append_time_ms": st.just(-1) | _TIME_MS,
    "transaction_start_time_ms": _TIME_MS,
    "retention_time_ms": st.just(-1) | _TIME_MS,
    "session_lifetime_ms": _TIME_MS,
    "max_lifetime_ms": st.just(-1) | _TIME_MS,
    "renew_period_ms": st.just(-1) | _TIME_MS,
    "expiry_time_period_ms": st.just(-1) | _TIME_MS,
    "issue_timestamp_ms": _TIME_MS,
    "expiry_timestamp_ms": _TIME_MS,
    "max_timestamp_ms": _TIME_MS,
}


def messages(cls: type[Any], version: int) -> SearchStrategy[Any]:
    """Objects with any value in the fields that the version has, and the default in the others."""
    return st.builds(cls, **{field.name: _values(field, version) for field in _fields(cls, version)})


def _fields(cls: type[Struct], version: int) -> list[Field]:
    return [field for field in fields_of(cls) if version in field.versions]


def _values(field: Field, version: int) -> SearchStrategy[Any]:
    one = _one(field, version)
    values = st.lists(one, max_size=3) if field.is_array else one
    return st.none() | values if field.is_nullable_in(version) else values


def _one(field: Field, version: int) -> SearchStrategy[Any]:
    if field.name.endswith("error_code"):
        return _ERROR_CODES
    if field.name in _TIMES:
        return _TIMES[field.name]
    if not isinstance(field.type, Kind):
        return messages(field.type, version)
    if field.type in _BITS:
        half = 1 << _BITS[field.type] - 1
        return st.integers(-half, half - 1)
    return _OTHERS[field.type]


def sample(cls: type[Any], version: int) -> Any:
    """One object with something in every field of the version: no null, no empty array, no default in a tag."""
    return cls(**{field.name: _sample(field, version) for field in _fields(cls, version)})


def _sample(field: Field, version: int) -> Any:
    if not isinstance(field.type, Kind):
        value = sample(field.type, version)
    else:
        texts: dict[Kind, Any] = {Kind.STRING: "Vltava ž", Kind.UUID: b"0123456789abcdef", Kind.FLOAT64: 0.5}
        value = texts.get(field.type, b"records" if field.type in (Kind.BYTES, Kind.RECORDS) else 1)
    return [value, value] if field.is_array else value


def plain(value: Any) -> Any:
    """A message as dictionaries and lists, with views as bytes, to compare or print."""
    if isinstance(value, Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list):
        return [plain(element) for element in value]
    return bytes(value) if isinstance(value, memoryview) else value

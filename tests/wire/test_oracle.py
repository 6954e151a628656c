"""Bytes in both directions against another implementation, kio, at every version."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import io
import uuid
from collections.abc import Callable
from typing import Any

import kio.index
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from moldau.core.ids import ZERO_UUID
from moldau.wire.codec import decode, encode
from moldau.wire.messages.registry import REQUESTS
from moldau.wire.schema import Message
from tests.wire.message_values import CASE_IDS, CASES, messages, plain

pytestmark = pytest.mark.xdist_group("oracle")  # one process starts what they share, not three

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@functools.cache
def kio_codec(cls: type[Message], version: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    load = kio.index.load_request_schema if cls in REQUESTS else kio.index.load_response_schema
    entity = load(cls.API_KEY, version)
    assert entity.__type__ in (EntityType.request, EntityType.response)
    return entity_reader(entity), entity_writer(entity)


def as_ours(value: Any, name: str = "") -> Any:
    """kio's objects as the dictionaries that our messages give."""
    if dataclasses.is_dataclass(value):
        pairs = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
        return dict(named(name, each) for name, each in pairs)
    if isinstance(value, tuple):
        return [as_ours(element) for element in value]
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value


def named(name: str, value: Any) -> tuple[str, Any]:
    """kio turns durations and times into objects and takes the unit off their names."""
    if isinstance(value, datetime.timedelta):
        return f"{name}_ms", value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return f"{name}_ms", (value - EPOCH) // datetime.timedelta(milliseconds=1)
    if name == "log_append_time":
        return "log_append_time_ms", -1
    if name == "id_":  # `id` is a builtin function
        name = "id"
    if (name == "id" or name.endswith(("topic_id", "directory_id", "client_instance_id"))) and value is None:
        return name, ZERO_UUID
    return name, as_ours(value)


def only_what_is_there(ours: Any, theirs: Any) -> Any:
    """Our object without the fields that the version lacks: kio has a class per version."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {name: only_what_is_there(ours[name], theirs[name]) for name in theirs}
    if isinstance(ours, list) and isinstance(theirs, list):
        return [only_what_is_there(one, other) for one, other in zip(ours, theirs, strict=True)]
    return ours


@pytest.mark.parametrize(("cls", "version"), CASES, ids=CASE_IDS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_another_implementation_reads_what_we_write(cls: type[Message], version: int, data: st.DataObject) -> None:
    message = data.draw(messages(cls, version))
    raw = encode(message, version)
    read, write = kio_codec(cls, version)

    theirs, size = read(raw, 0)
    assert size == len(raw)
    values = as_ours(theirs)
    assert only_what_is_there(plain(message), values) == values

    written = io.BytesIO()
    write(written, theirs)
    assert written.getvalue() == raw

    ours, end = decode(cls, version, raw)
    assert end == len(raw)
    assert plain(ours) == plain(message)

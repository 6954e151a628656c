"""Consumer instances: made, subscribed, read from, committed, deleted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from starlette.responses import Response

from moldau.rest.calls import INT32_MAX, Call, Json, answer, no_content, parsed
from moldau.rest.consuming.instances import RESETS, Format, Instance, InstanceConfig
from moldau.rest.consuming.reading import read
from moldau.rest.consuming.rendering import encoded_records, v2_renderer
from moldau.rest.problems import no_partition, unprocessable
from moldau.rest.times import at_ms
from moldau.rest.v2.media_types import check_plain_body, records_type, v2_type
from moldau.web.errors import ApiError
from moldau.web.logins import Action
from moldau.web.requests import body_bytes, number

T = TypeVar("T")

INT64_MAX = (1 << 63) - 1
METADATA_CHARS_MAX = 4_096
EVERY = ""  # topics that a pattern may find


class NewInstance(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    format: str | None = None
    auto_offset_reset: str | None = msgspec.field(default=None, name="auto.offset.reset")
    auto_commit_enable: str | bool | None = msgspec.field(default=None, name="auto.commit.enable")
    fetch_min_bytes: int | str | None = msgspec.field(default=None, name="fetch.min.bytes")
    request_timeout_ms: int | str | None = msgspec.field(default=None, name="consumer.request.timeout.ms")


class Subscription(msgspec.Struct):
    topics: list[str] | None = None
    topic_pattern: str | None = None


class Place(msgspec.Struct):
    topic: str
    partition: int


class Places(msgspec.Struct):
    partitions: list[Place]


class Offset(msgspec.Struct):
    topic: str
    partition: int
    offset: int
    metadata: str | None = None


class Time(msgspec.Struct):
    topic: str
    partition: int
    timestamp: str
    metadata: str | None = None


class Positions(msgspec.Struct):
    offsets: list[Offset] = []
    timestamps: list[Time] = []


class Offsets(msgspec.Struct):
    offsets: list[Offset]


async def create_instance(call: Call) -> Response:
    kind = _checked(call)
    content = await body_bytes(call.request)
    wanted = parsed(content, NewInstance, wrong=422) if content.strip() else NewInstance()
    group = call.name("group")
    made = await call.proxy.instances.create(call.session, group, _config(wanted))
    base_uri = call.url("consumers", group, "instances", made.name)
    return answer({"instance_id": made.name, "base_uri": base_uri}, media_type=kind)


def _config(wanted: NewInstance) -> InstanceConfig:
    try:
        kind = Format((wanted.format or "binary").lower())
    except ValueError:
        raise _invalid(f"format: expected one of {', '.join(Format)}") from None
    reset = wanted.auto_offset_reset
    if reset is not None and reset.lower() not in RESETS:
        raise _invalid(f"auto.offset.reset: expected one of {', '.join(RESETS)}")
    least = _whole(wanted.fetch_min_bytes, "fetch.min.bytes", -1, 10_000_000)
    return InstanceConfig(
        name=wanted.id or wanted.name,
        format=kind,
        auto_offset_reset=None if reset is None else reset.lower(),
        auto_commit=_truth(wanted.auto_commit_enable),
        fetch_min_bytes=least,
        request_timeout_ms=_whole(wanted.request_timeout_ms, "consumer.request.timeout.ms", 1, 3_600_000),
    )


def _truth(value: str | bool | None) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if value.lower() not in ("true", "false"):
        raise _invalid("auto.commit.enable: expected true or false")
    return value.lower() == "true"


def _whole(value: int | str | None, name: str, least: int, most: int) -> int | None:
    if value is None:
        return None
    try:
        found = int(value)
    except ValueError:
        found = most + 1
    if not least <= found <= most:
        told = f"Invalid consumer configuration. It does not abide by the constraints: {name}: expected {least}..{most}"
        raise ApiError(40001, told)
    return found


def _invalid(message: str) -> ApiError:
    return ApiError(42204, f"Invalid consumer configuration: {message}")


async def delete_instance(call: Call) -> Response:
    await call.proxy.instances.delete(call.session, call.name("group"), call.name("instance"))
    return no_content()


def _instance(call: Call) -> Instance:
    return call.proxy.instances.get(call.session, call.name("group"), call.name("instance"))


async def _do(call: Call, instance: Instance, do: Callable[[], T]) -> T:
    return await instance.do(call.proxy.threads, do)


def _checked(call: Call) -> str:
    check_plain_body(call.request)
    return v2_type(call.request)


async def subscribe(call: Call) -> Response:
    _checked(call)
    wanted = await call.body(Subscription, wrong=422)
    instance = _instance(call)
    topics, pattern = wanted.topics, wanted.topic_pattern
    if topics is not None:
        if not all(map(_is_name, topics)):
            raise unprocessable("topics: a name has 1 to 249 characters")
        call.require(Action.READ, *topics)
        await _do(call, instance, lambda: instance.consumer.subscribe(topics))
    elif pattern is not None:
        call.require(Action.READ, EVERY)
        await _do(call, instance, lambda: instance.consumer.subscribe_pattern(pattern))
    return no_content()


async def get_subscription(call: Call) -> Response:
    kind, instance = v2_type(call.request), _instance(call)
    return answer({"topics": await _do(call, instance, instance.consumer.subscription)}, media_type=kind)


async def unsubscribe(call: Call) -> Response:
    instance = _instance(call)
    await _do(call, instance, instance.consumer.unsubscribe)
    return no_content()


async def assign(call: Call) -> Response:
    _checked(call)
    wanted = await call.body(Places, wrong=422)
    instance = _instance(call)
    places = _pairs(wanted.partitions)
    call.require(Action.READ, *(topic for topic, _ in places))
    await _do(call, instance, lambda: instance.consumer.assign(places))
    return no_content()


async def get_assignment(call: Call) -> Response:
    kind, instance = v2_type(call.request), _instance(call)
    found = await _do(call, instance, instance.consumer.assignment)
    return answer({"partitions": [_place(*each) for each in found]}, media_type=kind)


def _place(topic: str, partition: int) -> Json:
    return {"topic": topic, "partition": partition}


def _is_name(topic: str) -> bool:
    return 0 < len(topic) <= 249 and "\0" not in topic


def _pairs(places: Sequence[Place | Offset | Time]) -> list[tuple[str, int]]:
    if not all(0 <= each.partition <= INT32_MAX and _is_name(each.topic) for each in places):
        raise unprocessable("partitions: expected names of topics, and numbers from 0 on")
    return [*dict.fromkeys((each.topic, each.partition) for each in places)]


async def seek(call: Call) -> Response:
    _checked(call)
    wanted = await call.body(Positions, wrong=422)
    instance = _instance(call)
    _pairs([*wanted.offsets, *wanted.timestamps])
    offsets = {(each.topic, each.partition): _offset(each) for each in wanted.offsets}
    times = {(each.topic, each.partition): _time(each) for each in wanted.timestamps}

    def do() -> None:
        instance.consumer.seek(offsets)
        if times:
            instance.consumer.seek_to_times(times)

    await _do(call, instance, do)
    return no_content()


def _offset(wanted: Offset) -> int:
    if not 0 <= wanted.offset < INT64_MAX:
        raise unprocessable("offset: expected a number from 0 on")
    return wanted.offset


def _time(wanted: Time) -> int:
    found = at_ms(wanted.timestamp)
    if found is None or found < 0:
        raise unprocessable("timestamp: expected a time such as 2026-02-05T19:14:42Z")
    return found


async def seek_to_beginning(call: Call) -> Response:
    return await _seek_all(call, lambda instance: instance.consumer.seek_to_beginning)


async def seek_to_end(call: Call) -> Response:
    return await _seek_all(call, lambda instance: instance.consumer.seek_to_end)


async def _seek_all(call: Call, how: Callable[[Instance], Callable[[Sequence[tuple[str, int]]], None]]) -> Response:
    _checked(call)
    wanted = await call.body(Places, wrong=422)
    instance = _instance(call)
    places = _pairs(wanted.partitions)
    await _do(call, instance, lambda: how(instance)(places))
    return no_content()


async def commit_offsets(call: Call) -> Response:
    """A body names the last records that were read, so that the next ones are what is committed, as at Confluent's."""
    kind = _checked(call)
    instance = _instance(call)
    content = await body_bytes(call.request)
    offsets = None
    if content.strip():
        wanted = parsed(content, Offsets, wrong=422).offsets
        _pairs(wanted)
        offsets = {(each.topic, each.partition): (_offset(each) + 1, _metadata(each)) for each in wanted}
    wait = (call.query("async") or "false").lower() != "true"
    await _do(call, instance, lambda: instance.consumer.commit(offsets, wait=wait))
    return answer({"offsets": []}, media_type=kind)


def _metadata(wanted: Offset) -> str:
    found = wanted.metadata or ""
    if len(found) > METADATA_CHARS_MAX or "\0" in found:
        raise unprocessable(f"metadata: expected at most {METADATA_CHARS_MAX} characters")
    return found


async def committed_offsets(call: Call) -> Response:
    """A GET with a body, which names the partitions."""
    kind = _checked(call)
    instance = _instance(call)
    content = await body_bytes(call.request)
    if not content.strip():
        raise no_partition()
    places = _pairs(parsed(content, Places, wrong=422).partitions)
    found = await _do(call, instance, lambda: instance.consumer.committed(places))
    listed = [{**_place(*place), "offset": offset, "metadata": metadata} for place, offset, metadata in found]
    return answer({"offsets": listed}, media_type=kind)


async def read_records(call: Call) -> Response:
    instance = _instance(call)
    kind = records_type(call.request, instance.config.format)
    timeout_ms, bytes_max = number(call.request, "timeout", default=-1), number(call.request, "max_bytes", default=-1)
    render = v2_renderer(instance.config.format, call.proxy.schema_reader)
    found = await read(
        instance, render, call.proxy.settings, call.proxy.threads, timeout_ms=timeout_ms, bytes_max=bytes_max
    )
    return Response(encoded_records(found), media_type=kind)

"""Reading a topic over HTTP, which Confluent's v3 lacks: server-sent events, or JSON lines.

GET /v3/clusters/{cluster_id}/topics/{topic_name}/records?from=beginning
Accept: text/event-stream                                  events, each with an id to go on from
Accept: application/x-ndjson                               one record a line
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import aclosing
from enum import StrEnum
from typing import TypeVar, cast

from starlette.responses import Response

from moldau.client.cluster import Cluster
from moldau.client.listing import EARLIEST, LATEST, list_offsets
from moldau.core.ids import TopicPartition
from moldau.rest.calls import Call, Chunks, Json
from moldau.rest.consuming.rendering import StreamFormat, encoded_records, stream_renderer
from moldau.rest.consuming.stream import RecordStream, Some, Wish, read_event_id
from moldau.rest.problems import bad_request, no_partition
from moldau.rest.streamed import Streamed
from moldau.rest.times import at_ms
from moldau.rest.v3.topics import described
from moldau.web.errors import ApiError
from moldau.web.kafka_errors import too_many
from moldau.web.logins import Action
from moldau.web.negotiation import answer_type

EVENTS, LINES = "text/event-stream", "application/x-ndjson"
LINE_TYPES = (LINES, "application/jsonl", "application/json-seq", "application/json")
RETRY_MS = 2_000
LIMIT_MAX = 1_000_000_000
W = TypeVar("W", bound=StrEnum)


class Isolation(StrEnum):
    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


async def read_records(call: Call) -> Response:
    kind = answer_type(call.request, (LINES, EVENTS, *LINE_TYPES[1:]))
    await call.check_cluster()
    wish = await _wish(call)
    formats = [_word(call, name, StreamFormat, StreamFormat.AUTO) for name in ("key_format", "value_format")]
    render = stream_renderer(formats[0], formats[1], call.proxy.schema_reader)
    stream = RecordStream(call.session, wish, render, call.proxy.settings)
    chunks = _chunks(call, stream, is_events=kind == EVENTS)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return cast(Response, Streamed(chunks, kind, ending=call.proxy.ending, watches=True, headers=headers))


async def _chunks(call: Call, stream: RecordStream, *, is_events: bool) -> Chunks:
    begun = False
    try:
        call.proxy.streams.begin(call.session.principal)
        begun = True
        if is_events:
            yield f"retry: {RETRY_MS}\n\n".encode()
        async with aclosing(_shown(call, stream, is_events=is_events)) as chunks:
            async for chunk in chunks:
                yield chunk
        if is_events:
            yield b"event: end\ndata: {}\n\n"
    except ApiError as wrong:
        told: Json = {"error_code": wrong.code, "message": wrong.message}
        shown = encoded_records(told)
        yield b"event: error\ndata: " + shown + b"\n\n" if is_events else shown + b"\n"
    finally:
        if begun:
            call.proxy.streams.end(call.session.principal)


async def _shown(call: Call, stream: RecordStream, *, is_events: bool) -> Chunks:
    show = _events if is_events else _lines
    quiet_since_s = time.monotonic()
    heartbeat_s = call.proxy.settings.heartbeat_ms / 1_000
    async with aclosing(stream.run()) as coming:
        async for some in coming:
            if some.records:
                shown = show(some)
                some.records.clear()  # the client may take its time
                yield shown
                quiet_since_s = time.monotonic()
            elif time.monotonic() - quiet_since_s >= heartbeat_s:
                await _check_topic(call)
                if is_events:
                    yield b": heartbeat\n\n"
                quiet_since_s = time.monotonic()


async def _check_topic(call: Call) -> None:
    """librdkafka waits for a topic that was deleted, in silence. Raises ApiError."""
    topic = call.name("topic_name")
    try:
        await call.session.ask(lambda cluster: described(cluster, topic))
    except ApiError as wrong:
        if wrong.status < 500:  # a cluster that does not answer now is waited for
            raise


def _events(some: Some) -> bytes:
    pairs = zip(some.ids, some.records, strict=True)
    return b"".join(b"id: %b\ndata: %b\n\n" % (at.encode(), encoded_records(each)) for at, each in pairs)


def _lines(some: Some) -> bytes:
    return b"".join(encoded_records(each) + b"\n" for each in some.records)


async def _wish(call: Call) -> Wish:
    topic, group, start = call.name("topic_name"), call.query("group"), call.query("from")
    partitions = await _partitions(call, topic)
    resumed = call.request.headers.get("last-event-id") or call.query("last_event_id")
    if group is not None and (not group or "\0" in group):
        raise bad_request("group: expected a name")
    if group is not None:
        call.require(Action.READ, group)
    call.proxy.streams.check_room(call.session.principal)
    starts: dict[int, int] = {}
    if group is None:
        starts = await _starts(call, topic, partitions, start or "end", resumed)
    elif call.query("partitions") is not None:
        raise bad_request("partitions: in a group they are given out to its members")
    elif start not in (None, "beginning", "end"):
        raise bad_request("from: a group reads on where it was; beginning or end say where a new one begins")
    return Wish(
        topic=topic,
        starts=starts,
        group=group,
        is_from_beginning=start == "beginning",
        limit=_number(call, "limit", least=1),
        idle_ms=_number(call, "timeout", least=0),
        ends_at_end=_until(call),
        isolation=_word(call, "isolation", Isolation, Isolation.COMMITTED),
    )


def _until(call: Call) -> bool:
    until = call.query("until")
    if until not in (None, "end"):
        raise bad_request(f"until={until[:40]}: expected end")
    if until and call.query("group") is not None:
        raise bad_request("until: a member of a group does not know its end; limit and timeout end it")
    return until == "end"


async def _partitions(call: Call, topic: str) -> list[int]:
    there = await call.session.ask(lambda cluster: described(cluster, topic))
    numbers = sorted(each.partition_index for each in there.partitions)
    wanted = call.query("partitions")
    if wanted is None:
        return numbers
    words = wanted.split(",")
    if not all(each.isdecimal() and each.isascii() and len(each) < 10 for each in words):
        raise bad_request("partitions: expected numbers, such as 0,2")
    if not set(map(int, words)) <= set(numbers):
        raise no_partition()
    return sorted(set(map(int, words)))


async def _starts(call: Call, topic: str, partitions: Sequence[int], start: str, resumed: str | None) -> dict[int, int]:
    """Partitions that are new since the client went are read from their beginning."""
    known = read_event_id(resumed) if resumed else {}
    left = [each for each in partitions if each not in known]
    found = {each: known[each] for each in partitions if each in known}
    if known:
        start = "beginning"
    if start.isdecimal() and start.isascii() and len(start) < 19:
        return {**found, **dict.fromkeys(left, int(start))}
    timestamp = {"beginning": EARLIEST, "end": LATEST}.get(start)
    if timestamp is None:
        timestamp = int(start[1:]) if start[1:].isdecimal() and start[0] == "@" and len(start) < 16 else at_ms(start)
    if timestamp is None or timestamp < EARLIEST:
        raise bad_request("from: expected beginning, end, an offset, a time in ISO 8601, or @ and milliseconds")
    asked = {TopicPartition(topic, each): timestamp for each in left}
    return {**found, **await call.session.ask(lambda cluster: _offsets(cluster, asked))}


def _offsets(cluster: Cluster, asked: dict[TopicPartition, int]) -> dict[int, int]:
    """The end, where nothing is that late."""
    found = list_offsets(cluster, asked) if asked else {}
    late = [place for place, offset in found.items() if offset < 0]
    ends = list_offsets(cluster, dict.fromkeys(late, LATEST)) if late else {}
    return {place.partition: ends.get(place, offset) for place, offset in found.items()}


def _number(call: Call, name: str, *, least: int) -> int | None:
    text = call.query(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 20 or not least <= int(text) <= LIMIT_MAX:
        raise bad_request(f"{name}: expected a number from {least} to {LIMIT_MAX}")
    return int(text)


def _word(call: Call, name: str, words: type[W], usual: W) -> W:
    text = call.query(name)
    if text is None:
        return usual
    try:
        return words(text.lower())
    except ValueError:
        raise bad_request(f"{name}: expected one of {', '.join(words)}") from None


class Streams:
    """How many there are, of whom."""

    def __init__(self, streams_max: int, per_user_max: int) -> None:
        self.streams_max = streams_max
        self.per_user_max = per_user_max
        self.open: dict[str, int] = {}

    def __len__(self) -> int:
        return sum(self.open.values())

    def check_room(self, principal: str) -> None:
        if len(self) >= self.streams_max or self.open.get(principal, 0) >= self.per_user_max:
            raise too_many("There are as many streams as there may be; try again later")

    def begin(self, principal: str) -> None:
        self.check_room(principal)
        self.open[principal] = self.open.get(principal, 0) + 1

    def end(self, principal: str) -> None:
        left = self.open.get(principal, 0) - 1
        if left > 0:
            self.open[principal] = left
        else:
            self.open.pop(principal, None)

"""Records: streamed in and answered as each is delivered, or some at once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from moldau.core.clock import SystemClock
from moldau.rest.calls import Call, Chunks, Json, answer, parsed
from moldau.rest.problems import bad_request, no_partition, unprocessable
from moldau.rest.producing.json_values import JsonValues, NotJson
from moldau.rest.producing.producers import Delivered, Delivery, Headers, Record
from moldau.rest.producing.values import Data, Written, encoded, from_base64, written
from moldau.rest.streamed import Streamed
from moldau.rest.times import at_ms, iso
from moldau.web.errors import ApiError
from moldau.web.logins import Action
from moldau.web.negotiation import JSON, body_type
from moldau.web.requests import encoded as json_encoded

SEPARATOR = b"\r\n"
BATCH_CODE = 42208
ENTRY_ID = re.compile(r"[0-9a-zA-Z_-]{1,80}")
CLOCK = SystemClock()


class Header(msgspec.Struct):
    name: str
    value: str | None = None


class ProduceRecord(msgspec.Struct):
    partition_id: int | None = None
    headers: list[Header] | None = None
    key: Data | None = None
    value: Data | None = None
    timestamp: str | None = None


class Entry(msgspec.Struct):
    id: Any
    partition_id: int | None = None
    headers: list[Header] | None = None
    key: Data | None = None
    value: Data | None = None
    timestamp: str | None = None


class Batch(msgspec.Struct):
    entries: list[Entry]


async def produce_records(call: Call) -> Response:
    """The answer goes out with the first delivery, whether or not the request has ended."""
    body_type(call.request, (JSON,), JSON)
    await call.check_cluster()
    return cast(
        Response, Streamed(_lines(call, call.name("topic_name")), JSON, ending=call.proxy.ending, watches=False)
    )


async def _lines(call: Call, topic: str) -> Chunks:
    settings = call.proxy.settings
    window: asyncio.Queue[asyncio.Task[Json] | None] = asyncio.Queue(settings.in_flight_records_max)
    room = _Room(settings.in_flight_bytes_max)
    reader = asyncio.create_task(_read(call, topic, window, room))
    try:
        while (task := await window.get()) is not None:
            yield json_encoded(await task) + SEPARATOR
        await reader
    except ClientDisconnect:
        return
    finally:
        reader.cancel()
        while not window.empty():
            left = window.get_nowait()
            if left is not None:
                left.cancel()


class _Room:
    """Bytes of records that the cluster has not answered yet, all in all no more than there may be."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._taken = 0
        self._freed = asyncio.Event()

    async def take(self, size: int) -> None:
        while self._taken and self._taken + size > self._bytes_max:
            self._freed.clear()
            await self._freed.wait()
        self._taken += size

    def free(self, size: int) -> None:
        self._taken -= size
        self._freed.set()


async def _read(call: Call, topic: str, window: asyncio.Queue[asyncio.Task[Json] | None], room: _Room) -> None:
    """In order: a record is with the producer before the next one is looked at."""
    values = JsonValues(call.proxy.settings.value_bytes_max)
    deadline_ms = CLOCK.elapsed_ms() + call.proxy.settings.stream_ms_max
    try:
        async for chunk in call.request.stream():
            for value in values.feed(chunk):
                await window.put(await _begun(call, topic, value, room))
            if CLOCK.elapsed_ms() > deadline_ms:
                raise ApiError(408, "Streaming connection open for longer than allowed: Connection will be closed.")
        last = values.end()
        if last is not None:
            await window.put(await _begun(call, topic, last, room))
    except NotJson as wrong:
        await window.put(_told(ApiError(400, f"Bad Request: Error processing message: {wrong}")))
    except ApiError as wrong:
        await window.put(_told(wrong))
    finally:
        await window.put(None)


async def _begun(call: Call, topic: str, value: bytes, room: _Room) -> asyncio.Task[Json]:
    await room.take(len(value))
    try:
        record = parsed(value, ProduceRecord)
        sent, delivery = await _send(call, topic, record)
    except ApiError as wrong:
        room.free(len(value))
        return _told(wrong)
    task = asyncio.create_task(_outcome(call, topic, sent, delivery))
    task.add_done_callback(lambda _: room.free(len(value)))
    return task


def _told(wrong: ApiError) -> asyncio.Task[Json]:
    async def told() -> Json:
        return {"error_code": wrong.code, "message": wrong.message}

    return asyncio.create_task(told())


async def _outcome(call: Call, topic: str, sent: Sequence[Written | None], delivery: Delivery) -> Json:
    try:
        return {"error_code": 200, **await _delivered(call, topic, sent, delivery)}
    except ApiError as wrong:
        return {"error_code": wrong.code, "message": wrong.message}


async def _send(
    call: Call, topic: str, record: ProduceRecord | Entry
) -> tuple[tuple[Written | None, Written | None], Delivery]:
    if record.partition_id is not None and record.partition_id < 0:
        raise no_partition()
    may = partial(call.may, Action.WRITE)
    key = await written(record.key, topic, call.proxy.schemas, is_key=True, may=may)
    value = await written(record.value, topic, call.proxy.schemas, is_key=False, may=may)
    made = Record(
        topic,
        key.payload if key else None,
        value.payload if value else None,
        record.partition_id,
        _timestamp_ms(record.timestamp),
        _headers(record.headers or ()),
    )
    return (key, value), await call.session.producers.send(made)


async def _delivered(call: Call, topic: str, sent: Sequence[Written | None], delivery: Delivery) -> Json:
    done: Delivered = await delivery
    key, value = sent
    return {
        "cluster_id": call.name("cluster_id"),
        "topic_name": topic,
        "partition_id": done.partition,
        "offset": done.offset,
        **({} if done.timestamp_ms is None else {"timestamp": iso(done.timestamp_ms)}),
        **({} if key is None else {"key": key.json()}),
        **({} if value is None else {"value": value.json()}),
    }


def _headers(headers: Sequence[Header]) -> Headers:
    for each in headers:
        encoded(each.name)
    return [(each.name, None if each.value is None else from_base64(each.value)) for each in headers]


def _timestamp_ms(text: str | None) -> int:
    if text is None:
        return CLOCK.now_ms()
    found = at_ms(text)
    if found is None or found < 0:
        raise bad_request(f"timestamp {text[:60]!r}: expected a time such as 2026-02-05T19:14:42Z")
    return found


async def produce_batch(call: Call) -> Response:
    body_type(call.request, (JSON,), JSON)
    await call.check_cluster()
    batch = await call.body(Batch)
    _check_batch(batch, call.proxy.settings.batch_entries_max)
    topic = call.name("topic_name")
    begun = [await _entry_begun(call, topic, each) for each in batch.entries]
    outcomes = [await each for each in begun]
    return answer(
        {
            "successes": [each for each in outcomes if "error_code" not in each],
            "failures": [each for each in outcomes if "error_code" in each],
        },
        207,
    )


def _check_batch(batch: Batch, entries_max: int) -> None:
    ids = [each.id for each in batch.entries]
    if any(not isinstance(each, str) or not ENTRY_ID.fullmatch(each) for each in ids):
        raise unprocessable("Batch entry identifier is not a valid string.", BATCH_CODE)
    if len(set(ids)) < len(ids):
        raise unprocessable("Batch entry IDs are not distinct.", BATCH_CODE)
    if not ids:
        raise unprocessable("Empty batch.", BATCH_CODE)
    if len(ids) > entries_max:
        raise unprocessable("Too many entries in batch.", BATCH_CODE)


async def _entry_begun(call: Call, topic: str, entry: Entry) -> asyncio.Task[Json]:
    try:
        sent, delivery = await _send(call, topic, entry)
    except ApiError as wrong:
        problem = wrong

        async def told() -> Json:
            return {"id": entry.id, "error_code": problem.code, "message": problem.message}

        return asyncio.create_task(told())

    async def done() -> Json:
        try:
            return {"id": entry.id, **await _delivered(call, topic, sent, delivery)}
        except ApiError as wrong:
            return {"id": entry.id, "error_code": wrong.code, "message": wrong.message}

    return asyncio.create_task(done())

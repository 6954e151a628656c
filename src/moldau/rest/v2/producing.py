"""Records in one request, answered with the offset of each, or why it has none."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.responses import Response

from moldau.core.clock import SystemClock
from moldau.rest.calls import Call, Json, answer
from moldau.rest.consuming.instances import Format
from moldau.rest.problems import unprocessable
from moldau.rest.producing.producers import Delivery, Record
from moldau.rest.producing.values import NULL, Data, is_null, plain
from moldau.rest.v2.media_types import produced_format, v2_type
from moldau.web.errors import ApiError
from moldau.web.kafka_errors import AUTHENTICATION, AUTHORIZATION

KEY_SCHEMA_MISSING, VALUE_SCHEMA_MISSING = 42201, 42202
CLOCK = SystemClock()


class ProducedRecord(msgspec.Struct):
    key: msgspec.Raw = NULL
    value: msgspec.Raw = NULL
    partition: int | None = None


class Produced(msgspec.Struct):
    records: list[ProducedRecord]
    key_schema: str | None = None
    key_schema_id: int | None = None
    value_schema: str | None = None
    value_schema_id: int | None = None


async def produce(call: Call) -> Response:
    return await _produce(call, None)


async def produce_to_partition(call: Call) -> Response:
    return await _produce(call, call.number("partition_id"))


async def _produce(call: Call, partition: int | None) -> Response:
    kind, shown = produced_format(call.request), v2_type(call.request)
    wanted = await call.body(Produced, wrong=422)
    if not wanted.records:
        raise unprocessable("records must not be empty")
    topic = call.name("topic_name")
    made, key_id, value_id = await _records(call, topic, partition, kind, wanted)
    sent = [await _sent(call, each) for each in made]
    offsets = [await _offset(each) for each in sent]
    codes = {each["error_code"] for each in offsets}
    content = {"offsets": offsets, "key_schema_id": key_id, "value_schema_id": value_id}
    status = 401 if AUTHENTICATION in codes else 403 if AUTHORIZATION in codes else 200
    return answer(content, status, media_type=shown)


async def _records(
    call: Call, topic: str, partition: int | None, kind: Format, wanted: Produced
) -> tuple[list[Record], int | None, int | None]:
    """All are written before the first is sent: a request that does not fit has no part in the topic."""
    keys, key_id = await _written(call, topic, kind, [each.key for each in wanted.records], wanted, is_key=True)
    values, value_id = await _written(call, topic, kind, [each.value for each in wanted.records], wanted, is_key=False)
    now_ms = CLOCK.now_ms()
    made = [
        Record(topic, key, value, each.partition if partition is None else partition, now_ms)
        for each, key, value in zip(wanted.records, keys, values, strict=True)
    ]
    return made, key_id, value_id


async def _written(
    call: Call, topic: str, kind: Format, parts: Sequence[msgspec.Raw], wanted: Produced, *, is_key: bool
) -> tuple[list[bytes | None], int | None]:
    if not kind.has_schema:
        return [plain(kind.value.upper(), each) for each in parts], None
    schema, schema_id = (
        (wanted.key_schema, wanted.key_schema_id) if is_key else (wanted.value_schema, wanted.value_schema_id)
    )
    if schema is None and schema_id is None:
        if any(not is_null(each) for each in parts):
            raise _schema_missing(is_key=is_key)
        return [None] * len(parts), None
    if schema_id is not None:
        named = [Data(schema_id=schema_id, data=each) for each in parts]
    else:
        named = [Data(type=kind.value.upper(), schema=schema, data=each) for each in parts]
    found = await call.proxy.schemas.write_all(named, topic, is_key=is_key)
    return [each.payload for each in found], found[0].schema_id


def _schema_missing(*, is_key: bool) -> ApiError:
    part = "key" if is_key else "value"
    told = f"Request includes {part}s but does not include {part} schema"
    return ApiError(KEY_SCHEMA_MISSING if is_key else VALUE_SCHEMA_MISSING, told)


async def _sent(call: Call, record: Record) -> Delivery | ApiError:
    try:
        return await call.session.producers.send(record)
    except ApiError as wrong:
        if wrong.code == 40401 or (wrong.code == 40402 and call.request.path_params.get("partition_id")):
            raise  # then it is so for all of them
        return wrong


async def _offset(sent: Delivery | ApiError) -> Json:
    try:
        if isinstance(sent, ApiError):
            raise sent
        done = await sent
    except ApiError as wrong:
        return {"partition": None, "offset": None, "error_code": wrong.code, "error": wrong.message}
    return {"partition": done.partition, "offset": done.offset, "error_code": None, "error": None}

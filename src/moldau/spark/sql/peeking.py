"""What a topic's values look like, by a look at a few of its newest: JSON objects, text, or bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

LOOKED_AT = 1_000  # of all partitions together
WAIT_S = 5.0


def value_format(values: Iterable[bytes | None]) -> str:
    """The most specific format that fits every value; a topic without values is text."""
    found = [value for value in values if value is not None]
    if found and all(map(_is_object, found)):
        return "json"
    return "string" if all(map(_is_text, found)) else "binary"


def options_of(values: list[bytes | None]) -> dict[str, str]:
    """How to read such values; the schema of objects is written down, so that every look sees the same columns."""
    found = value_format(values)
    if found != "json":
        return {"valueFormat": found}
    from pyspark.sql.pandas.types import from_arrow_schema

    from moldau.spark.formats import infer_json

    schema = from_arrow_schema(infer_json(values).schema)
    return {"valueFormat": "json", "valueSchema": schema.json()} if schema.fields else {"valueFormat": "string"}


def newest_values(client: Mapping[str, Any], topic: str) -> list[bytes | None]:
    """Up to a few from the end of each partition; raises KafkaException when nobody answers."""
    consumer = Consumer(
        {"group.id": "moldau-sql", **client, "enable.auto.commit": False, "enable.partition.eof": True, "log_level": 0}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=WAIT_S).topics[topic].partitions
        places, share = [], max(1, LOOKED_AT // max(1, len(partitions)))
        for number in partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=WAIT_S)
            if high > low:
                places.append(TopicPartition(topic, number, max(low, high - share)))
        return _read(consumer, places)
    finally:
        consumer.close()


def _read(consumer: Any, places: list[Any]) -> list[bytes | None]:
    values: list[bytes | None] = []
    waiting = {place.partition for place in places}
    consumer.assign(places)
    while waiting:
        message = consumer.poll(WAIT_S)
        if message is None:
            break
        if message.error() is not None:
            if not message.error().code() == message.error()._PARTITION_EOF:
                raise KafkaException(message.error())
            waiting.discard(message.partition())
        else:
            values.append(message.value())
    return values


def _is_object(value: bytes) -> bool:
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:
        return False


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True

"""What a topic's values look like, by a look at a few of its newest: JSON objects, text, or bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from moldau.spark.registry_names import URL, login_of
from moldau.spark.sql.refusals import Refused

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


def registry_options(values: Iterable[bytes | None], settings: Mapping[str, str]) -> dict[str, str]:
    """How to read values by the registry that the session knows; nothing where it knows none, or not their schemas.

    Raises Refused where the registry does not answer: columns must not depend on that.
    """
    if not settings.get(URL):
        return {}
    from moldau.schemas.framing import read_id
    from moldau.schemas.model import InvalidValue
    from moldau.schemas.registry_client import RegistryError, RegistryUnreachable
    from moldau.spark.formats.interface import FormatError
    from moldau.spark.formats.registry.options import client_of

    try:
        client = client_of(login_of(settings))
        ids = {read_id(value)[0] for value in values if value is not None}
        types = {(client.by_id(one) if isinstance(one, int) else client.by_guid(one)).schema.type for one in ids}
    except (RegistryUnreachable, FormatError) as wrong:
        raise Refused(str(wrong)) from None
    except (InvalidValue, RegistryError):
        return {}
    return {"valueFormat": types.pop().lower()} if len(types) == 1 else {}


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

"""Schemas of what is written, registered before the first row: tasks get ids, and no login."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from confluent_kafka import KafkaException
from pyspark.sql.types import StructType

from moldau.spark.clients.librdkafka import NoAnswer, patiently, reason
from moldau.spark.formats import Side
from moldau.spark.formats.interface import FormatError, SideOptions
from moldau.spark.options import EXACTLY_ONCE, SinkOptions
from moldau.spark.record_formats import format_name
from moldau.spark.registry_names import SCHEMA_ID, is_about_registries, uses_registry
from moldau.spark.writing.librdkafka import noted_schemas
from moldau.spark.writing.rows_to_records import written_types
from moldau.spark.writing.task_progress import query_group


def with_registered(schema: StructType, options: SinkOptions) -> SinkOptions:
    """Raises FormatError, in the registry's words where it refuses."""
    from moldau.spark.formats.registry.registering import registered

    formats: Mapping[str, str] = options.formats
    sides = list(_sides(schema, options))
    first = _first_schemas(options) if sides else {}
    for side, name, kind in sides:
        told = _as_first(name, SideOptions(side, formats), kind, first[side]) if side in first else None
        formats = {**formats, **(told or registered(name, SideOptions(side, formats), kind))}
    return replace(options, formats={key: value for key, value in formats.items() if not is_about_registries(key)})


def _first_schemas(options: SinkOptions) -> dict[str, int]:
    """What a batch that runs again was begun with: tasks note it in the transaction of their rows."""
    if options.delivery != EXACTLY_ONCE or options.query_id is None or options.batch is None or options.topic is None:
        return {}
    batch, topic, group = options.batch, options.topic, query_group(options.group_prefix, options.query_id)
    try:
        return patiently(lambda: noted_schemas(options.client, group, batch, topic))
    except KafkaException as wrong:
        raise NoAnswer(
            f"batch {batch} of query {options.query_id}: its notes could not be read: {reason(wrong)}"
        ) from None


def _as_first(name: str, side: SideOptions, kind: pa.DataType, schema_id: int) -> dict[str, str] | None:
    """None for columns that are others by now: tasks that wrote their rows know the batch by the number of them."""
    from moldau.spark.formats.registry.registering import registered

    try:
        return registered(name, SideOptions(side.side, {**side.options, side.name_of(SCHEMA_ID): str(schema_id)}), kind)
    except FormatError:
        return None


def check_schemas(schema: StructType, options: SinkOptions) -> None:
    """Whether they could be registered; nothing is. Raises FormatError."""
    from moldau.spark.formats.registry.registering import check_registrable

    for side, name, kind in _sides(schema, options):
        check_registrable(name, SideOptions(side, options.formats), kind)


def _sides(schema: StructType, options: SinkOptions) -> Iterator[tuple[Side, str, pa.DataType]]:
    for side, kind in written_types(schema, options).items():
        name = format_name(options.formats, side)
        if uses_registry(name, options.formats):
            yield side, name, kind

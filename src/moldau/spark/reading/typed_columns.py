"""The schema of a read: the stock columns, with key and value in the types that their formats give them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.types import StructType

from moldau.spark.columns import spark_schema
from moldau.spark.dead_letters.rejections import rejection_rules
from moldau.spark.formats import Decoder, Side, infer_json
from moldau.spark.formats.interface import FramedDecoder
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.option_values import OptionError
from moldau.spark.options import SourceOptions, source_options
from moldau.spark.record_formats import (
    check_asked,
    pinned,
    record_formats,
    sides_decoders,
    sides_to_infer,
    typed_schema,
)
from moldau.spark.registry_names import SCHEMA_ID

LOGGER = logging.getLogger(__name__)


def schema_of(options: Mapping[str, str]) -> StructType:
    """Spark asks before it says whether it is for a batch or a stream: wrong is what is wrong for both."""
    try:
        parsed = source_options(options, streaming=False)
    except OptionError:
        parsed = source_options(options, streaming=True)
    return full_schema(parsed, {side: _inferred(parsed, side) for side in sides_to_infer(parsed.formats)})


def full_schema(options: SourceOptions, inferred: Mapping[Side, pa.DataType]) -> StructType:
    rejection_rules(options.formats)  # a wrong one is found here, before there is a record that it is needed for
    raw = spark_schema(includes_headers=options.includes_headers)
    decoders = sides_decoders(options.formats, inferred)
    ids = {
        side: decoder.reader_id
        for side, decoder in decoders.items()
        if isinstance(decoder, FramedDecoder) and decoder.reader_id is not None
    }
    return typed_schema(raw, {side: decoder.arrow_type for side, decoder in decoders.items()}, ids)


def check_schema(schema: StructType, options: SourceOptions) -> None:
    """The user may ask for fewer columns than there are; what is inferred is what the schema says."""
    options = replace(options, formats=pinned(schema, options.formats))
    formats = record_formats(schema, options.formats)
    inferred: dict[Side, pa.DataType] = {
        side: formats.decoders[side].arrow_type for side in sides_to_infer(options.formats) if side in formats.decoders
    }
    for side in sides_to_infer(options.formats):
        inferred.setdefault(side, pa.string())
    check_asked(schema, full_schema(options, inferred))


def pinned_options(schema: StructType, options: SourceOptions) -> SourceOptions:
    """With the registry's schemas that all tasks shall read by, of the frame or, in one that the user typed, of now."""
    formats = pinned(schema, options.formats)
    return replace(options, formats={**formats, **_ids(record_formats(schema, formats).decoders)})


def registry_ids(options: SourceOptions) -> dict[str, str]:
    """Options that say which of the registry's schemas the columns are of, whatever is registered from now on."""
    return _ids(sides_decoders(options.formats, {side: pa.string() for side in sides_to_infer(options.formats)}))


def _ids(decoders: Mapping[str, Decoder]) -> dict[str, str]:
    return {
        f"{side}{SCHEMA_ID}": str(decoder.reader_id)
        for side, decoder in decoders.items()
        if isinstance(decoder, FramedDecoder) and decoder.reader_id is not None
    }


def _inferred(options: SourceOptions, side: Side) -> pa.DataType:
    """From the newest records of every partition, whose shape is the likeliest to come."""
    from moldau.spark.clients.cluster import Cluster
    from moldau.spark.reading.range_settings import RangeReading
    from moldau.spark.reading.ranges import read_range

    cluster = Cluster(options.client, options.patience)
    places = cluster.places(options.subscription)
    earliest, latest = cluster.earliest(places), cluster.latest(places)
    share = max(1, options.inference_records // max(1, len(places)))
    reading = RangeReading(
        client=options.client,
        columns=(side,),
        poll_timeout_ms=options.poll_timeout_ms,
        fails_on_data_loss=False,
        group=options.reading_group,
    )
    samples: list[bytes | None] = []
    for place in sorted(places):
        newest = OffsetRange(place, max(earliest[place], latest[place] - share), latest[place])
        for batch in read_range(newest, reading):
            samples += batch.column(0).to_pylist()
    found = infer_json(samples)
    # A warning because those are seen: a schema that was guessed is better written down.
    LOGGER.warning("%sFormat = json: %sSchema %s", side, side, found.sentence())
    return pa.struct(list(found.schema))

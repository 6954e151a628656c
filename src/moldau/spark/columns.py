"""The columns of a record, in Spark's types and in Arrow's: the stock connector's names in its order."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

HEADERS = "headers"
TIMESTAMP = pa.timestamp("us", tz="UTC")
HEADERS_TYPE = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
RAW_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestampType", pa.int32()),
        pa.field(HEADERS, HEADERS_TYPE),
    ]
)


def spark_headers_type() -> ArrayType:
    return ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def spark_schema(*, includes_headers: bool) -> StructType:
    fields = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    return StructType([*fields, StructField(HEADERS, spark_headers_type())] if includes_headers else fields)


def raw_schema_of(names: Iterable[str]) -> pa.Schema:
    """The raw columns of those names, in that order."""
    return pa.schema([RAW_SCHEMA.field(name) for name in names])

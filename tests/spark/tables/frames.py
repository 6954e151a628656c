"""Small frames without a Spark: columns as DDL names them, and rows as Arrow batches."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from moldau.spark.tables.schemas import arrow_schema
from moldau.spark.tables.staging import StagingArea
from moldau.spark.tables.writing import Step, Target

KINDS: dict[str, DataType] = {
    "bigint": LongType(),
    "int": IntegerType(),
    "string": StringType(),
    "double": DoubleType(),
    "float": FloatType(),
    "boolean": BooleanType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
}
DECIMAL = re.compile(r"decimal\((\d+) (\d+)\)")


def frame(ddl: str) -> StructType:
    """As in `id bigint, price decimal(6 2)`."""
    columns = [column.strip().split(" ", 1) for column in ddl.split(",")]
    return StructType([StructField(name, _kind(kind)) for name, kind in columns])


def _kind(name: str) -> DataType:
    decimal = DECIMAL.fullmatch(name)
    return KINDS[name] if decimal is None else DecimalType(int(decimal[1]), int(decimal[2]))


def batch(ddl: str, *rows: tuple[Any, ...]) -> pa.RecordBatch:
    schema = arrow_schema(frame(ddl))
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def write(target: Target, number: int, *batches: pa.RecordBatch, overwrite: bool = False) -> None:
    """A batch of a query, each Arrow batch by a task of its own."""
    area = StagingArea("a query", number)
    target.apply([target.stage([one], area) for one in batches], Step(area, overwrite=overwrite))

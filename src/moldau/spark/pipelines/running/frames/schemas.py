"""Schemas as users write them, read by the parser of the Spark that runs here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.schema_text import is_json
from moldau.spark.pipelines.running.reasons import said_by

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

SCHEMAS = ("keyschema", "valueschema")


def schemas_by_spark(options: Mapping[str, str]) -> dict[str, str]:
    """DDL becomes Spark's JSON of it, which processes without a session read as well. Raises FormatError."""
    return {
        name: _json_of(text, place=f"option {name}") if name.lower() in SCHEMAS else text
        for name, text in options.items()
    }


def type_by_spark(text: str, *, place: str) -> DataType:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import DataType

    try:
        return DataType.fromDDL(text)
    except PySparkException as wrong:
        raise FormatError(f"{place}: {said_by(wrong)}") from None


def _json_of(text: str, *, place: str) -> str:
    stripped = text.strip()
    return text if not stripped or is_json(stripped) else type_by_spark(stripped, place=place).json()

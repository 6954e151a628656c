"""The schema of a read, and raw batches turned into the columns that were asked for."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from moldau.spark.columns import RAW_SCHEMA, spark_schema
from moldau.spark.option_values import OptionError
from moldau.spark.options import SourceOptions, source_options


def schema_of(options: Mapping[str, str]) -> StructType:
    """Spark asks before it says whether it is for a batch or a stream: wrong is what is wrong for both."""
    try:
        parsed = source_options(options, streaming=False)
    except OptionError:
        parsed = source_options(options, streaming=True)
    return spark_schema(includes_headers=parsed.includes_headers)


def raw_columns(schema: StructType, options: SourceOptions) -> tuple[str, ...]:
    """What has to be read for a schema: the user may ask for fewer columns than there are."""
    known = spark_schema(includes_headers=options.includes_headers)
    for field in schema.fields:
        if field.name not in RAW_SCHEMA.names:
            raise OptionError(f"column {field.name!r} is not one of {', '.join(RAW_SCHEMA.names)}")
        if field.name in known.names and known[field.name].dataType != field.dataType:
            raise OptionError(
                f"column {field.name!r} is {known[field.name].dataType.simpleString()}, "
                f"and the schema asks for {field.dataType.simpleString()}"
            )
    return tuple(schema.names)

"""`format("moldau")`: what Spark asks of a data source, batch and streaming."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from moldau.spark.options import source_options

NAME = "moldau"


class MoldauDataSource(DataSource):
    """Topics as frames. What is behind it is imported when it is needed: Spark imports this at every look-up."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        from moldau.spark.reading.typed_columns import schema_of

        # Whether it is for a stream is not known here; the reader looks again.
        return schema_of(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from moldau.spark.reading.batch_reader import MoldauReader

        return MoldauReader(source_options(self.options, streaming=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from moldau.spark.reading.stream_reader import MoldauStreamReader

        return MoldauStreamReader(source_options(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from moldau.spark.writing.sink import batch_writer

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: ARG002
        from moldau.spark.writing.sink import stream_writer

        # Output mode complete writes the whole result after each batch, as the stock connector does.
        return stream_writer(self.options, schema)

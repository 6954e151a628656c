"""A driver of its own whose queries stand still just before, or just after, a commit: there it is killed.

Arguments: a JSON list of queries, each with format, options, input, checkpoint, moment and marker.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

PAUSED_BATCH = 0


class PausedWriter(DataSourceStreamArrowWriter):
    """The real writer, with a stop on the way."""

    def __init__(self, writer: Any, moment: str, marker: str) -> None:
        self.writer, self.moment, self.marker = writer, moment, marker

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        message: WriterCommitMessage = self.writer.write(iterator)
        return message

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        if batchId == PAUSED_BATCH and self.moment == "before":
            self.stand_still()
        self.writer.commit(messages, batchId)
        if batchId == PAUSED_BATCH:
            self.stand_still()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.writer.abort(messages, batchId)

    def stand_still(self) -> None:
        Path(self.marker).touch()
        threading.Event().wait()


def paused(real: type[DataSource]) -> type[DataSource]:
    class Paused(DataSource):
        @classmethod
        def name(cls) -> str:
            return f"paused_{real.name()}"

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
            own = ("moment", "marker")
            source = real({name: value for name, value in self.options.items() if name not in own})
            writer = source.streamWriter(schema, overwrite)
            return PausedWriter(writer, self.options["moment"], self.options["marker"])

    return Paused


def main(queries: list[dict[str, Any]]) -> None:
    from moldau.spark.tables.databases.target import SqlSource
    from moldau.spark.tables.delta.target import DeltaSource
    from moldau.spark.tables.iceberg.target import IcebergSource
    from tests.spark.tables.streams import read_batches, start

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    for real in (DeltaSource, IcebergSource, SqlSource):
        session.dataSource.register(paused(real))
    for query in queries:
        options = {**query["options"], "moment": query["moment"], "marker": query["marker"]}
        frame = read_batches(session, Path(query["input"]), tasks=1)
        start(frame, f"paused_{query['format']}", options, Path(query["checkpoint"]))
    # None of them comes to an end, unless it fails.
    session.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

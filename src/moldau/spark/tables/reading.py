"""Reading the tables that the sinks write: a batch sees one state of a table, in as many tasks as it has files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from moldau.spark.tables.schemas import arrow_schema, conform

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TASKS_MAX = 32  # files are shared among tasks: thousands of small ones don't make thousands of tasks


@dataclass(frozen=True, slots=True)
class Part(InputPartition):
    """Every `step`-th file of one state of the table, from the first on."""

    state: str | None  # None for what it is when the task runs
    first: int = 0
    step: int = 1


class Readable(Protocol):
    """A table to read. It travels to the executors: no connection is open in it."""

    def columns(self) -> pa.Schema: ...

    def state(self) -> tuple[str, int]:
        """What names the table's state now, and how many files it has."""
        ...

    def batches(self, part: Part) -> Iterator[pa.RecordBatch]: ...


class TableReader(DataSourceReader):
    """Spark plans a frame once, however often it is run. One that shall see what is new each time is read by one task,
    which looks for the newest state itself: several could meet different ones.
    """

    def __init__(self, table: Readable, schema: StructType, options: Mapping[str, str]) -> None:
        self._table = table
        self._schema = arrow_schema(schema)
        self._reads_anew = options.get("readanew", "false").lower() == "true"

    def partitions(self) -> Sequence[InputPartition]:
        if self._reads_anew:
            return [Part(None)]
        state, files = self._table.state()
        tasks = max(1, min(files, TASKS_MAX))
        return [Part(state, first, tasks) for first in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part), "Spark hands out what it was given"
        part = partition if partition.state is not None else Part(self._table.state()[0])
        for batch in self._table.batches(part):
            if batch.num_rows:
                yield conform(batch, self._schema)


def spark_columns(schema: pa.Schema) -> StructType:
    """All columns may be null: what a table forbids today may be allowed tomorrow."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(pa.schema([field.with_nullable(True) for field in schema]))

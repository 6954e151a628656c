"""What Spark asks of a data source, answered for every kind of table alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamWriter, DataSourceWriter

from moldau.spark.tables.reading import Readable, TableReader, spark_columns
from moldau.spark.tables.writing import BatchWriter, StreamWriter, Target

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class TableKind:
    """A format's name, and how its options become a table to read or to write."""

    name: str
    readable: Callable[[dict[str, str]], Readable]
    target: Callable[[dict[str, str], StructType], Target]


class TableSource(DataSource):
    """Spark wants a class for each format; they differ in their kind alone."""

    KIND: ClassVar[TableKind]

    @classmethod
    def name(cls) -> str:
        return cls.KIND.name

    def schema(self) -> StructType:
        return spark_columns(self._readable().columns())

    def reader(self, schema: StructType) -> DataSourceReader:
        return TableReader(self._readable(), schema, dict(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return BatchWriter(self._target(schema), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return StreamWriter(self._target(schema), overwrite=overwrite)

    def _readable(self) -> Readable:
        return self.KIND.readable(dict(self.options))

    def _target(self, schema: StructType) -> Target:
        return self.KIND.target(dict(self.options), schema)

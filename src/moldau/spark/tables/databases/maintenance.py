"""Database tables look after themselves; what there is to know of one is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.spark.tables.databases.statements import text_literal
from moldau.spark.tables.databases.table_names import PROGRESS_TABLE, TableName
from moldau.spark.tables.maintenance import Description, NotMaintained, Optimized, Vacuumed

if TYPE_CHECKING:
    from moldau.spark.tables.databases.reading import ReadableDatabase

CARES_ITSELF = "a database looks after its tables itself: optimize and vacuum are for Delta and Iceberg"


@dataclass(frozen=True, slots=True)
class MaintainedDatabase:
    readable: ReadableDatabase

    def describe(self) -> Description:
        database, table = self.readable.database, self.readable.table
        columns = [(column.name, str(column.type)) for column in self.readable.columns()]
        with database.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"select count(*) from {table}")
            rows = cursor.fetchall()[0][0]
            queries = {}
            if database.columns_of(cursor, TableName(table.schema, PROGRESS_TABLE)):
                progress = table.beside(PROGRESS_TABLE)
                cursor.execute(f"select query, batch from {progress} where target = {text_literal(table.name)}")
                queries = dict(cursor.fetchall())
        named = type(database).__name__.lower()
        return Description(named, ".".join(table.parts), "now", columns, (), rows, queries=queries)

    def optimize(self, file_bytes: int | None) -> Optimized:
        del file_bytes
        raise NotMaintained(CARES_ITSELF)

    def vacuum(self, *, older_than_ms: int, dry_run: bool) -> Vacuumed:
        del older_than_ms, dry_run
        raise NotMaintained(CARES_ITSELF)

"""The statements that put staged rows into a table: the same for every database that this sink knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moldau.spark.tables.databases.table_names import PROGRESS_TABLE, TableName, quoted
from moldau.spark.tables.options import WriteOptions

# Where a row stood in its batch: among rows of one key the later one counts.
ROW_COLUMN = "__moldau_row"


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Statements:
    table: TableName
    columns: tuple[str, ...]
    options: WriteOptions

    def create_progress(self) -> str:
        return (
            f"create table if not exists {self.table.beside(PROGRESS_TABLE)}"
            " (query text, target text, batch bigint not null, primary key (query, target))"
        )

    def take_batch(self, query_id: str, batch: int) -> str:
        """Returns a row if the batch is new. Whoever else tries the same waits here, and then finds it taken."""
        values = f"{text_literal(query_id)}, {text_literal(self.table.name)}, {batch}"
        return (
            f"insert into {self.table.beside(PROGRESS_TABLE)} as progress (query, target, batch) values ({values})"
            " on conflict (query, target) do update set batch = excluded.batch"
            " where progress.batch < excluded.batch returning batch"
        )

    def empty(self) -> str:
        return f"delete from {self.table}"

    def append(self, staged: Sequence[str]) -> list[str]:
        names = self._names(self.columns)
        return [f"insert into {self.table} ({names}) select {names} from {relation}" for relation in staged]

    def upsert(self, staged: Sequence[str]) -> list[str]:
        names = self._names(self.columns)
        latest = f"({self._latest(staged)}) as latest"
        insert = (
            f"insert into {self.table} ({names}) select {names} from {latest}"
            f" where not ({self._deleted()}) {self.on_conflict()}"
        )
        if self.options.operation_column is None:
            return [insert]
        same = " and ".join(f"latest.{quoted(key)} = {self.table}.{quoted(key)}" for key in self.options.keys)
        delete = f"delete from {self.table} where exists (select 1 from {latest} where {same} and {self._deleted()})"
        return [delete, insert]

    def on_conflict(self) -> str:
        others = [name for name in self.columns if name not in self.options.keys]
        changes = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
        return f"on conflict ({self._names(self.options.keys)}) do {f'update set {changes}' if changes else 'nothing'}"

    def probe(self, column_types: Sequence[str]) -> str:
        """Changes nothing, and fails if the table doesn't take columns of these types."""
        nulls = ", ".join(f"cast(null as {kind})" for kind in column_types)
        return f"insert into {self.table} ({self._names(self.columns)}) select {nulls} where 1 = 0"

    def _latest(self, staged: Sequence[str]) -> str:
        order = "" if self.options.order_by is None else f"{quoted(self.options.order_by)} desc nulls last, "
        rank = f"row_number() over (partition by {self._names(self.options.keys)} order by {order}{ROW_COLUMN} desc)"
        rows = " union all ".join(f"select * from {relation}" for relation in staged)
        ranked = f"select *, {rank} as __moldau_rank from ({rows}) as staged"
        return f"select * from ({ranked}) as ranked where __moldau_rank = 1"

    def _deleted(self) -> str:
        column = self.options.operation_column
        if column is None or not self.options.delete_when:
            return "1 = 0"
        words = ", ".join(text_literal(word) for word in self.options.delete_when)
        return f"coalesce(lower({quoted(column)}) in ({words}), false)"

    @staticmethod
    def _names(columns: Sequence[str]) -> str:
        return ", ".join(quoted(name) for name in columns)

"""Care for Delta tables, by deltalake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.spark.tables.maintenance import Description, Optimized, Vacuumed

if TYPE_CHECKING:
    from moldau.spark.tables.delta.reading import ReadableDelta

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class MaintainedDelta:
    readable: ReadableDelta

    def describe(self) -> Description:
        table = self.readable.open()
        files = pa.table(table.get_add_actions())
        return Description(
            format="delta",
            location=table.table_uri,
            state=f"version {table.version()}",
            columns=[(column.name, str(column.type)) for column in self.readable.columns()],
            partitions=table.metadata().partition_columns,
            rows=table.count(),
            files=files.num_rows,
            size_bytes=sum(files["size_bytes"].to_pylist()),
        )

    def optimize(self, file_bytes: int | None) -> Optimized:
        table = self.readable.open()
        before = len(table.file_uris())
        table.optimize.compact(target_size=file_bytes)
        return Optimized(before, len(self.readable.open().file_uris()))

    def vacuum(self, *, older_than_ms: int, dry_run: bool) -> Vacuumed:
        """Also of what the log never named: killed jobs leave such files."""
        hours = -(-older_than_ms // HOUR_MS)
        removed = self.readable.open().vacuum(
            retention_hours=hours, dry_run=dry_run, enforce_retention_duration=False, full=True
        )
        return Vacuumed(sorted(removed))

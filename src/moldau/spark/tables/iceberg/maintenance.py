"""Care for Iceberg tables: pyiceberg expires snapshots, and what it leaves to others is done by its public parts."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyarrow import fs

from moldau.core.clock import SystemClock
from moldau.spark.tables.data_files import write_files
from moldau.spark.tables.iceberg.partitions import terms_of
from moldau.spark.tables.iceberg.table import (
    PROGRESS_PROPERTY,
    IcebergFile,
    OpenedIceberg,
    commit_conflicts,
    layout_of,
    stage_at,
    without_retries,
)
from moldau.spark.tables.iceberg.target import FILE_SIZE_PROPERTY
from moldau.spark.tables.lakes import ATTEMPTS_MAX, FileChange
from moldau.spark.tables.maintenance import Description, NotMaintained, Optimized, Vacuumed
from moldau.spark.tables.options import file_bytes as size_of
from moldau.spark.tables.schemas import conform
from moldau.spark.tables.staging import FOLDER, StagedFile, unnumbered_area
from moldau.spark.tables.writing import Step

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from moldau.spark.tables.iceberg.reading import ReadableIceberg

# Where a table keeps what is its own; other tables may be below its location as well.
OWN_FOLDERS = ("data", "metadata", FOLDER)
# A file that is nearly as large as it should be is left alone.
LARGE_ENOUGH = 0.75


@dataclass(frozen=True, slots=True)
class MaintainedIceberg:
    readable: ReadableIceberg

    def describe(self) -> Description:
        table = self.readable.open()
        snapshot = table.current_snapshot()
        files = [task.file for task in table.scan().plan_files()]
        progress = {name: value for name, value in table.properties.items() if name.startswith(PROGRESS_PROPERTY)}
        return Description(
            format="iceberg",
            location=table.location(),
            state="no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}",
            columns=[(column.name, str(column.type)) for column in table.schema().as_arrow()],
            partitions=[name if how == "identity" else f"{how}({name})" for name, how in terms_of(table)],
            rows=table.scan().count(),
            files=len(files),
            size_bytes=sum(file.file_size_in_bytes for file in files),
            queries={name.removeprefix(PROGRESS_PROPERTY): int(batch) for name, batch in progress.items()},
        )

    def optimize(self, file_bytes: int | None) -> Optimized:
        table = self.readable.open()
        wanted = size_of({}, str(file_bytes) if file_bytes else table.properties.get(FILE_SIZE_PROPERTY))
        before = OpenedIceberg(table).files()
        small = _worth_rewriting(before, table.spec().spec_id, wanted * LARGE_ENOUGH)
        if not small:
            return Optimized(len(before), len(before))
        layout, area = layout_of(table, wanted), unnumbered_area()
        stage = stage_at(table.location().rstrip("/"), dict(table.io.properties))
        rows = (conform(batch, layout.schema) for file in small for batch in file.batches())
        added = write_files(rows, layout, stage=stage, area=area)
        try:
            self._commit(small, added, Step(area, overwrite=False))
        except NotMaintained:
            stage.delete(file.path for file in added)
            raise
        return Optimized(len(before), len(before) - len(small) + len(added))

    def _commit(self, replaced: Sequence[IcebergFile], added: Sequence[StagedFile], step: Step) -> None:
        """Queries may append meanwhile; the files that were read have to be the same."""
        for _ in range(ATTEMPTS_MAX):
            table = OpenedIceberg(without_retries(self.readable.open()))
            current = {file.path: file for file in table.files()}
            if any(_deletions(file) != _deletions(current.get(file.path)) for file in replaced):
                break
            try:
                table.replace(FileChange(added, [current[file.path] for file in replaced]), step)
                return
            except commit_conflicts():
                continue
        raise NotMaintained(f"table {self.readable.name} is being changed by others; try again when it is quiet")

    def vacuum(self, *, older_than_ms: int, dry_run: bool) -> Vacuumed:
        table = self.readable.open()
        until_ms = SystemClock().now_ms() - older_than_ms
        expired = _expired(table, until_ms)
        if expired and not dry_run:
            until = datetime.datetime.fromtimestamp(until_ms / 1000, datetime.UTC)
            table.maintenance.expire_snapshots().older_than(until).commit()
            table = self.readable.open()
            expired = [one for one in expired if table.snapshot_by_id(one.snapshot_id) is None]
        gone = {one.snapshot_id for one in expired}
        used = set(_used(table, [one for one in table.snapshots() if one.snapshot_id not in gone]))
        stage = stage_at(table.location().rstrip("/"), dict(table.io.properties))
        unused = [path for path in _old_files(stage.filesystem, stage.root, until_ms) if _key(path) not in used]
        if not dry_run:
            stage.delete(path.removeprefix(f"{stage.root}/") for path in unused)
        return Vacuumed(sorted(unused), len(expired))


def _deletions(file: IcebergFile | None) -> set[str] | None:
    return None if file is None else {each.file_path for each in file.task.delete_files}


def _worth_rewriting(files: Sequence[IcebergFile], spec_id: int, size_bytes: float) -> list[IcebergFile]:
    """Small files of a partition that has several, and files of an older way to partition or with deletions."""
    by_partition: dict[object, list[IcebergFile]] = defaultdict(list)
    found: list[IcebergFile] = []
    for file in files:
        data = file.task.file
        if file.task.delete_files or data.spec_id != spec_id:
            found.append(file)
        elif data.file_size_in_bytes < size_bytes:
            by_partition[repr(data.partition)].append(file)
    return found + [file for group in by_partition.values() if len(group) > 1 for file in group]


def _expired(table: Table, until_ms: int) -> list[Snapshot]:
    kept = {reference.snapshot_id for reference in table.refs().values()}
    return [one for one in table.snapshots() if one.timestamp_ms < until_ms and one.snapshot_id not in kept]


def _used(table: Table, snapshots: Sequence[Snapshot]) -> Iterator[str]:
    """Everything that these snapshots, and the table's own description, consist of."""
    yield _key(table.metadata_location)
    for entry in table.metadata.metadata_log:
        yield _key(entry.metadata_file)
    for statistics in (*table.metadata.statistics, *table.metadata.partition_statistics):
        yield _key(statistics.statistics_path)
    manifests = {}
    for snapshot in snapshots:
        yield _key(snapshot.manifest_list)
        manifests.update({one.manifest_path: one for one in snapshot.manifests(table.io)})
    for path, manifest in manifests.items():
        yield _key(path)
        for file in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield _key(file.data_file.file_path)


def _key(path: str) -> str:
    """One file has several addresses, with a scheme and without; its name has a random part and is its own."""
    return path.rpartition("/")[2]


def _old_files(filesystem: fs.FileSystem, root: str, until_ms: int) -> Iterator[str]:
    for folder in OWN_FOLDERS:
        selector = fs.FileSelector(f"{root}/{folder}", allow_not_found=True, recursive=True)
        for info in filesystem.get_file_info(selector):
            old = info.mtime_ns is not None and info.mtime_ns < until_ms * 1_000_000
            if info.type == fs.FileType.File and old and info.base_name != "version-hint.text":
                yield info.path

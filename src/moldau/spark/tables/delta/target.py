"""`format("moldau_delta")`: a Delta table as the options name it, made or changed to fit before a task runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.spark.option_values import wrong_option
from moldau.spark.storage import located
from moldau.spark.tables.data_files import write_files
from moldau.spark.tables.delta.reading import ReadableDelta
from moldau.spark.tables.delta.table import (
    DeltaLake,
    OpenedDelta,
    add_action,
    commit_properties,
    layout_of,
    opened,
    takes_files,
)
from moldau.spark.tables.lakes import ATTEMPTS_MAX, LakeTarget
from moldau.spark.tables.object_stores import access_by_environment, filled, is_in_s3, with_region
from moldau.spark.tables.options import (
    DELTA_OPTIONS,
    STORAGE_PREFIX,
    file_bytes,
    names_of,
    refuse_unknown,
    required,
    with_prefix,
    write_options,
)
from moldau.spark.tables.schemas import (
    Evolution,
    SchemaMismatch,
    arrow_schema,
    check_columns,
    check_fits,
    conform,
    evolution,
    evolved,
    table_part,
)
from moldau.spark.tables.sources import TableKind, TableSource
from moldau.spark.tables.staging import unnumbered_area
from moldau.spark.tables.writing import Step

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql.types import StructType


def delta_target(options: dict[str, str], schema: StructType) -> LakeTarget:
    """The table, made if it is missing; what doesn't fit is refused here, before a task runs."""
    refuse_unknown(options, DELTA_OPTIONS, (STORAGE_PREFIX,))
    writing = write_options(options)
    uri = _located(options, example='.start("/data/orders") or .option("path", "s3://bucket/orders")')
    storage = storage_options(uri, options)
    frame = arrow_schema(schema)
    check_columns(frame, writing)
    stored = table_part(frame, writing)
    table = _loaded_or_created(uri, storage, stored, names_of(options.get("partitionby", "")))
    if writing.merge_schema:
        table = _evolved(table, stored, storage)
    kept = pa.schema(table.schema().to_arrow())
    check_fits(stored, kept, name=uri)
    layout = layout_of(table, kept, file_bytes(options, _file_size_of(table)))
    return LakeTarget(DeltaLake(uri, storage, layout, takes_files(table)), writing)


def _located(options: Mapping[str, str], *, example: str) -> str:
    """A relative path counts from where the driver is; tasks may be elsewhere."""
    return located(required(options, "path", example=example), Path.cwd())


def storage_options(uri: str, options: Mapping[str, str]) -> dict[str, str]:
    """The environment counts where the table is named: tasks elsewhere need not have the same."""
    own = with_prefix(options, STORAGE_PREFIX)
    if not is_in_s3(uri):
        return own
    return with_region(filled(own, access_by_environment(os.environ).for_delta()), "aws_region")


def _loaded_or_created(
    uri: str, storage: Mapping[str, str], schema: pa.Schema, partitions: tuple[str, ...]
) -> DeltaTable:
    from deltalake import DeltaTable

    named = ",".join(partitions)
    if not DeltaTable.is_deltatable(uri, dict(storage) or None):
        missing = [name for name in partitions if name not in schema.names]
        if missing or len(partitions) >= len(schema.names):
            raise wrong_option("partitionBy", named, f"allowed are some of the columns {', '.join(schema.names)}")
        DeltaTable.create(
            uri, schema, mode="ignore", partition_by=list(partitions) or None, storage_options=dict(storage) or None
        )
    table = opened(uri, storage)
    found = tuple(table.metadata().partition_columns)
    if partitions and found != partitions:
        is_so = f"is partitioned by {','.join(found)}" if found else "is not partitioned"
        raise wrong_option("partitionBy", named, f"the table {is_so}, and stays so")
    return table


def _file_size_of(table: DeltaTable) -> str | None:
    return table.metadata().configuration.get("delta.targetFileSize")


def _evolved(table: DeltaTable, frame: pa.Schema, storage: Mapping[str, str]) -> DeltaTable:
    """The table with room for the frame; another query may be at the same, so that each attempt looks anew."""
    from deltalake.exceptions import CommitFailedError

    for attempt in range(ATTEMPTS_MAX):
        kept = pa.schema(table.schema().to_arrow())
        needed = evolution(frame, kept)
        if not needed:
            return table
        # What doesn't fit even so is told before anything is changed.
        check_fits(frame, evolved(kept, needed), name=table.table_uri)
        try:
            _evolve(table, kept, needed, storage)
        except CommitFailedError:
            if attempt == ATTEMPTS_MAX - 1:
                raise
        table = opened(table.table_uri, storage)
    return table


def _evolve(table: DeltaTable, kept: pa.Schema, needed: Evolution, storage: Mapping[str, str]) -> None:
    from deltalake import Schema

    if needed.widened:
        _rewrite(table, evolved(kept, Evolution(widened=needed.widened)), storage)
    elif needed.added:
        added = pa.schema([field.with_nullable(True) for field in needed.added])
        table.alter.add_columns(Schema.from_arrow(added).fields)


def _rewrite(table: DeltaTable, schema: pa.Schema, storage: Mapping[str, str]) -> None:
    """One commit with every file anew: to a reader of this format a file has the types that the table has."""
    from deltalake import Schema

    if not takes_files(table):
        raise SchemaMismatch(
            f"table {table.table_uri} has features of Delta with which its types can't be widened here"
        )
    layout = layout_of(table, schema, file_bytes({}, _file_size_of(table)))
    lake, area = DeltaLake(table.table_uri, storage, layout, takes_files=True), unnumbered_area()
    rows = (conform(batch, schema) for file in OpenedDelta(table).files() for batch in file.batches())
    files = write_files(rows, layout, stage=lake.stage(), area=area)
    columns = table.metadata().partition_columns
    try:
        table.create_write_transaction(
            [add_action(file, columns) for file in files],
            "overwrite",
            Schema.from_arrow(schema),
            columns,
            commit_properties=commit_properties(Step(area, overwrite=True), exactly_here=True),
        )
    except BaseException:
        # The commit may have happened all the same: files that the table names stay.
        named = lake.open().file_names()
        lake.stage().delete(file.path for file in files if file.path.rpartition("/")[2] not in named)
        raise


def readable_delta(options: dict[str, str]) -> ReadableDelta:
    refuse_unknown(options, DELTA_OPTIONS, (STORAGE_PREFIX,))
    uri = _located(options, example='.load("/data/orders") or .option("path", "s3://bucket/orders")')
    return ReadableDelta(uri, storage_options(uri, options))


class DeltaSource(TableSource):
    """What Spark finds by the name moldau_delta."""

    KIND = TableKind("moldau_delta", readable_delta, delta_target)

"""A table of a topic as a query knows it: kept beside the query's checkpoint, pinned for each batch.

The folder of a table has three kinds of files:

    snapshot-N-TOKEN/       Parquet, sorted by the table's key: the newest record of each key when batch N began
    changes-N-TOKEN.arrow   the records that batch N found beyond the ones before it
    N.json                  the pin of batch N: its offsets, and the snapshot and changes that make the table there

A pin is written before any result of its batch. A batch that runs again finds it, and with it the same table, whatever
the topic has become in between: records that a pin needs are in these files, so compaction can't take them away.

No file is written twice. Two drivers may be at the same batch, one of them thought dead: the first pin counts for both,
and what a pin names is of whoever wrote it, whole.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from moldau.core.ids import TopicPartition
from moldau.spark.clients.cluster import Cluster
from moldau.spark.formats.type_names import quoted_name
from moldau.spark.offsets.bounds import Offsets, offsets_from_json, offsets_to_json
from moldau.spark.offsets.positions import end_offsets, start_offsets
from moldau.spark.offsets.stream_offsets import remade
from moldau.spark.option_values import MissingTopic
from moldau.spark.options import SourceOptions, source_options
from moldau.spark.pipelines.plan import Plan, Source
from moldau.spark.pipelines.running.frames.sources import TOMBSTONE, newest_records, read_options, unpacked
from moldau.spark.pipelines.running.joining.pinned_tables import PinnedTable, changed_records, without_tombstone
from moldau.spark.pipelines.running.joining.record_keys import comparable
from moldau.spark.pipelines.running.joining.snapshot_files import ROW_GROUP_BYTES, SnapshotFiles, snapshot_files
from moldau.spark.reading.batch_reader import MoldauReader
from moldau.spark.reading.data_loss import DataLossError, Loss, losses_between, raise_or_warn
from moldau.spark.reading.readable import MADE_ANEW
from moldau.spark.reading.typed_columns import schema_of
from moldau.spark.registry_names import SCHEMA_ID
from moldau.spark.storage import Folder, folder_of, is_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# What the driver keeps in memory of a table. A table that changed more than that gets a new snapshot, by Spark.
CHANGES_MAX = 20_000
CHANGES_BYTES_MAX = 64 << 20
CHANGE_FILES_MAX = 50
PINS_KEPT = 10  # Spark runs the last batch again, never one before it; the others are for whoever looks
TOKEN_DIGITS = 8
FOLDER = "tables"


class ChangesLost(RuntimeError):
    """Records of a table are gone that no batch has read."""


@dataclass(frozen=True, slots=True)
class Pin:
    """What a table is in one batch. Pins of earlier versions have no ids of topics and no schema."""

    offsets: Offsets
    snapshot: str
    changes: tuple[str, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None  # of records, as they were read for this pin's files

    def to_json(self) -> bytes:
        told = {
            "offsets": offsets_to_json(self.offsets),
            "snapshot": self.snapshot,
            "changes": self.changes,
            "topicIds": self.topic_ids,
            "schema": self.schema,
        }
        return json.dumps(told).encode()


def pin_of(text: bytes) -> Pin:
    told = json.loads(text)
    return Pin(
        offsets_from_json(told["offsets"]),
        told["snapshot"],
        tuple(told["changes"]),
        told.get("topicIds", {}),
        told.get("schema"),
    )


def as_declared(frame: DataFrame, columns: StructType) -> DataFrame:
    """Rows that were read when the table was declared with other columns."""
    from pyspark.sql import functions as f

    if frame.columns == columns.names and all(frame.schema[one.name].dataType == one.dataType for one in columns):
        return frame
    return frame.select(
        *(
            (f.col(quoted_name(one.name)) if one.name in frame.columns else f.lit(None))
            .cast(one.dataType)
            .alias(one.name)
            for one in columns
        )
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new pin has to read beyond `before`; None where the table begins anew."""

    start: Offsets
    end: Offsets
    topic_ids: Mapping[str, str]
    before: Pin | None


class TableState:
    """Lives as long as a run of its query."""

    def __init__(self, source: Source, plan: Plan, checkpoint: str) -> None:
        self.source = source
        self.url = f"{checkpoint}/{FOLDER}/{source.name}"
        self._options = read_options(source, plan)
        self._schema = schema_of(self._options)
        self._newest: tuple[int, Pin] | None = None
        self._snapshot: tuple[str, DataFrame, SnapshotFiles | None] | None = None
        self._loaded: tuple[str, ...] = ()
        self._changes: pa.Table | None = None

    def pinned(self, spark: SparkSession, batch: int) -> PinnedTable:
        """The table that belongs to a batch, the same each time that it is asked for."""
        folder = folder_of(self.url, spark)
        told = folder.read(f"{batch}.json")
        pin = pin_of(told) if told is not None else self._new_pin(spark, folder, batch)
        self._newest = (batch, pin)
        self._load(folder, pin)
        url = self._spark_url(pin.snapshot)
        if self._snapshot is None or self._snapshot[0] != url:
            self._snapshot = (url, *self._opened(spark, url, pin.snapshot))
        return PinnedTable(self.source, *self._snapshot, self._changes, self._schema_of(pin))

    def _opened(self, spark: SparkSession, url: str, name: str) -> tuple[DataFrame, SnapshotFiles | None]:
        """Once for many batches: Spark lists files, and runs a job that looks into one of them."""
        # Files take every member for one that may be null, and Spark casts none to what may not.
        declared = unpacked(spark.createDataFrame([], self._schema), self.source).schema.toNullable()
        there = spark.read.parquet(url)
        rows = as_declared(there, declared)
        if is_url(self.url) or rows is not there or self.source.are_changes:
            return rows, None
        return rows, snapshot_files(Path(self.url, name), without_tombstone(rows.schema), self.source.keys)

    def _schema_of(self, pin: Pin) -> StructType:
        from pyspark.sql.types import StructType

        return self._schema if pin.schema is None else StructType.fromJson(dict(pin.schema))

    def _spark_url(self, name: str) -> str:
        """Spark takes a path for one of its default file system, wherever that is, and takes a URL by its letters."""
        return f"{self.url if is_url(self.url) else f'file://{Path(self.url).absolute()}'}/{name}"

    def _new_pin(self, spark: SparkSession, folder: Folder, batch: int) -> Pin:
        found = self._newest if self._newest and self._newest[0] < batch else _newest_pin(folder, batch)
        before = found[1] if found else None
        pin = self._next(spark, folder, batch, before)
        if folder.create(f"{batch}.json", pin.to_json()):
            self._forget(folder, batch, pin, before)
            return pin
        told = folder.read(f"{batch}.json")
        assert told is not None, "another driver has pinned this batch a moment ago"
        return pin_of(told)

    def _next(self, spark: SparkSession, folder: Folder, batch: int, before: Pin | None) -> Pin:
        schema = json.loads(self._schema.json())
        # A snapshot has no values of columns that were declared later: those are in the topic.
        wanted = self._wanted(before if before is None or _is_same(before.schema, schema) else None)
        before, start, end = wanted.before, wanted.start, wanted.end
        if before is not None and start == end:
            return replace(before, topic_ids=wanted.topic_ids, schema=schema)
        size = sum(end[place] - start[place] for place in end)
        ranged = {**_without_bounds(self._options), **_bounds(start, end)}
        name = f"{batch}-{uuid.uuid4().hex[:TOKEN_DIGITS]}"
        found = None
        if before is not None and size + self._kept(folder, before) <= CHANGES_MAX:
            found = self._read(source_options(ranged, streaming=False))
        if before is None or found is None:
            self._write_snapshot(spark, folder, before, ranged, f"snapshot-{name}")
            return Pin(end, f"snapshot-{name}", (), wanted.topic_ids, schema)
        kept = before.changes
        if len(kept) >= CHANGE_FILES_MAX:
            self._load(folder, before)
            found, kept = self._newest_of([*([self._changes] if self._changes else []), found]), ()
        folder.write(f"changes-{name}.arrow", _arrow_file(found))
        return Pin(end, before.snapshot, (*kept, f"changes-{name}.arrow"), wanted.topic_ids, schema)

    def _wanted(self, before: Pin | None) -> Wanted:
        options = source_options(self._options, streaming=False)
        cluster = Cluster(options.client)
        there = cluster.subscribed(options.subscription)
        missing = cluster.missing(options.subscription, there.places)
        if missing:
            raise MissingTopic(f"table {self.source.name}: there is no {', '.join(missing)} at {cluster.servers}")
        end = end_offsets(options.ending, there.places, cluster)
        if before is not None:
            earliest = cluster.earliest(there.places)
            losses, goes_on = losses_after(before, end, topic_ids=there.topic_ids, earliest=earliest)
            try:
                raise_or_warn(losses, fail=options.fails_on_data_loss)
            except DataLossError as lost:
                # In one line, which is what a pipeline says of a query's failure.
                raise ChangesLost(f"table {self.source.name}: {' '.join(str(lost).split())}") from None
            if goes_on:
                start = {place: max(before.offsets.get(place, 0), earliest[place]) for place in end}
                return Wanted(start, end, there.topic_ids, before)
        resolved = start_offsets(
            options.starting, there.places, cluster, latest_if_no_timestamp=options.latest_if_no_timestamp
        )
        return Wanted({place: min(resolved[place], end[place]) for place in end}, end, there.topic_ids, None)

    def _kept(self, folder: Folder, pin: Pin) -> int:
        self._load(folder, pin)
        return self._changes.num_rows if self._changes is not None else 0

    def _write_snapshot(
        self, spark: SparkSession, folder: Folder, before: Pin | None, ranged: Mapping[str, str], name: str
    ) -> None:
        records = unpacked(spark.read.format("moldau").options(**ranged).load(), self.source)
        if before is not None:
            self._load(folder, before)
            records = records.unionByName(
                spark.read.parquet(self._spark_url(before.snapshot)), allowMissingColumns=True
            )
            if self._changes is not None:
                records = records.unionByName(changed_records(spark, self._changes, self._schema, self.source))
        newest = newest_records(records, self.source)
        if not self.source.are_changes:
            newest = newest.where(f"not {TOMBSTONE}")
        # In the order of the key, so that a look for some keys reads some pages of a file or two.
        ordered = newest.sort(*map(quoted_name, self.source.keys)).write.mode("overwrite")
        ordered.option("parquet.block.size", ROW_GROUP_BYTES).parquet(self._spark_url(name))

    def _read(self, options: SourceOptions) -> pa.Table | None:
        """A few records, without a job for them; None if they are too large to be kept beside those that are."""
        reader = MoldauReader(options, self._schema)
        left_bytes = CHANGES_BYTES_MAX - (self._changes.nbytes if self._changes is not None else 0)
        batches = []
        for task in reader.partitions():
            for batch in reader.read(task):
                batches.append(batch)
                left_bytes -= batch.nbytes
                if left_bytes < 0:
                    return None
        return pa.Table.from_batches(batches) if batches else pa.table({})

    def _load(self, folder: Folder, pin: Pin) -> None:
        if pin.changes == self._loaded:
            return
        fresh = pin.changes[len(self._loaded) :]
        is_more = self._loaded and pin.changes[: len(self._loaded)] == self._loaded
        tables = [self._changes] if is_more and self._changes is not None else []
        for name in fresh if is_more else pin.changes:
            data = folder.read(name)
            assert data is not None, f"a pin names the file {name}, which is there before the pin is"
            tables.append(pa.ipc.open_file(data).read_all())
        self._changes, self._loaded = self._newest_of(tables), pin.changes

    def _newest_of(self, tables: Sequence[pa.Table]) -> pa.Table | None:
        """Later tables have later records, and each has a partition's records in their order."""
        filled = [table for table in tables if table.num_rows]
        if not filled:
            return None
        table = pa.concat_tables(filled)
        return table if self.source.are_changes else _last_of_each_key(table)

    def _forget(self, folder: Folder, batch: int, pin: Pin, before: Pin | None) -> None:
        """Pins of long ago, and files that no pin names any more."""
        folder.delete(f"{batch - PINS_KEPT}.json")
        has_grown = before is not None and pin.changes[: len(before.changes)] == before.changes
        if before is None or (pin.snapshot == before.snapshot and has_grown):
            return
        names = folder.names()
        # A driver that was killed, or thought dead, may have left some that nobody came by since.
        gone = [name for name in names if _is_pin(name) and _batch_of(name) <= batch - PINS_KEPT]
        pins = [pin_of(told) for name in names if _is_pin(name) and name not in gone and (told := folder.read(name))]
        used = {name for each in pins for name in (each.snapshot, *each.changes)}
        files = [name for name in names if name.startswith(("snapshot-", "changes-"))]
        for name in (*gone, *(name for name in files if name not in used)):
            folder.delete(name)


def _is_same(before: Mapping[str, Any] | None, schema: Mapping[str, Any]) -> bool:
    return before is None or _meaning(before) == _meaning(schema)


def _meaning(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The columns alone: a later version in a registry may well have the same."""
    fields = [
        {**one, "metadata": {name: told for name, told in (one.get("metadata") or {}).items() if name != SCHEMA_ID}}
        for one in schema["fields"]
    ]
    return {**schema, "fields": fields}


def _is_pin(name: str) -> bool:
    return name.endswith(".json") and name.removesuffix(".json").isdigit()


def _batch_of(name: str) -> int:
    return int(name.removesuffix(".json"))


def _newest_pin(folder: Folder, batch: int) -> tuple[int, Pin] | None:
    """Of a batch before this one."""
    numbers = [_batch_of(name) for name in folder.names() if _is_pin(name)]
    newest = max((number for number in numbers if number < batch), default=None)
    told = None if newest is None else folder.read(f"{newest}.json")
    return None if newest is None or told is None else (newest, pin_of(told))


def losses_after(
    before: Pin, end: Offsets, *, topic_ids: Mapping[str, str], earliest: Offsets
) -> tuple[list[Loss], bool]:
    """What can no longer be read after a pin, and whether the table goes on from it.

    Where offsets begin again, in a topic that was made anew or cut back, later records have lower ones: what is kept
    of the table can't be compared with them, and the table begins anew as well.
    """
    anew = remade(before.topic_ids, topic_ids)
    same = {place: offset for place, offset in before.offsets.items() if place.topic not in anew}
    appeared = [place for place in end if place not in before.offsets]
    losses = [
        *losses_between(same, end, earliest=earliest, appeared=appeared),
        *(
            Loss(place, offset, offset + 1, MADE_ANEW)
            for place, offset in sorted(before.offsets.items())
            if place.topic in anew
        ),
    ]
    return losses, not anew and all(end.get(place, -1) >= offset for place, offset in same.items())


def _without_bounds(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if not name.lower().startswith(("starting", "ending"))}


def _bounds(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> dict[str, str]:
    bounds = {"startingOffsets": start, "endingOffsets": end}
    return {name: json.dumps(offsets_to_json(offsets)) for name, offsets in bounds.items()}


def _last_of_each_key(table: pa.Table) -> pa.Table:
    """Of each key in its partition; a record without a key is nobody's successor."""
    places = zip(*(comparable(table.column(name)) for name in ("topic", "partition", "key")), strict=True)
    last = {(*place, row) if place[2] is None else place: row for row, place in enumerate(places)}
    return table.take(pa.array(sorted(last.values()), pa.int64())).combine_chunks()


def _arrow_file(table: pa.Table | None) -> bytes:
    table = pa.table({}) if table is None else table
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())

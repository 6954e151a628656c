"""A table of a topic as a query knows it: kept beside the query's checkpoint, pinned for each batch.

The folder of a table has three kinds of files:

    snapshot-N/         Parquet, sorted by the table's key: the newest record of each key when batch N began
    changes-N.arrow     the records that batch N found beyond the ones before it
    N.json              the pin of batch N: its offsets, and the snapshot and changes that make the table there

A pin is written before any result of its batch. A batch that runs again finds it, and with it the same table, whatever
the topic has become in between: records that a pin needs are in these files, so compaction can't take them away.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.core.ids import TopicPartition
from moldau.spark.clients.cluster import Cluster
from moldau.spark.offsets.bounds import Offsets, offsets_from_json, offsets_to_json
from moldau.spark.offsets.positions import end_offsets, start_offsets
from moldau.spark.option_values import OptionError
from moldau.spark.options import SourceOptions, source_options
from moldau.spark.pipelines.plan import Plan, Source
from moldau.spark.pipelines.running.joining.pinned_tables import PinnedTable, changed_records
from moldau.spark.pipelines.running.sources import TOMBSTONE, newest_records, read_options, unpacked
from moldau.spark.reading.batch_reader import MoldauReader
from moldau.spark.reading.data_loss import DataLossError, losses_between, raise_or_warn
from moldau.spark.reading.typed_columns import schema_of
from moldau.spark.storage import Folder, folder_of, is_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What the driver keeps in memory of a table. A table that changed more than that gets a new snapshot, by Spark.
CHANGES_MAX = 20_000
CHANGE_FILES_MAX = 50
PINS_KEPT = 10  # Spark runs the last batch again, never one before it; the others are for whoever looks
FOLDER = "tables"


class ChangesLost(RuntimeError):
    """Records of a table are gone that no batch has read."""


@dataclass(frozen=True, slots=True)
class Pin:
    """What a table is in one batch."""

    offsets: Offsets
    snapshot: str
    changes: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        told = {"offsets": offsets_to_json(self.offsets), "snapshot": self.snapshot, "changes": self.changes}
        return json.dumps(told).encode()


def pin_of(text: bytes) -> Pin:
    told = json.loads(text)
    return Pin(offsets_from_json(told["offsets"]), told["snapshot"], tuple(told["changes"]))


class TableState:
    """Lives as long as a run of its query."""

    def __init__(self, source: Source, plan: Plan, checkpoint: str) -> None:
        self.source = source
        self.url = f"{checkpoint}/{FOLDER}/{source.name}"
        self._options = read_options(source, plan)
        self._schema = schema_of(self._options)
        self._newest: tuple[int, Pin] | None = None
        self._snapshot: tuple[str, DataFrame] | None = None
        self._loaded: tuple[str, ...] = ()
        self._changes: pa.Table | None = None

    def pinned(self, spark: SparkSession, batch: int) -> PinnedTable:
        """The table that belongs to a batch, the same each time that it is asked for."""
        folder = folder_of(self.url, spark)
        told = folder.read(f"{batch}.json")
        if told is not None:
            pin = pin_of(told)
        else:
            before = self._newest if self._newest and self._newest[0] < batch else _newest_pin(folder, batch)
            pin = self._next(spark, folder, batch, before[1] if before else None)
            folder.write(f"{batch}.json", pin.to_json())
            self._forget(folder, batch, pin, before[1] if before else None)
        self._newest = (batch, pin)
        self._load(folder, pin)
        url = self._spark_url(pin.snapshot)
        if self._snapshot is None or self._snapshot[0] != url:
            # Once for many batches: Spark lists files, and runs a job that looks into one of them.
            self._snapshot = (url, spark.read.parquet(url))
        return PinnedTable(self.source, *self._snapshot, self._changes, self._schema)

    def _spark_url(self, name: str) -> str:
        """Spark takes a path for one of its default file system, wherever that is."""
        return f"{self.url if is_url(self.url) else Path(self.url).absolute().as_uri()}/{name}"

    def _next(self, spark: SparkSession, folder: Folder, batch: int, before: Pin | None) -> Pin:
        start, end = self._range(before)
        if before is not None and start == end:
            return before
        size = sum(end[place] - start[place] for place in end)
        ranged = {**_without_bounds(self._options), **_bounds(start, end)}
        if before is None or size + self._kept(folder, before) > CHANGES_MAX:
            name = f"snapshot-{batch}"
            self._write_snapshot(spark, folder, before, ranged, name)
            return Pin(end, name)
        name = f"changes-{batch}.arrow"
        found = self._read(source_options(ranged, streaming=False))
        if len(before.changes) < CHANGE_FILES_MAX:
            folder.write(name, _arrow_file(found))
            return Pin(end, before.snapshot, (*before.changes, name))
        self._load(folder, before)
        folder.write(name, _arrow_file(self._newest_of([*([self._changes] if self._changes else []), found])))
        return Pin(end, before.snapshot, (name,))

    def _range(self, before: Pin | None) -> tuple[Offsets, Offsets]:
        options = source_options(self._options, streaming=False)
        cluster = Cluster(options.client)
        places = cluster.places(options.subscription)
        missing = cluster.missing(options.subscription, places)
        if missing:
            raise OptionError(f"table {self.source.name}: there is no {', '.join(missing)} at {cluster.servers}")
        end = end_offsets(options.ending, places, cluster)
        if before is None:
            resolved = start_offsets(
                options.starting, places, cluster, latest_if_no_timestamp=options.latest_if_no_timestamp
            )
            return {place: min(resolved[place], end[place]) for place in end}, end
        try:
            return _start_of(before.offsets, end, cluster.earliest(places), options), end
        except DataLossError as lost:
            # In one line, which is what a pipeline says of a query's failure.
            raise ChangesLost(f"table {self.source.name}: {' '.join(str(lost).split())}") from None

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
        newest.sort(*self.source.keys).write.mode("overwrite").parquet(self._spark_url(name))

    def _read(self, options: SourceOptions) -> pa.Table:
        """A few records, without a job for them."""
        reader = MoldauReader(options, self._schema)
        batches = [batch for task in reader.partitions() for batch in reader.read(task)]
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
        pins = [pin_of(told) for told in map(folder.read, filter(_is_pin, names)) if told is not None]
        used = {name for each in pins for name in (each.snapshot, *each.changes)}
        for name in names:
            if name.startswith(("snapshot-", "changes-")) and name not in used:
                folder.delete(name)


def _is_pin(name: str) -> bool:
    return name.removesuffix(".json").isdigit()


def _newest_pin(folder: Folder, batch: int) -> tuple[int, Pin] | None:
    """Of a batch before this one."""
    numbers = [int(name.removesuffix(".json")) for name in folder.names() if _is_pin(name)]
    newest = max((number for number in numbers if number < batch), default=None)
    told = None if newest is None else folder.read(f"{newest}.json")
    return None if newest is None or told is None else (newest, pin_of(told))


def _start_of(before: Offsets, end: Offsets, earliest: Offsets, options: SourceOptions) -> Offsets:
    """Where the changes begin that come after a pin; what can no longer be read is told, or ends the query."""
    appeared = [place for place in end if place not in before]
    raise_or_warn(losses_between(before, end, earliest=earliest, appeared=appeared), fail=options.fails_on_data_loss)
    start: Offsets = {}
    for place in end:
        pinned = before.get(place, earliest[place])
        start[place] = earliest[place] if pinned > end[place] else max(pinned, earliest[place])
    return start


def _without_bounds(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if not name.lower().startswith(("starting", "ending"))}


def _bounds(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> dict[str, str]:
    bounds = {"startingOffsets": start, "endingOffsets": end}
    return {name: json.dumps(offsets_to_json(offsets)) for name, offsets in bounds.items()}


def _last_of_each_key(table: pa.Table) -> pa.Table:
    """Of each key in its partition; a record without a key is nobody's successor."""
    places = zip(*(table.column(name).to_pylist() for name in ("topic", "partition", "key")), strict=True)
    last = {(*place, row) if place[2] is None else place: row for row, place in enumerate(places)}
    return table.take(pa.array(sorted(last.values()), pa.int64())).combine_chunks()


def _arrow_file(table: pa.Table | None) -> bytes:
    table = pa.table({}) if table is None else table
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())

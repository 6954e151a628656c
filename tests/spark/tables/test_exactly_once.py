"""Exactly once on a real Spark: batches that are run again, drivers that are killed, and a control that can tell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.spark.tables.postgresql import postgresql_server
from tests.spark.tables.sinks import KINDS, Sink, sink_of
from tests.spark.tables.streams import (
    forget_newest_commit,
    newest_commit,
    put_batches,
    read_batches,
    start,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROJECT = Path(__file__).parents[3]
# A Spark start takes seconds; on a machine that does ten other things, minutes.
PAUSE_S_MAX = 400


def run_again(spark: SparkSession, sink: Sink, folder: Path, **options: str) -> list[int]:
    """Three batches, the last of which Spark runs twice; returns the ids that should be in the table."""
    ids = put_batches(folder / "input", range(100), range(100, 200), range(200, 300))
    checkpoint = folder / "checkpoint"
    for _ in range(2):
        start(
            read_batches(spark, folder / "input"), sink.format, {**sink.options, **options}, checkpoint
        ).awaitTermination()
        if _ == 0:
            assert forget_newest_commit(checkpoint) == 2
    assert newest_commit(checkpoint) == 2, "the batch was not run again"
    return ids


def test_a_batch_that_is_run_again_is_in_the_table_once(spark: SparkSession, sink: Sink, tmp_path: Path) -> None:
    assert run_again(spark, sink, tmp_path) == sink.ids()
    assert sink.staged() == []


def test_the_control_tells_duplicates(spark: SparkSession, sink: Sink, tmp_path: Path) -> None:
    ids = run_again(spark, sink, tmp_path, delivery="at-least-once")
    assert sink.ids() == sorted([*ids, *range(200, 300)])


def kill_when_paused(queries: Sequence[Mapping[str, object]], markers: list[Path]) -> None:
    """Starts a driver with these queries and kills it, with the JVM, once all of them stand still."""
    driver = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.tables.paused_driver", json.dumps(queries)],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    deadline = time.monotonic() + PAUSE_S_MAX
    try:
        while not all(marker.exists() for marker in markers):
            assert driver.poll() is None, "the driver ended by itself"
            assert time.monotonic() < deadline, "the driver never came to its commits"
            time.sleep(0.05)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        output, _ = driver.communicate()
        print(output.decode()[-4000:])


@pytest.mark.timeout(600)
def test_a_killed_driver_loses_and_repeats_nothing(
    spark: SparkSession, make_sink: Callable[[str], Sink], tmp_path: Path
) -> None:
    cases = [(moment, make_sink(kind)) for moment in ("before", "after") for kind in KINDS]
    folders = [tmp_path / f"{moment}-{sink.kind}" for moment, sink in cases]
    ids = [put_batches(folder / "input", range(50), range(50, 100)) for folder in folders]
    queries = [
        {
            "format": sink.format,
            "options": sink.options,
            "input": str(folder / "input"),
            "checkpoint": str(folder / "checkpoint"),
            "moment": moment,
            "marker": str(folder / "marker"),
        }
        for (moment, sink), folder in zip(cases, folders, strict=True)
    ]
    kill_when_paused(queries, [folder / "marker" for folder in folders])
    for moment, sink in cases:
        assert sink.ids() == list(range(0 if moment == "before" else 50)), f"{sink.kind} at the kill"
        assert sink.staged() or moment == "after", f"{sink.kind} at the kill"
    restarted = [
        start(read_batches(spark, folder / "input", tasks=1), sink.format, sink.options, folder / "checkpoint")
        for (_, sink), folder in zip(cases, folders, strict=True)
    ]
    for query in restarted:
        query.awaitTermination()
    assert [sink.ids() for _, sink in cases] == ids
    assert [sink.staged() for _, sink in cases] == [[]] * len(cases)


@pytest.mark.parametrize("kind", ["delta", "postgresql"])
def test_for_each_batch_is_exact_with_its_number(
    spark: SparkSession, make_sink: Callable[[str], Sink], tmp_path: Path, kind: str
) -> None:
    """Spark calls the function again for a batch that it runs again, and gives it the same number."""
    sink, checkpoint = make_sink(kind), tmp_path / "checkpoint"
    put_batches(tmp_path / "input", range(4), range(4, 8))

    def write(rows: DataFrame, batch: int) -> None:
        numbered = {"queryId": "totals", "batchId": str(batch)}
        rows.write.format(sink.format).options(**sink.options, **numbered).mode("append").save()

    for attempt in range(2):
        frame = read_batches(spark, tmp_path / "input")
        writing = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
        writing.trigger(availableNow=True).start().awaitTermination()
        if attempt == 0:
            forget_newest_commit(checkpoint)
    assert sink.ids() == list(range(8))


def waiting_in_the_second_task(frame: DataFrame, go: Path) -> DataFrame:
    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time

        from pyspark import TaskContext

        context, deadline = TaskContext.get(), time.monotonic() + PAUSE_S_MAX
        while context is not None and context.partitionId() == 1 and not go.exists():
            assert time.monotonic() < deadline, "nobody said go"
            time.sleep(0.02)
        yield from batches

    return frame.mapInArrow(wait, frame.schema)


def test_a_database_that_crashes_in_mid_batch_loses_and_repeats_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """One task has staged its rows when the server crashes, the other stages its own after the recovery."""
    ids = put_batches(tmp_path / "input", range(100), range(100, 200))
    with postgresql_server() as server:
        sink = sink_of("postgresql", tmp_path, name="orders", url=server.url)
        frame = waiting_in_the_second_task(read_batches(spark, tmp_path / "input"), tmp_path / "go")
        query = start(frame, sink.format, sink.options, tmp_path / "checkpoint")
        deadline = time.monotonic() + PAUSE_S_MAX
        while not sink.staged():
            assert time.monotonic() < deadline, "the first task never staged its rows"
            time.sleep(0.05)
        server.restart_after_crash()
        (tmp_path / "go").touch()
        with pytest.raises(Exception, match="rows for batch 0, and 0 are left"):
            query.awaitTermination()
        assert (sink.ids(), sink.staged()) == ([], [])
        start(frame, sink.format, sink.options, tmp_path / "checkpoint").awaitTermination()
        assert (sink.ids(), sink.staged()) == (ids, [])


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_query_that_grew_goes_on_where_it_was(
    spark: SparkSession, make_sink: Callable[[str], Sink], tmp_path: Path, kind: str
) -> None:
    """A partitioned upsert with a new and a wider column after its restart, and with a batch that is run again."""
    sink, folder, checkpoint = make_sink(kind), tmp_path / "input", tmp_path / "checkpoint"
    options = {**sink.options, "keys": "id", "partitionBy": "part", "mergeSchema": "true"}
    old = ("id", "cast(id % 3 as int) as part", "cast(1 as int) as version")
    put_batches(folder, range(40), range(20, 60))
    start(read_batches(spark, folder).selectExpr(*old), sink.format, options, checkpoint).awaitTermination()
    put_batches(folder, range(40), range(20, 60), range(50, 70))
    for _ in range(2):
        grown = read_batches(spark, folder).selectExpr(*old[:2], "cast(5000000000 as bigint) as version", "state")
        start(grown, sink.format, options, checkpoint).awaitTermination()
        assert forget_newest_commit(checkpoint) == 2
    rows = [(row["id"], row["part"], row["version"], row["state"]) for row in sink.rows()]
    assert sorted(rows) == [
        (each, each % 3, 1 if each < 50 else 5_000_000_000, None if each < 50 else "batch 2") for each in range(70)
    ]
    assert sink.staged() == []

"""Rows that were staged and are gone when the driver commits: the batch fails, and run again it is whole."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from moldau.spark.tables.staging import StagedRowsLost, StagingArea
from moldau.spark.tables.writing import Step
from tests.spark.tables.postgresql import Server, postgresql_server
from tests.spark.tables.sinks import Sink, sink_of

pytestmark = pytest.mark.xdist_group("tables")

ORDERS = StructType([StructField("id", LongType()), StructField("state", StringType())])


def batch(first: int, end: int) -> pa.RecordBatch:
    ids = range(first, end)
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "state": pa.array(["new"] * len(ids), pa.string())})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgresql_server() as running:
        yield running


def asked_by_psql(server: Server, statement: str) -> str:
    command = ["psql", "--no-psqlrc", "-At", server.url, "-c", statement]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("keys", ["", "id"])
def test_a_crash_of_the_database_between_two_tasks_loses_no_row(server: Server, tmp_path: Path, keys: str) -> None:
    """PostgreSQL empties unlogged tables when it recovers: what the first task staged is gone."""
    sink = sink_of("postgresql", tmp_path, name=f"orders_{keys or 'all'}", url=server.url)
    area = StagingArea("a query", 0)
    target = sink.target(ORDERS, keys=keys)
    first = target.stage([batch(0, 100)], area)
    server.restart_after_crash()
    second = target.stage([batch(100, 150)], area)
    with pytest.raises(StagedRowsLost, match=r"a task staged 100 rows for batch 0, and 0 are left"):
        target.apply([first, second], Step(area, overwrite=False))
    target.discard([first, second], area)
    assert (sink.ids(), sink.staged()) == ([], [])
    again = sink.target(ORDERS, keys=keys)
    staged = [again.stage([batch(0, 100)], area), again.stage([batch(100, 150)], area)]
    again.apply(staged, Step(area, overwrite=False))
    again.apply(staged, Step(area, overwrite=False))
    assert asked_by_psql(server, f"select count(*), count(distinct id) from {sink.options['dbtable']}") == "150|150"
    assert sink.staged() == []


def test_a_crash_after_the_commit_loses_no_batch_that_was_confirmed(server: Server, tmp_path: Path) -> None:
    """Also where the server confirms commits before they are durable: Spark would not run the batch again."""
    sink = sink_of("postgresql", tmp_path, name="orders_confirmed", url=server.url)
    # The writer that makes such commits durable sleeps as long as it may.
    for setting in ("synchronous_commit = off", "wal_writer_delay = '10s'", "wal_writer_flush_after = '2GB'"):
        asked_by_psql(server, f"alter system set {setting}")
    asked_by_psql(server, "select pg_reload_conf()")
    try:
        target, area = sink.target(ORDERS), StagingArea("a query", 0)
        staged = [target.stage([batch(0, 10)], area)]
        with sink.connect() as reader, reader.cursor() as cursor:
            # Who looks at the staged table keeps it from being dropped, which would make the commit durable as well.
            cursor.execute(f"select count(*) from {sink.staged()[0]}")
            cursor.fetchall()
            target.apply(staged, Step(area, overwrite=False))
            server.restart_after_crash()
        assert sink.ids() == list(range(10))
    finally:
        asked_by_psql(server, "alter system reset all")
        asked_by_psql(server, "select pg_reload_conf()")


@pytest.mark.parametrize("keys", ["", "id"])
@pytest.mark.parametrize("kind", ["delta", "iceberg", "sqlite"])
def test_a_staged_file_that_is_gone_fails_the_batch(kind: str, keys: str, make_sink: Callable[[str], Sink]) -> None:
    sink, area = make_sink(kind), StagingArea("a query", 0)
    target = sink.target(ORDERS, keys=keys)
    staged = [target.stage([batch(0, 100)], area), target.stage([batch(100, 150)], area)]
    Path(sink.staged()[0]).unlink()
    with pytest.raises(StagedRowsLost, match="for batch 0, and 0 are left"):
        target.apply(staged, Step(area, overwrite=False))
    target.discard(staged, area)
    assert (sink.ids(), sink.staged()) == ([], [])
    again = [target.stage([batch(0, 100)], area), target.stage([batch(100, 150)], area)]
    target.apply(again, Step(area, overwrite=False))
    assert sink.ids() == list(range(150))


def test_a_driver_that_fails_takes_nothing_from_the_one_after_it(sink: Sink) -> None:
    """A driver that was thought dead gives its batch up while another has staged the same batch."""
    target = sink.target(ORDERS)
    old, new = StagingArea("a query", 0, attempt="old"), StagingArea("a query", 0, attempt="new")
    given_up, staged = [target.stage([batch(0, 2)], old)], [target.stage([batch(0, 2)], new)]
    target.discard(given_up, old)
    target.apply(staged, Step(new, overwrite=False))
    assert (sink.ids(), sink.staged()) == ([0, 1], [])

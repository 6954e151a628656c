"""The tables themselves, without Spark: staged rows become visible once, whole, and by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.option_values import OptionError
from moldau.spark.tables.changes import NullKey
from moldau.spark.tables.databases.target import readable_database
from moldau.spark.tables.reading import Part
from moldau.spark.tables.schemas import SchemaMismatch
from moldau.spark.tables.staging import Staged, StagingArea, unnumbered_area
from moldau.spark.tables.writing import Step, Target
from tests.spark.tables.sinks import Sink

pytestmark = pytest.mark.xdist_group("tables")

ORDERS = StructType([StructField("id", LongType()), StructField("state", StringType())])
CHANGES = StructType([*ORDERS.fields, StructField("op", StringType())])


def batch(*rows: tuple[Any, ...]) -> pa.RecordBatch:
    fields = [("id", pa.int64()), ("state", pa.string()), ("op", pa.string())][: len(rows[0])]
    columns = [pa.array(column, kind) for column, (_, kind) in zip(zip(*rows, strict=True), fields, strict=True)]
    return pa.record_batch(columns, pa.schema(fields))


def write(target: Target, number: int, *rows: tuple[Any, ...], overwrite: bool = False) -> None:
    area = StagingArea("a query", number)
    target.apply([target.stage([batch(*rows)], area)], Step(area, overwrite=overwrite))


def test_a_batch_counts_once(sink: Sink) -> None:
    target = sink.target(ORDERS)
    write(target, 0, (1, "new"), (2, "new"))
    write(target, 1, (3, "new"))
    write(target, 1, (3, "new"))
    write(target, 0, (1, "new"), (2, "new"))
    assert sink.ids() == [1, 2, 3]
    assert sink.staged() == []


def test_queries_are_counted_apart(sink: Sink) -> None:
    target = sink.target(ORDERS)
    for query in ("one", "another"):
        area = StagingArea(query, 0)
        target.apply([target.stage([batch((1, query))], area)], Step(area, overwrite=False))
    assert sorted(row["state"] for row in sink.rows()) == ["another", "one"]


def test_without_a_number_every_write_counts(sink: Sink) -> None:
    target = sink.target(ORDERS)
    for _ in range(2):
        area = unnumbered_area()
        target.apply([target.stage([batch((1, "new"))], area)], Step(area, overwrite=False))
    assert sink.ids() == [1, 1]


def test_the_last_row_of_a_key_counts(sink: Sink) -> None:
    target = sink.target(ORDERS, keys="id")
    write(target, 0, (1, "new"), (2, "new"), (1, "paid"))
    write(target, 1, (2, "paid"), (3, "new"), (2, "sent"))
    assert [(row["id"], row["state"]) for row in sink.rows()] == [(1, "paid"), (2, "sent"), (3, "new")]
    assert sink.staged() == []


def test_an_ordering_column_says_which_row_is_last(sink: Sink) -> None:
    target = sink.target(ORDERS, keys="id", orderBy="state")
    write(target, 0, (1, "b"), (1, "c"), (1, None), (1, "a"))
    assert [row["state"] for row in sink.rows()] == ["c"]


def test_rows_are_deleted_by_their_operation(sink: Sink) -> None:
    target = sink.target(CHANGES, keys="id", operationColumn="op")
    write(target, 0, (1, "new", "c"), (2, "new", "c"), (3, "new", "c"))
    write(
        target, 1, (1, None, "d"), (2, "paid", "u"), (3, "x", "d"), (3, "back", "c"), (4, None, "d"), (5, "new", None)
    )
    assert sink.rows() == [{"id": 2, "state": "paid"}, {"id": 3, "state": "back"}, {"id": 5, "state": "new"}]


def test_overwriting_leaves_only_the_new_rows(sink: Sink) -> None:
    target = sink.target(ORDERS)
    write(target, 0, (1, "new"), (2, "new"))
    write(target, 1, (7, "new"), overwrite=True)
    write(target, 1, (7, "new"), overwrite=True)
    assert sink.ids() == [7]


def test_what_killed_tasks_left_goes_with_the_commit(sink: Sink) -> None:
    target, area = sink.target(ORDERS), StagingArea("a query", 0)
    for _ in range(3):
        target.stage([batch((1, "never committed"))], area)
    assert len(sink.staged()) == 3
    write(target, 0, (1, "new"))
    assert (sink.ids(), sink.staged()) == ([1], [])


def test_a_failed_batch_leaves_nothing(sink: Sink) -> None:
    target, area = sink.target(ORDERS), StagingArea("a query", 0)
    target.stage([batch((1, "of a task that was killed"))], area)
    target.discard([target.stage([batch((1, "new"))], area)], area)
    assert (sink.ids(), sink.staged()) == ([], [])


def test_discarding_what_was_committed_after_all_does_no_harm(sink: Sink) -> None:
    """A driver that lost the answer to its commit calls the batch failed."""
    target, area = sink.target(ORDERS), StagingArea("a query", 0)
    staged = [target.stage([batch((1, "new"))], area)]
    target.apply(staged, Step(area, overwrite=False))
    target.discard(staged, area)
    assert sink.ids() == [1]


def test_a_task_without_rows_stages_nothing(sink: Sink) -> None:
    target, area = sink.target(ORDERS), StagingArea("a query", 0)
    empty = target.stage([], area)
    assert empty == Staged(area)
    target.apply([empty], Step(area, overwrite=False))
    write(target, 0, (1, "new"))
    assert sink.ids() == [1]


def test_a_null_key_is_refused(sink: Sink) -> None:
    target = sink.target(ORDERS, keys="id")
    with pytest.raises(NullKey, match="'id' is one of the keys"):
        write(target, 0, (1, "new"), (None, "new"))
    assert (sink.ids(), sink.staged()) == ([], [])


def test_a_frame_with_an_unknown_column_is_refused(sink: Sink) -> None:
    sink.target(ORDERS)
    with pytest.raises(SchemaMismatch, match="the table has no column 'op'"):
        sink.target(CHANGES)


@pytest.mark.parametrize("kind", ["delta", "iceberg", "postgresql"])
def test_a_frame_of_another_type_is_refused(kind: str, make_sink: Callable[[str], Sink]) -> None:
    sink = make_sink(kind)
    sink.target(ORDERS)
    with pytest.raises(SchemaMismatch, match="id"):
        sink.target(StructType([StructField("id", StringType()), StructField("state", StringType())]))


def test_a_narrower_frame_is_taken(sink: Sink) -> None:
    sink.target(ORDERS)
    target, area = sink.target(StructType([StructField("id", IntegerType())])), StagingArea("a query", 0)
    staged = target.stage([pa.record_batch({"id": pa.array([1], pa.int32())})], area)
    target.apply([staged], Step(area, overwrite=False))
    assert sink.rows() == [{"id": 1, "state": None}]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"mode": "merge"}, "mode = 'merge': allowed are append, upsert"),
        ({"mode": "upsert"}, "needs keys"),
        ({"keys": "number"}, "the frame has no column 'number'; it has 'id', 'state'"),
        ({"orderBy": "id"}, "orderBy has no meaning with mode='append'"),
        ({"key": "id"}, "option 'key' is not known here"),
        ({"delivery": "sometimes"}, "allowed are exactly-once, at-least-once"),
        ({"batchId": "7"}, "batchId needs queryId"),
    ],
)
def test_wrong_options_are_named(sink: Sink, options: dict[str, str], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        sink.target(ORDERS, **options)


@pytest.mark.parametrize(
    ("kind", "name", "complaint"),
    [
        ("sqlite", "SQLITE_orders", "allowed is a name that doesn't begin with sqlite_"),
        ("sqlite", "shop.orders", "allowed in SQLite is TABLE or main.TABLE"),
        ("sqlite", "temp.orders", "allowed in SQLite is TABLE or main.TABLE"),
        ("sqlite", "orders\0", "allowed are characters of Unicode, NUL"),
        ("sqlite", "moldau_staging_1", "allowed is any table but this sink's own: moldau_progress and"),
        ("postgresql", "moldau_progress", "allowed is any table but this sink's own: moldau_progress and"),
        ("postgresql", "orders.", "allowed is TABLE or SCHEMA.TABLE, neither of them empty"),
        ("postgresql", " ", "allowed is TABLE or SCHEMA.TABLE, neither of them empty"),
        ("postgresql", "o" * 64, "allowed in PostgreSQL are 63 bytes of UTF-8, this has 64"),
        ("postgresql", "é" * 32, "allowed in PostgreSQL are 63 bytes of UTF-8, this has 64"),
        ("postgresql", "nowhere.orders", 'a table that the database makes or has: schema "nowhere" does not exist'),
    ],
)
def test_what_no_table_can_be_called(kind: str, name: str, complaint: str, make_sink: Callable[[str], Sink]) -> None:
    with pytest.raises(OptionError) as refused:
        make_sink(kind).target(ORDERS, dbtable=name)
    assert str(refused.value).startswith(f"option dbtable = {name!r}: ")
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("kind", "name"), [("sqlite", "o" * 64), ("sqlite", "main.orders"), ("postgresql", "é" * 31)])
def test_unusual_names_are_taken(kind: str, name: str, make_sink: Callable[[str], Sink]) -> None:
    sink = make_sink(kind)
    write(sink.target(ORDERS, dbtable=name), 0, (1, "new"))
    readable = readable_database({"url": sink.options["url"], "dbtable": name})
    assert [row["id"] for one in readable.batches(Part(None)) for row in one.to_pylist()] == [1]


def test_a_database_that_is_not_there_is_named(make_sink: Callable[[str], Sink]) -> None:
    with pytest.raises(NoAnswer, match=r"^option url: the database can't be reached: .*Connection refused$"):
        make_sink("sqlite").target(ORDERS, url="postgresql://moldau@127.0.0.1:1/shop")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_upsert_needs_a_unique_key_in_a_database(kind: str, make_sink: Callable[[str], Sink]) -> None:
    sink = make_sink(kind)
    sink.target(ORDERS)
    with pytest.raises(OptionError, match="needs a primary key or unique index"):
        sink.target(ORDERS, keys="id")
    sink.execute(f"create unique index by_id_{sink.options['dbtable']} on {sink.options['dbtable']} (id)")
    write(sink.target(ORDERS, keys="id"), 0, (1, "new"), (1, "paid"))
    assert sink.rows() == [{"id": 1, "state": "paid"}]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nested_columns_are_no_database_columns(kind: str, make_sink: Callable[[str], Sink]) -> None:
    with pytest.raises(SchemaMismatch, match="'tags' is list"):
        make_sink(kind).target(StructType([StructField("tags", ArrayType(StringType()))]))

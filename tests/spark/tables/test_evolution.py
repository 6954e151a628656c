"""Tables that grow with their frames: columns are added and types widened if that is asked for, and nothing else."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from moldau.spark.option_values import OptionError
from moldau.spark.tables.lakes import ColumnsChanged
from moldau.spark.tables.schemas import SchemaMismatch
from moldau.spark.tables.staging import StagingArea
from moldau.spark.tables.writing import Step
from tests.spark.tables.frames import batch, frame
from tests.spark.tables.frames import write as write_batch
from tests.spark.tables.sinks import Sink

pytestmark = pytest.mark.xdist_group("tables")

KINDS_WITH_TYPES = ("delta", "iceberg", "postgresql")


def write(sink: Sink, number: int, ddl: str, *rows: tuple[Any, ...], **options: str) -> None:
    write_batch(sink.target(frame(ddl), mergeSchema="true", **options), number, batch(ddl, *rows))


@pytest.mark.parametrize("keys", ["", "id"])
def test_a_column_is_added(sink: Sink, keys: str) -> None:
    write(sink, 0, "id bigint, state string", (1, "new"), (2, "new"), keys=keys)
    write(sink, 1, "id bigint, price double, state string", (3, 1.5, "new"), keys=keys)
    write(sink, 2, "id bigint, state string", (4, "old query"), keys=keys)
    assert sink.rows() == [
        {"id": 1, "state": "new", "price": None},
        {"id": 2, "state": "new", "price": None},
        {"id": 3, "state": "new", "price": 1.5},
        {"id": 4, "state": "old query", "price": None},
    ]


def test_without_the_option_nothing_is_added(sink: Sink) -> None:
    sink.target(frame("id bigint"))
    with pytest.raises(SchemaMismatch, match=r"no column 'price'.*With mergeSchema=true columns are added"):
        sink.target(frame("id bigint, price double"))
    with pytest.raises(OptionError, match="option mergeSchema = 'yes': allowed are true and false"):
        sink.target(frame("id bigint"), mergeSchema="yes")


@pytest.mark.parametrize("kind", KINDS_WITH_TYPES)
def test_types_are_widened(kind: str, make_sink: Callable[[str], Sink]) -> None:
    sink = make_sink(kind)
    write(sink, 0, "id int, weight float, price decimal(6 2)", (1, 0.5, Decimal("1234.56")))
    wide = "id bigint, weight double, price decimal(12 2)"
    write(sink, 1, wide, (1 << 40, 0.1, Decimal("1234567890.12")))
    rows = sorted(sink.rows(), key=lambda row: int(row["id"]))
    assert [(row["id"], row["weight"]) for row in rows] == [(1, 0.5), (1 << 40, 0.1)]
    assert [Decimal(str(row["price"])) for row in rows] == [Decimal("1234.56"), Decimal("1234567890.12")]
    # A frame that was not changed goes on.
    write(sink, 2, "id int, weight float", (2, 0.25))
    assert sorted(sink.ids()) == [1, 2, 1 << 40]


def test_a_partitioned_delta_table_is_widened_by_files_anew(make_sink: Callable[[str], Sink]) -> None:
    """Its files have the types that the log names, so that any reader takes them."""
    sink = make_sink("delta")
    days = [datetime.date(2026, 1, day) for day in (1, 2)]
    write(sink, 0, "id int, day date", (1, days[0]), (2, days[1]), partitionBy="day")
    write(sink, 1, "id bigint, day date", (1 << 40, days[0]))
    table = DeltaTable(sink.options["path"])
    assert {
        str(fragment.physical_schema.field("id").type) for fragment in table.to_pyarrow_dataset().get_fragments()
    } == {"int64"}
    asked = "select id from kept where day = date '2026-01-01' and id > 1000"
    found = pa.table(QueryBuilder().register("kept", table).execute(asked).read_all())
    assert found["id"].to_pylist() == [1 << 40]
    assert table.transaction_version("a query") == 1


@pytest.mark.parametrize("kind", KINDS_WITH_TYPES)
def test_other_types_are_refused_in_words(kind: str, make_sink: Callable[[str], Sink]) -> None:
    sink = make_sink(kind)
    write(sink, 0, "id bigint, at timestamp", (1, datetime.datetime(2026, 1, 1)))
    with pytest.raises(SchemaMismatch, match=r"doesn't fit table") as refused:
        sink.target(frame("id string, at timestamp, more string"), mergeSchema="true")
    assert "id" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert list(sink.rows()[0]) == ["id", "at"], "a frame that is refused changes nothing"


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_narrower_column_keeps_the_wider_type(kind: str, make_sink: Callable[[str], Sink]) -> None:
    sink = make_sink(kind)
    write(sink, 0, "id bigint", (1 << 40,))
    write(sink, 1, "id int", (1,))
    assert sink.ids() == [1, 1 << 40]
    assert sink.target(frame("id int")).lake.layout.schema.field("id").type == pa.int64()  # type: ignore[attr-defined]


def test_queries_that_add_columns_at_once_all_get_theirs(sink: Sink) -> None:
    sink.target(frame("id bigint"))
    failures: list[BaseException] = []

    def add(name: str) -> None:
        try:
            sink.target(frame(f"id bigint, {name} string"), mergeSchema="true")
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=add, args=(name,)) for name in ("one", "another", "third")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    write(sink, 0, "id bigint, one string, another string, third string", (1, "a", "b", "c"))
    assert sink.rows() == [{"id": 1, **{name: sink.rows()[0][name] for name in ("one", "another", "third")}}]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_batch_that_was_staged_before_a_change_of_types_is_run_again(
    kind: str, make_sink: Callable[[str], Sink]
) -> None:
    sink, area = make_sink(kind), StagingArea("a query", 0)
    target = sink.target(frame("id int"))
    staged = [target.stage([pa.record_batch({"id": pa.array([1], pa.int32())})], area)]
    sink.target(frame("id bigint"), mergeSchema="true")
    with pytest.raises(ColumnsChanged, match="column 'id' of the table has changed while this batch was written"):
        target.apply(staged, Step(area, overwrite=False))
    target.discard(staged, area)
    assert (sink.ids(), sink.staged()) == ([], [])

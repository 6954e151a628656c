"""The rows of a few keys are the same whether Spark finds them or we do."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.spark.pipelines.loading import load
from moldau.spark.pipelines.running.joining.keys import Lookup
from moldau.spark.pipelines.running.joining.states import TableState
from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = """
    set bootstrap.servers = '{bootstrap}';
    create stream orders from topic '{topic}';
    create table customers from topic '{topic}' key ({keys})
        with (valueFormat = json, valueSchema = '{columns}', includeHeaders = true{said});
    create sink all into topic 'nowhere' as select o.key, c.name from orders o join customers c on c.id = o.key;
"""
# One of each kind that Arrow and Parquet have their own ways with.
COLUMNS = {
    "name string": "",
    "since timestamp": "2026-01-31T12:00:00.123456Z",
    "of_old timestamp": "1066-10-14T09:00:00Z",
    "local_time timestamp_ntz": "1066-10-14T09:00:00",
    "born date": "1582-10-10",
    "price decimal(12, 3)": 123456789.123,
    "precise decimal(30, 3)": 1.5,
    "small tinyint": -7,
    "ratio float": 0.5,
    "tags array<string>": ["a", None],
    "stays array<struct<town: string, since: timestamp>>": [{"town": "Brno", "since": "2026-01-31T12:00:00Z"}],
    "sizes map<string, double>": {"left": 1.5},
}
YEAR_12000_MS = 316_516_204_800_000
ASKED = ("ann", "bob", "eve", "fay", "gus", "nobody")


def test_few_rows_are_those_that_spark_finds(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topic = topics.create(partitions=2)
    state = _state(topics, topic, tmp_path, columns=", ".join(("id string", *COLUMNS)))

    def put(key: str | None, id: str | None, name: str = "", *, partition: int = 0) -> None:
        row = {column.split()[0]: value for column, value in COLUMNS.items()} | {"id": id, "name": name}
        value = None if id is None else json.dumps(row)
        topics.produce(topic, [value], key=key, partition=partition, headers=[("from", b"test")])

    for name in ("ann", "bob", "eve", "fay", "zoe"):
        put(name, name, "before")
    put("another key", "gus", "older")
    put(None, "gus", "newer, and nobody's successor", partition=1)
    found = [_rows(spark, state, batch=0)]
    put("ann", "ann", "after")
    put("bob", None)
    put("eve", "fay", "in the place of eve", partition=0)
    put("fay", "fay", "of another partition, so both are kept", partition=1)
    put("another key", None)
    found.append(_rows(spark, state, batch=1))
    put("ann", "somebody else")
    found.append(_rows(spark, state, batch=2))
    assert [sorted(rows) for rows in found] == [
        ["ann", "bob", "eve", "fay", "gus"],
        ["ann", "fay", "gus"],
        ["fay", "gus"],
    ]
    assert found[1]["ann"]["name"] == "after"
    put("hal", "hal", "came after the snapshot")
    assert list(_rows(spark, state, batch=3, asked=("hal",))) == ["hal"]
    assert _rows(spark, state, batch=4, asked=("nobody",)) == {}


@pytest.mark.parametrize(
    "parts",
    [
        {"list array<string>": ["a", "b"], "group struct<town: string>": {"town": "Brno"}},
        {"ratio double": "NaN"},
        {"day date": "2026-01-31", "at timestamp": "2026-01-31T12:00:00Z", "price decimal(30, 3)": 1.5},
    ],
    ids=("nested", "float", "plain"),
)
def test_keys_may_have_any_type_and_records_any_time(
    spark: SparkSession, topics: Topics, tmp_path: Path, parts: dict[str, Any]
) -> None:
    """Python has no times beyond the year 9999, no value that a NaN is equal to, and no list that is a key."""
    topic = topics.create(config={"message.timestamp.after.max.ms": str(2**63 - 1)})
    key = {part.split()[0]: value for part, value in parts.items()}
    columns = ", ".join(("id string", "name string", *parts))
    state = _state(topics, topic, tmp_path, columns=columns, keys=", ".join(("id", *key)))
    for name, time_ms in {"older": YEAR_12000_MS, "newest": YEAR_12000_MS + 2, "newer": YEAR_12000_MS + 1}.items():
        topics.produce(topic, [json.dumps({"id": "ann", "name": name, **key})], key=name, timestamp=time_ms)
    table = state.pinned(spark, 0)
    frame = spark.createDataFrame([("ann",)], "id string")
    for values in (None, [("ann",)]):
        found = table.rows(spark, Lookup(("id",), frame, values)).where(" and ".join(map("{} is not null".format, key)))
        assert [row["name"] for row in found.select("name").collect()] == ["newest"]


def test_a_key_with_a_format_goes_by_its_meaning(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """Other bytes of it are in another partition; a member that may not be null is none of the table's affair."""
    topic = topics.create(partitions=2)
    columns = "id string, name string, place struct<town: string not null>"
    said = ", keyFormat = json, keySchema = 'id string not null'"
    state = _state(topics, topic, tmp_path, columns=columns, said=said)
    times_ms = itertools.count(1_767_225_600_000)

    def put(id: str, name: str | None, *, partition: int) -> None:
        row = None if name is None else json.dumps({"id": id, "name": name, "place": {"town": "Brno"}})
        key = " " * partition + json.dumps({"id": id})
        topics.produce(topic, [row], key=key, partition=partition, timestamp=next(times_ms))

    for name in ("ann", "bob", "eve"):
        put(name, "before", partition=0)
    put("bob", "after", partition=1)
    put("eve", None, partition=1)
    found = [_rows(spark, state, batch=0)]
    put("ann", None, partition=1)
    put("eve", "again", partition=0)
    put("fay", "first", partition=1)
    put("fay", "second", partition=0)
    found.append(_rows(spark, state, batch=1))
    assert [{name: row["name"] for name, row in rows.items()} for rows in found] == [
        {"ann": "before", "bob": "after"},
        {"bob": "after", "eve": "again", "fay": "second"},
    ]


def _state(topics: Topics, topic: str, folder: Path, *, columns: str, keys: str = "id", said: str = "") -> TableState:
    path = folder / "pipeline.sql"
    path.write_text(TABLE.format(bootstrap=topics.bootstrap, topic=topic, columns=columns, keys=keys, said=said))
    plan = load(path)
    (source,) = (one for one in plan.sources if one.name == "customers")
    return TableState(source, plan, str(folder / "checkpoint"))


def _rows(spark: SparkSession, state: TableState, batch: int, asked: Sequence[str] = ASKED) -> dict[str, Any]:
    table = state.pinned(spark, batch)
    assert table.files is not None
    frame = spark.createDataFrame([(name,) for name in asked], "id string")
    values = [(name,) for name in asked]
    by_spark = table.rows(spark, Lookup(("id",), frame, None))
    by_us = table.rows(spark, Lookup(("id",), frame, values))
    assert by_us.schema.simpleString() == by_spark.schema.simpleString()
    rows: dict[str, Any] = {row["id"]: row.asDict() for row in by_us.collect()}
    assert rows == {row["id"]: row.asDict() for row in by_spark.collect()}
    return rows

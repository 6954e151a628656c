"""Results and dead letters of one batch: each row in one place, with the record that it came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import table as arrow_table
from pyspark.sql import SparkSession

from moldau.spark.dead_letters.sending_back import Opened, open_letter, send_back
from moldau.spark.option_values import OptionError
from moldau.spark.pipelines.plan import PipelineError
from moldau.spark.pipelines.running.results.kept import write_whole
from moldau.spark.pipelines.running.runner import State
from tests.spark.pipelines.pipelines import Outcome, Pipelines
from tests.spark.tables.streams import forget_newest_commit
from tests.spark.topics import Row, Topics

ORDERS = "create stream orders from topic '{}' with (valueFormat = json, valueSchema = 'id bigint, item string');"


def rows(folder: Path, *names: str) -> list[tuple[Any, ...]]:
    if not folder.is_dir():
        return []
    return sorted(tuple(row[name] for name in names) for row in DeltaTable(str(folder)).to_pyarrow_table().to_pylist())


def opened(letter: Row) -> Opened:
    found = open_letter(list(letter.headers))
    assert found is not None
    return found


def test_a_row_is_in_one_place_though_the_table_changes_and_the_batch_runs_again(
    topics: Topics, pipelines: Pipelines
) -> None:
    orders, prices, lake = topics.create("orders"), pipelines.folder / "prices", pipelines.folder / "lake"
    name = topics.name("shop").replace("-", "_")
    path = pipelines.written(
        f"""{ORDERS.format(orders)}
        create table prices from delta 'prices';
        create view priced as select o.*, p.price from orders o left join prices p on o.item = p.item;
        expect has_price on priced check (price is not null) otherwise dead letter;
        create view cheap as select * from priced;
        expect is_cheap on cheap check (price < 1) otherwise warn;
        create sink lake into delta 'lake' as select id, item, price from cheap;
        create sink copies into topic '{name}.copies' as select id from priced;
        """,
        f"{name}.sql",
    )
    write_deltalake(str(prices), arrow_table({"item": ["tea"], "price": [2.0]}))
    topics.produce(orders, ['{"id": 1, "item": "tea"}'])
    gold = b'{"item":  "gold", "id": 2, "unknown": [1]}'
    topics.produce(orders, [gold], key=b"k2", headers=[("trace", b"\xff")], timestamp=1_700_000_000_000)
    lake.write_text("no table can be made here")
    letters_topic = f"{name}.priced.dead-letters"

    def letters_are_there(outcome: Outcome) -> None:
        if outcome.of("copies").state is State.DONE and len(topics.rows(letters_topic)) == 2:
            outcome.runner.stop()

    outcome = pipelines.run(path, restarts_max=None, watch=letters_are_there)
    assert outcome.of("copies").broken == {"priced.has_price": 1}
    # Both letters are written, and the result of one; and now everything would be judged the other way.
    lake.unlink()
    write_deltalake(str(prices), arrow_table({"item": ["gold"], "price": [9.0]}), mode="overwrite")
    forget_newest_commit(pipelines.folder / ".moldau/pipelines" / name / "checkpoints" / "copies")
    outcome = pipelines.run(path)
    assert outcome.ended_well, outcome.said
    assert outcome.of("lake").broken["cheap.is_cheap"] == 1
    assert rows(lake, "id", "price") == [(1, 2.0)]
    assert topics.values(f"{name}.copies") == [b'{"id":1}']

    letters = topics.rows(letters_topic)
    assert {(row.value, row.key, opened(row).reason) for row in letters} == {
        (gold, b"k2", "has_price: price is not null")
    }
    assert sorted(opened(row).query for row in letters) == [f"{name}.copies", f"{name}.lake"]
    assert {(opened(row).offset, opened(row).timestamp_ms) for row in letters} == {(1, 1_700_000_000_000)}
    sent = send_back((("bootstrap.servers", topics.bootstrap),), letters_topic)
    assert (sent.by_topic, sent.repeated) == ({orders: 1}, 1)
    back = topics.rows(orders)[-1]
    assert (back.value, back.key, back.headers) == (gold, b"k2", (("trace", b"\xff"),))


def test_groups_are_counted_of_the_rows_that_hold(topics: Topics, pipelines: Pipelines) -> None:
    orders, name = topics.create("orders", partitions=2), topics.name("shop").replace("-", "_")
    path = pipelines.written(
        f"""{ORDERS.format(orders)}
        expect has_id on orders check (id is not null) otherwise drop;
        expect has_item on orders check (item is not null) otherwise dead letter;
        expect positive on orders check (id > 0) otherwise dead letter;
        create view totals as select item, count(*) as n from orders group by item;
        create sink totals_lake into delta 'lake' key (item) upsert as select item, n from totals;
        """,
        f"{name}.sql",
    )

    def put(*orders_: dict[str, Any]) -> None:
        for number, order in enumerate(orders_):
            topics.produce(orders, [json.dumps(order)], partition=number % 2)

    put({"id": 1, "item": "tea"}, {"id": 2, "item": "tea"}, {"id": -3}, {"id": -4, "item": "tea"}, {"item": "tea"})
    outcome = pipelines.run(path)
    assert outcome.ended_well, outcome.said
    assert outcome.of("totals_lake").broken == {"orders.has_id": 1, "orders.has_item": 1, "orders.positive": 1}
    forget_newest_commit(pipelines.folder / ".moldau/pipelines" / name / "checkpoints" / "totals_lake")
    put({"id": 5, "item": "tea"}, {"id": 0, "item": "milk"})
    outcome = pipelines.run(path)
    assert outcome.ended_well, outcome.said
    assert rows(pipelines.folder / "lake", "item", "n") == [("tea", 3)]
    letters = topics.rows(f"{name}.orders.dead-letters")
    assert sorted((row.value, opened(row).reason.partition(":")[0]) for row in letters) == [
        (b'{"id": -3}', "has_item"),
        (b'{"id": -4, "item": "tea"}', "positive"),
        (b'{"id": 0, "item": "milk"}', "positive"),
    ]


def test_a_row_of_no_single_record_is_kept_as_json(topics: Topics, pipelines: Pipelines) -> None:
    orders, name = topics.create("orders"), topics.name("shop").replace("-", "_")
    path = pipelines.written(
        f"""{ORDERS.format(orders)}
        create view totals as select item, count(*) as n from orders group by item;
        expect few on totals check (n < 2) otherwise dead letter;
        create sink lake into delta 'lake' key (item) upsert as select item, n from totals;
        """,
        f"{name}.sql",
    )
    topics.produce(orders, ['{"id": 1, "item": "tea"}', '{"id": 2, "item": "milk"}', '{"id": 3, "item": "tea"}'])
    outcome = pipelines.run(path)
    assert outcome.ended_well, outcome.said
    assert rows(pipelines.folder / "lake", "item", "n") == [("milk", 1)]
    (letter,) = topics.rows(f"{name}.totals.dead-letters")
    assert (letter.value, opened(letter).place) == (b'{"item":"tea","n":2}', None)
    sent = send_back((("bootstrap.servers", topics.bootstrap),), f"{name}.totals.dead-letters")
    assert (sent.total, sent.without_record) == (0, 1)


def test_rows_that_only_one_executor_can_see_are_missed(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(3)
    write_whole(frame, str(tmp_path / "here"), lambda: 3)
    with pytest.raises(
        OptionError, match=r"^3 rows were written to .* and 2 are there: what a batch keeps needs a checkpoint"
    ):
        write_whole(frame, str(tmp_path / "there"), lambda: 2)
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_what_could_be_judged_twice_is_refused(topics: Topics, pipelines: Pipelines) -> None:
    write_deltalake(str(pipelines.folder / "prices"), arrow_table({"item": ["tea"], "price": [2.0]}))
    path = pipelines.written(
        f"""{ORDERS.format(topics.create("orders"))}
        create table prices from delta 'prices';
        create view priced as select o.*, p.price from orders o left join prices p on o.item = p.item;
        expect has_price on priced check (price is not null) otherwise dead letter;
        create sink totals into delta 'lake' key (item) upsert as select item, count(*) as n from priced group by item;
        """
    )
    with pytest.raises(PipelineError, match=r"sink totals aggregates.*after priced.*reads table prices"):
        pipelines.run(path)

"""A table is the same each time that its batch runs, and is not read again from its beginning."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from moldau.spark.options import SourceOptions
from moldau.spark.pipelines.running.joining import states
from moldau.spark.pipelines.running.joining.states import ChangesLost
from moldau.spark.registry_names import SCHEMA_ID
from tests.spark.pipelines.pipelines import Pipelines
from tests.spark.pipelines.running.joining.shops import Shop
from tests.spark.pipelines.running.joining.tables import COLUMNS, Customers
from tests.spark.topics import Topics


@pytest.fixture
def shop(topics: Topics, pipelines: Pipelines) -> Shop:
    return Shop(topics, pipelines)


def test_a_batch_that_runs_again_finds_the_customers_of_its_first_run(shop: Shop) -> None:
    shop.customer("Ann")
    shop.order(1, 2)
    shop.run()
    shop.forget_commit()
    shop.customer("Anna, who is somebody else by now")
    shop.order(3)
    shop.run()
    assert shop.joined() == [(1, "Ann"), (2, "Ann"), (3, "Anna, who is somebody else by now")]
    assert shop.files() == ["0.json", "1.json", "changes-1", "snapshot-0"]


def test_what_a_batch_that_runs_again_needs_may_be_gone_from_the_topic(shop: Shop) -> None:
    shop.customer("Ann")
    shop.order(1)
    shop.run()
    shop.customer("Anna")
    shop.order(2)
    shop.run()
    shop.forget_commit()
    shop.customer("somebody")
    shop.compact("customers", 2)
    shop.run()
    shop.order(3)
    shop.run()
    assert shop.joined() == [(1, "Ann"), (2, "Anna"), (3, "somebody")]


def test_tombstones_end_rows_and_many_changes_make_a_new_snapshot(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "CHANGES_MAX", 3)
    monkeypatch.setattr(states, "PINS_KEPT", 1)
    shop.customer("Ann")
    shop.customer("Bob", key="bob")
    shop.order(1)
    shop.run()
    shop.customer(None)
    shop.order(2)
    shop.order(3, customer="bob")
    shop.run()
    assert shop.files() == ["1.json", "changes-1", "snapshot-0"]
    shop.customer("Ann again")
    shop.customer(None, key="bob")
    shop.customer("Eve", key="eve")
    shop.order(4)
    shop.order(5, customer="bob")
    shop.order(6, customer="eve")
    shop.run()
    assert shop.files() == ["2.json", "snapshot-2"]
    assert shop.joined() == [(1, "Ann"), (2, None), (3, "Bob"), (4, "Ann again"), (5, None), (6, "Eve")]


def test_changes_that_were_deleted_before_they_were_read_end_the_query(shop: Shop, pipelines: Pipelines) -> None:
    shop.customer("Ann")
    shop.order(1)
    shop.run()
    shop.customer("Anna")
    shop.compact("customers", 2)
    shop.order(2)
    outcome = pipelines.run(shop.path)
    assert not outcome.ended_well
    (said,) = outcome.said
    assert "offsets 1 to 1, up to 1 record (deleted before they were read)" in said
    assert shop.joined() == [(1, "Ann")]


@pytest.fixture
def customers(topics: Topics, spark: SparkSession, tmp_path: Path) -> Customers:
    return Customers(topics, spark, tmp_path / "check point é")


def test_a_topic_that_was_made_anew_ends_the_query(customers: Customers) -> None:
    customers.put(ann="Ann", bob="Bob")
    customers.rows(customers.state(), 0)
    customers.make_anew()
    customers.put(eve="Eve", ann="Anna", carl="Carl")
    with pytest.raises(ChangesLost, match=r"table customers: .* partition 0: .*the topic was deleted and made anew"):
        customers.rows(customers.state(), 1)


def test_a_table_begins_anew_with_its_topic_where_that_may_be(customers: Customers) -> None:
    first = customers.state(failOnDataLoss="false")
    customers.put(ann="Ann", bob="Bob")
    assert customers.rows(first, 0) == [("ann", "Ann"), ("bob", "Bob")]
    customers.make_anew()
    customers.put(eve="Eve", ann="Anna", carl="Carl")
    second = customers.state(failOnDataLoss="false")
    assert customers.rows(second, 1) == [("ann", "Anna"), ("carl", "Carl"), ("eve", "Eve")]
    customers.put(eve="Eva")
    assert customers.rows(second, 2) == [("ann", "Anna"), ("carl", "Carl"), ("eve", "Eva")]
    assert customers.rows(customers.state(), 0) == [("ann", "Ann"), ("bob", "Bob")]


def test_a_column_that_is_declared_later_has_the_values_that_the_topic_has(customers: Customers) -> None:
    customers.put(ann={"name": "Ann", "town": "Prague"})
    first = customers.state()
    assert customers.rows(first, 0) == [("ann", "Ann")]
    customers.put(bob={"name": "Bob", "town": "Brno"})
    assert customers.rows(first, 1) == [("ann", "Ann"), ("bob", "Bob")]
    second = customers.state(f"{COLUMNS}, town string")
    again = customers.rows(second, 1)
    assert again == [("ann", "Ann", None), ("bob", "Bob", None)], "a batch that runs again has the rows that it had"
    customers.put(carl={"name": "Carl", "town": "Plzen"})
    assert customers.rows(second, 2) == [("ann", "Ann", "Prague"), ("bob", "Bob", "Brno"), ("carl", "Carl", "Plzen")]


def test_all_that_is_kept_is_in_the_checkpoint_whatever_its_name(customers: Customers, tmp_path: Path) -> None:
    customers.put(ann="Ann")
    assert customers.rows(customers.state(), 0) == [("ann", "Ann")]
    assert customers.files() == ["0.json", "snapshot-0"]
    assert [path.name for path in tmp_path.iterdir()] == [customers.folder.name]


def test_large_changes_are_kept_by_spark_and_not_in_memory(
    customers: Customers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "CHANGES_BYTES_MAX", 10_000)
    state = customers.state()
    customers.put(ann="Ann")
    customers.rows(state, 0)
    customers.put(ann="A" * 4_000)
    customers.rows(state, 1)
    customers.put(bob="B" * 9_000)
    assert [name for name, _ in customers.rows(state, 2)] == ["ann", "bob"]
    assert customers.files() == ["0.json", "1.json", "2.json", "changes-1", "snapshot-0", "snapshot-2"]


def test_of_two_drivers_at_one_batch_the_first_pin_counts(
    customers: Customers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them is stopped, is thought dead, and goes on where it was when its successor is some batches further."""
    stopped, successor = customers.state(), customers.state()
    customers.put(ann="Ann")
    customers.rows(stopped, 0)
    customers.put(bob="Bob")
    real, is_away = stopped._read, threading.Event()

    def read_and_be_stopped(options: SourceOptions) -> pa.Table | None:
        found = real(options)
        if not is_away.is_set():
            is_away.set()
            customers.put(carl="Carl")
            assert customers.rows(successor, 1) == [("ann", "Ann"), ("bob", "Bob"), ("carl", "Carl")]
            customers.put(eve="Eve")
            assert len(customers.rows(successor, 2)) == 4
        return found

    monkeypatch.setattr(stopped, "_read", read_and_be_stopped)
    assert customers.rows(stopped, 1) == [("ann", "Ann"), ("bob", "Bob"), ("carl", "Carl")]
    assert [key for key, _ in customers.rows(customers.state(), 2)] == ["ann", "bob", "carl", "eve"]


def test_the_same_columns_by_a_later_version_are_the_same_table() -> None:
    def pinned(schema_id: int, kind: str) -> dict[str, object]:
        field = {"name": "value", "type": kind, "nullable": True, "metadata": {SCHEMA_ID: schema_id}}
        return {"type": "struct", "fields": [field]}

    assert states._is_same(None, pinned(1, "string")), "a pin of an earlier version"
    assert states._is_same(pinned(1, "string"), pinned(2, "string"))
    assert not states._is_same(pinned(1, "string"), pinned(1, "long"))

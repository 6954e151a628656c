"""A table is the same each time that its batch runs, and is not read again from its beginning."""

from __future__ import annotations

import pytest

from moldau.spark.pipelines.running.joining import states
from tests.spark.pipelines.pipelines import Pipelines
from tests.spark.pipelines.running.joining.shops import Shop
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
    assert shop.files() == ["0.json", "1.json", "changes-1.arrow", "snapshot-0"]


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
    assert shop.files() == ["1.json", "changes-1.arrow", "snapshot-0"]
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

"""Streams joined with tables that are pinned for each batch: what is asked for by key, and what is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.spark.pipelines.running.joining import batches, keys
from tests.spark.pipelines.pipelines import Pipelines
from tests.spark.pipelines.running.joining.shops import JOINED, TABLE, Shop
from tests.spark.topics import Topics

WAIT_S_MAX = 240.0


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The keys that batches asked for."""
    seen: list[Any] = []
    real = keys.lookup_for

    def noting(uses: list[keys.Use]) -> keys.Lookup | None:
        found = real(uses)
        seen.append(sorted(found.values) if found and found.values is not None else found and found.columns)
        return found

    monkeypatch.setattr(batches, "lookup_for", noting)
    return seen


def test_two_streams_ask_one_table_for_the_keys_of_both(
    topics: Topics, pipelines: Pipelines, looked_up: list[Any]
) -> None:
    text = (
        TABLE
        + """
        create stream more from topic '{more}' with (valueFormat = json, valueSchema = 'number int, who string');
        create view named as
            select o.id, c.name from orders o join customers c on c.id = o.customer
            union all select m.number, k.name from more m left join customers k on upper(m.who) = k.id;
        expect has_name on named check (name is not null) otherwise drop;
        create sink joined into topic '{joined}' key (id) as select * from named;
    """
    )
    shop = Shop(topics, pipelines, text, partitions=2)
    for key in ("ann", "BOB", "eve"):
        shop.customer(key.title(), key=key)
    shop.order(1)
    shop.put("more", a={"number": 2, "who": "bob"}, b={"number": 3, "who": "nobody"})
    outcome = shop.run()
    assert shop.joined() == [(1, "Ann"), (2, "Bob")]
    assert looked_up == [[("BOB",), ("NOBODY",), ("ann",)]]
    assert outcome.of("joined").broken == {"named.has_name": 1}


def test_a_table_may_say_what_is_asked_of_the_next(topics: Topics, pipelines: Pipelines, looked_up: list[Any]) -> None:
    text = (
        TABLE
        + """
        create table streets from topic '{more}' key (street)
            with (valueFormat = json, valueSchema = 'street string, town string');
        create sink joined into topic '{joined}' key (id) as
            select o.id, s.town as name from orders o
            left join customers c on o.customer = c.id left join streets s on c.name = s.street;
    """
    )
    shop = Shop(topics, pipelines, text)
    shop.customer("Main Street")
    shop.customer("Side Street", key="bob")
    shop.put("more", a={"street": "Main Street", "town": "Prague"}, b={"street": "Side Street", "town": "Brno"})
    shop.order(1)
    shop.run()
    shop.customer("Side Street")
    shop.order(2)
    shop.run()
    assert shop.joined() == [(1, "Prague"), (2, "Brno")]
    assert looked_up == [[("ann",)], [("Main Street",)], [("ann",)], [("Side Street",)]]


@pytest.mark.parametrize(
    ("condition", "looks"), [("o.id > 0", 1), ("o.id > 0 and current_date() > date '2020-01-01'", 3)]
)
def test_a_plan_is_looked_at_once_unless_it_holds_the_time_of_day(
    topics: Topics, pipelines: Pipelines, looked_up: list[Any], condition: str, looks: int
) -> None:
    joined = JOINED.replace("on o.customer = c.id", f"on o.customer = c.id where {condition}")
    text = (TABLE + joined).replace("with (", "with (maxOffsetsPerTrigger = 1, ", 1)
    shop = Shop(topics, pipelines, text)
    shop.customer("Ann")
    shop.customer("Bob", key="bob")
    shop.order(1)
    shop.order(2, customer="bob")
    shop.order(3, customer="nobody")
    shop.run()
    assert shop.joined() == [(1, "Ann"), (2, "Bob"), (3, None)]
    assert len(looked_up) == looks


def test_more_keys_than_literals_are_joined_by_spark(
    topics: Topics, pipelines: Pipelines, looked_up: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "LITERALS_MAX", 1)
    shop = Shop(topics, pipelines)
    for key in ("ann", "bob", "eve"):
        shop.customer(key.title(), key=key)
    shop.order(1)
    shop.order(2, customer="bob")
    shop.run()
    shop.customer("Bobby", key="bob")
    shop.order(3)
    shop.order(4, customer="bob")
    shop.run()
    assert shop.joined() == [(1, "Ann"), (2, "Bob"), (3, "Ann"), (4, "Bobby")]
    assert looked_up == [("id",), ("id",)]


@pytest.mark.parametrize(
    "select",
    [
        "select o.id, c.name from orders o left join customers c on o.customer = lower(c.id)",
        "select o.id, (select max(name) from customers) as name from orders o join customers c on o.customer = c.id",
        "select o.id, c.name from orders o join customers c on o.customer = c.id join customers d on c.name = d.name",
    ],
    ids=["computed", "in a subquery too", "with itself"],
)
def test_what_is_not_joined_by_its_key_alone_is_read_whole(
    topics: Topics, pipelines: Pipelines, looked_up: list[Any], select: str
) -> None:
    shop = Shop(topics, pipelines, TABLE + f"create sink joined into topic '{{joined}}' key (id) as {select}")
    shop.customer("Ann")
    shop.customer("Aaron", key="aaron")
    shop.order(1)
    shop.run()
    shop.customer("Anna")
    shop.order(2)
    shop.run()
    assert shop.joined() == [(1, "Ann"), (2, "Anna")]
    assert looked_up == []


def test_a_query_that_aggregates_is_left_to_spark(topics: Topics, pipelines: Pipelines) -> None:
    text = (
        TABLE
        + """
        create sink joined into topic '{joined}' key (id) output update as
            select count(*) as id, c.name from orders o join customers c on o.customer = c.id group by c.name;
    """
    )
    shop = Shop(topics, pipelines, text)
    shop.customer("Ann")
    shop.order(1, 2)
    shop.run()
    shop.order(3)
    shop.run()
    assert shop.joined() == [(2, "Ann"), (3, "Ann")]
    assert not (shop.checkpoint / "tables").exists()


def test_change_events_as_a_table(topics: Topics, pipelines: Pipelines) -> None:
    text = (
        """
        create stream orders from topic '{orders}' with (valueFormat = json, valueSchema = 'id int, customer string');
        create table customers from topic '{customers}' changes key (id) with (valueSchema = 'id string, name string');
    """
        "create sink joined into topic '{joined}' key (id) as "
        "select o.id, c.name from orders o left join customers c on o.customer = c.id;"
    )
    shop = Shop(topics, pipelines, text)

    def change(operation: str, before: str | None, after: str | None) -> None:
        rows = [None if name is None else {"id": "ann", "name": name} for name in (before, after)]
        shop.put("customers", ann={"op": operation, "before": rows[0], "after": rows[1], "ts_ms": 1})

    change("c", None, "Ann")
    shop.order(1)
    shop.run()
    change("u", "Ann", "Anna")
    shop.order(2)
    shop.run()
    change("d", "Anna", None)
    shop.put("customers", ann=None)
    shop.order(3)
    shop.run()
    assert shop.joined() == [(1, "Ann"), (2, "Anna"), (3, None)]


@pytest.mark.timeout(900)
def test_a_pipeline_that_is_killed_joins_each_order_once(topics: Topics, pipelines: Pipelines) -> None:
    limited = TABLE.replace("'id int, customer string'", "'id int, customer string', maxOffsetsPerTrigger = 5")
    shop = Shop(topics, pipelines, limited + JOINED)
    topics.create_named(shop.names["joined"])
    shop.customer("Ann 0")
    sent = 0
    for kill in range(1, 3):
        # Each customer has orders of its own, however many of those before were joined when the kill came.
        shop.order(*range(sent, sent + 60))
        with running(shop.path, pipelines.bootstrap):
            deadline_s = time.monotonic() + WAIT_S_MAX
            while len(shop.joined()) < sent + 15:
                assert time.monotonic() < deadline_s, shop.joined()
                time.sleep(0.1)
        shop.customer(f"Ann {kill}")
        sent += 60
    shop.order(*range(sent, sent + 10))
    shop.run()
    joined = shop.joined()
    assert [order for order, _ in joined] == list(range(sent + 10))
    assert [name for _, name in joined] == sorted(name for _, name in joined)
    assert {name for _, name in joined} == {"Ann 0", "Ann 1", "Ann 2"}


@contextmanager
def running(path: Path, bootstrap: str) -> Iterator[None]:
    """As a user runs it; in the end all of it is killed at once, in mid-batch or wherever it is."""
    command = [sys.executable, "-m", "moldau", "pipeline", "run", str(path), "--master", "local[2]"]
    with path.with_suffix(".txt").open("ab") as said:
        process = subprocess.Popen(
            [*command, "--set", f"bootstrap.servers={bootstrap}"],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

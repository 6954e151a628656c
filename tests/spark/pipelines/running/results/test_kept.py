"""A batch that runs again gives what it gave before, whatever has become of tables, topics, the clock and the file."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import write_deltalake
from pyarrow import table as arrow_table

from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.plan import Kind, Plan, Source
from moldau.spark.pipelines.running.frames import sources
from moldau.spark.pipelines.running.frames.plan_frames import Frames, frames_of, in_order
from moldau.spark.pipelines.running.joining.batches import table_join
from moldau.spark.pipelines.running.results.decisions import DecidedBatches
from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDERS = """
    set bootstrap.servers = '{bootstrap}';
    create stream orders from topic '{orders}' with (valueFormat = json, valueSchema = 'id bigint, customer string');
    create table customers from topic '{customers}' key (id)
        with (valueFormat = json, valueSchema = 'id string, name string');
"""
POSITIVE = "expect positive on orders check (id > 0) otherwise dead letter;"
NAMED = """
    create sink named into topic 'named' as
        select o.id, c.name from orders o join customers c on o.customer = c.id;
"""


@dataclass
class Batches:
    """The batches of a query, without a query: each is what the topic has."""

    topics: Topics
    session: SparkSession
    folder: Path
    names: dict[str, str] = field(init=False)
    letters: list[list[Any]] = field(default_factory=list)
    results: list[list[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        topics = {name: self.topics.create(name) for name in ("orders", "customers")}
        self.names = {"bootstrap": self.topics.bootstrap, "prices": str(self.folder / "prices"), **topics}

    def put(self, topic: str, *values: dict[str, Any]) -> None:
        for value in values:
            self.topics.produce(self.names[topic], [json.dumps(value)], key=str(value["id"]))

    def decide(self, text: str, relation: str = "orders", number: int = 0) -> None:
        plan, frames = self._plan(text), Frames(self.session)
        for one in in_order(plan):
            if one.name in plan.upstream([relation]):
                frame = self._records(plan) if isinstance(one, Source) else frames.of(one.query)
                frames.add(one, frame, plan.expectations_of(one.name))
        batches = DecidedBatches(
            plan,
            plan.sinks[0],
            relation,
            "query",
            str(self.folder / "checkpoint"),
            self._noting(self.results),
            self._noting(self.letters),
        )
        batches(frames.judged[relation], number)

    def join(self, text: str, number: int = 0) -> None:
        plan = self._plan(text)
        found = table_join(frames_of(self.session, plan), plan, plan.sinks[0].query)
        assert found is not None
        found.delivery(str(self.folder / "checkpoint"), self._noting(self.results), Counter())(
            self._records(plan), number
        )

    def _plan(self, text: str) -> Plan:
        return parse(text.format(**self.names), "test.sql", name="test")

    def _records(self, plan: Plan) -> DataFrame:
        return sources.read_records(self.session, replace(plan.sources[0], kind=Kind.TABLE), plan)

    @staticmethod
    def _noting(seen: list[list[Any]]) -> Callable[[DataFrame, int], None]:
        """As sinks do, of a frame of its own: Spark counts nothing in one whose plan was looked at before."""
        return lambda frame, _: seen.append(sorted(tuple(row) for row in frame.select("*").collect()))


@pytest.fixture
def batches(topics: Topics, spark: SparkSession, tmp_path: Path) -> Batches:
    return Batches(topics, spark.newSession(), tmp_path)


def test_a_table_after_the_decision_is_the_same(batches: Batches) -> None:
    batches.put("customers", {"id": "ann", "name": "Ann"})
    batches.put("orders", {"id": 1, "customer": "ann"}, {"id": -2, "customer": "ann"})
    batches.decide(ORDERS + POSITIVE + NAMED)
    batches.put("customers", {"id": "ann", "name": "Anna"})
    batches.decide(ORDERS + POSITIVE + NAMED)
    assert batches.results == [[(1, "Ann")]] * 2
    batches.decide(ORDERS + POSITIVE + NAMED, number=1)
    assert batches.results[2] == [(1, "Anna")]
    assert [path.name for path in (batches.folder / "checkpoint/decided").iterdir()] == ["1"]


def test_a_letter_is_the_same_though_its_record_is_gone(batches: Batches) -> None:
    text = ORDERS + POSITIVE + "create sink plain into topic 'plain' as select id from orders;"
    batches.put("orders", {"id": -2, "customer": "ann"})
    batches.decide(text)
    batches.topics.delete_records(batches.names["orders"], 0, 1)
    batches.decide(text)
    assert batches.letters[0] == batches.letters[1]
    ((_, key, value, _),) = batches.letters[0]
    assert (bytes(key), json.loads(value)) == (b"-2", {"id": -2, "customer": "ann"})


def test_the_time_is_the_same(batches: Batches) -> None:
    batches.put("customers", {"id": "ann", "name": "Ann"})
    batches.put("orders", {"id": 1, "customer": "ann"})
    timed = "create sink plain into topic 'plain' as select id, now() as at, null as nothing from orders;"
    for _ in range(2):
        batches.decide(ORDERS + POSITIVE + timed)
    for _ in range(2):
        batches.join(ORDERS + NAMED.replace("o.id,", "o.id, now() as at, null as nothing,"))
    decided, again, joined, once_more = batches.results
    assert (decided, joined) == (again, once_more)
    assert decided[0][2] is None


def test_tables_of_elsewhere_are_the_same(batches: Batches) -> None:
    text = (
        ORDERS
        + "create table prices from delta '{prices}';"
        + "create sink priced into topic 'priced' as select o.id, p.price from orders o join prices p on o.id = p.id;"
    )
    batches.put("orders", {"id": 1, "customer": "ann"})
    for price in (2.0, 3.0):
        write_deltalake(batches.names["prices"], arrow_table({"id": [1], "price": [price]}), mode="overwrite")
        batches.join(text)
    assert batches.results == [[(1, 2.0)]] * 2
    batches.join(text, number=1)
    assert batches.results[2] == [(1, 3.0)]


def test_an_edited_pipeline_decides_anew(batches: Batches) -> None:
    text = ORDERS + (
        "create view numbers as select COLUMNS from orders;"
        "expect positive on numbers check (id > 0) otherwise dead letter;"
        "create sink plain into topic 'plain' as select id, n from numbers;"
    )
    batches.put("orders", {"id": 1, "customer": "ann"})
    for columns in ("id, id + 1 as n", "id, id + 2 as n", "id + 2 as n, id"):
        batches.decide(text.replace("COLUMNS", columns), "numbers")
    assert batches.results == [[(1, 2)], [(1, 3)], [(1, 3)]]


@pytest.mark.timeout(120)
def test_what_spark_leaves_out_is_not_waited_for(batches: Batches) -> None:
    rule = "expect called on customers check (name is not null) otherwise warn;"
    batches.put("customers", {"id": "ann", "name": "Ann"})
    batches.put("orders", {"id": -2, "customer": "ann"})
    batches.decide(ORDERS + POSITIVE + rule + NAMED)
    assert (len(batches.letters), batches.results) == (1, [[]])


def test_a_batch_leaves_nothing_behind_in_spark(batches: Batches) -> None:
    """What shall be counted is kept by Spark until it was: a frame that is only looked at must count nothing."""
    rule = "expect called on customers check (name is not null) otherwise warn;"
    batches.put("customers", {"id": "ann", "name": "Ann"})
    batches.put("orders", {"id": 1, "customer": "ann"})
    counted = batches.session._jsparkSession.observationManager()
    (kept,) = (each for each in counted.getClass().getDeclaredFields() if each.getName() == "observations")
    kept.setAccessible(True)
    for number in (0, 1):
        batches.join(ORDERS + rule + NAMED, number=number)
        # The frames that a query starts with leave one. Spark forgets a count in a thread of its own.
        deadline_s = time.monotonic() + 30
        while kept.get(counted).size() > number + 1 and time.monotonic() < deadline_s:
            time.sleep(0.05)
        assert kept.get(counted).size() == number + 1
    assert batches.results == [[(1, "Ann")]] * 2

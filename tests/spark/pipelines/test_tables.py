"""Whole pipelines with tables of Iceberg and PostgreSQL at both ends; Delta and SQLite are in the examples."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.pipelines.pipelines import Outcome, Pipelines
from tests.spark.tables.sinks import Sink, sink_of
from tests.spark.tables.streams import forget_newest_commit
from tests.spark.topics import Topics

KINDS = ("iceberg", "postgresql")
TABLES = ("prices", "sold", "customers", "totals")

PIPELINE = """
    create stream orders from topic '{orders}' with (valueFormat = json, onError = deadletter,
        valueSchema = 'id bigint, item string, amount decimal(10, 2), paid boolean, at timestamp');
    create stream changes from topic '{changes}' changes key (id) with (valueSchema = 'id bigint, name string');
    create table prices from {prices};
    create view priced as
        select o.*, cast(o.at as date) as day, p.price from orders o left join prices p on o.item = p.item;
    expect has_price on priced check (price is not null) otherwise dead letter;
    create sink sold into {sold} as select id, item, amount, paid, at, day, price from priced;
    create sink customers into {customers}
        as select id, name, _op, _changed_at from changes;
    create sink totals into {totals}
        as select item, count(*) as orders, sum(amount) as amount from orders group by item;
"""


class Shop:
    """The pipeline, its topics, and its four tables of one kind."""

    def __init__(self, kind: str, topics: Topics, pipelines: Pipelines, url: str | None) -> None:
        self._pipelines, self._topics = pipelines, topics
        self.name = topics.name("shop").replace("-", "_")
        self.tables = {table: sink_of(kind, pipelines.folder, name=f"{self.name}_{table}", url=url) for table in TABLES}
        self.topics = {name: topics.create(name) for name in ("orders", "changes")}
        clauses = {table: _clause(sink) for table, sink in self.tables.items()}
        clauses["customers"] = _clause(self.tables["customers"], "key (id) upsert", orderBy="_changed_at")
        clauses["totals"] = _clause(self.tables["totals"], "key (item) upsert")
        self.path = pipelines.written(PIPELINE.format(**self.topics, **clauses), f"{self.name}.sql")

    def put(self, topic: str, *values: Any) -> None:
        for value in values:
            text = value if isinstance(value, str) else json.dumps(value)
            self._topics.produce(self.topics[topic], [text], key=_key(value))

    def run(self) -> Outcome:
        outcome = self._pipelines.run(self.path)
        assert outcome.ended_well, outcome.said
        return outcome

    def forget_newest_commits(self) -> None:
        for sink in ("sold", "customers", "totals"):
            forget_newest_commit(self._pipelines.folder / ".moldau/pipelines" / self.name / "checkpoints" / sink)

    def letters(self) -> list[Any]:
        values = self._topics.values(f"{self.name}.priced.dead-letters")
        return [json.loads(value or b"null")["id"] for value in values]


def _key(value: Any) -> str | None:
    row = (value.get("after") or value.get("before")) if isinstance(value, dict) and "op" in value else None
    return str(row["id"]) if row else None


def _clause(sink: Sink, more: str = "", **options: str) -> str:
    where = {name: value for name, value in sink.options.items() if name not in ("table", "dbtable")} | options
    connector, table = ("iceberg", "table") if sink.kind == "iceberg" else ("database", "dbtable")
    said = ", ".join(f"{name} = '{value}'" for name, value in where.items())
    return f"{connector} '{sink.options[table]}' {more} with ({said})"


def order(number: int, item: str, amount: str, day: int) -> dict[str, Any]:
    return {"id": number, "item": item, "amount": amount, "paid": number % 2 == 1, "at": f"2026-01-{day:02}T10:00:00Z"}


def change(operation: str, number: int, name: str | None, ts_ms: int) -> dict[str, Any]:
    row = {"id": number, "name": name}
    return {
        "op": operation,
        "before": row if operation == "d" else None,
        "after": None if operation == "d" else row,
        "ts_ms": ts_ms,
    }


def rows(spark: SparkSession, sink: Sink, columns: str) -> list[tuple[Any, ...]]:
    frame = spark.read.format(sink.format).options(**sink.options).load()
    return sorted(tuple(row) for row in frame.selectExpr(*columns.split(", ")).collect())


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, topics: Topics, pipelines: Pipelines) -> Shop:
    url = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
    return Shop(request.param, topics, pipelines, url)


def test_streams_into_tables_each_row_once(shop: Shop, spark: SparkSession) -> None:
    prices = shop.tables["prices"]
    priced = spark.sql("select * from values ('tea', 2.5D), ('milk', 1.0D) as prices(item, price)")
    priced.write.format(prices.format).options(**prices.options).mode("append").save()
    shop.put("orders", order(1, "tea", "5.25", 1), order(2, "gold", "7.00", 1), "no JSON")
    shop.put("changes", change("c", 1, "ann", 1), change("c", 2, "bob", 2), change("u", 1, "anna", 3))
    shop.run()
    shop.forget_newest_commits()
    shop.put("orders", order(3, "milk", "0.75", 2), order(4, "tea", "1.00", 2))
    shop.put("changes", change("d", 2, "bob", 4), change("c", 3, "eve", 5), change("u", 3, "eva", 6))
    shop.run()

    sold = rows(spark, shop.tables["sold"], "id, item, amount, paid, price, day, cast(at as string)")
    assert sold == [
        (1, "tea", Decimal("5.25"), True, 2.5, datetime.date(2026, 1, 1), "2026-01-01 10:00:00"),
        (3, "milk", Decimal("0.75"), True, 1.0, datetime.date(2026, 1, 2), "2026-01-02 10:00:00"),
        (4, "tea", Decimal("1.00"), False, 2.5, datetime.date(2026, 1, 2), "2026-01-02 10:00:00"),
    ]
    assert rows(spark, shop.tables["customers"], "id, name") == [(1, "anna"), (3, "eva")]
    assert rows(spark, shop.tables["totals"], "item, orders, amount") == [
        ("gold", 1, Decimal("7.00")),
        ("milk", 1, Decimal("0.75")),
        ("tea", 2, Decimal("6.25")),
    ]
    assert shop.letters() == [2]
    assert [sink.staged() for sink in shop.tables.values()] == [[]] * len(TABLES)


def test_a_database_that_is_gone_is_told_in_one_line(topics: Topics, pipelines: Pipelines) -> None:
    words = topics.create("words")
    path = pipelines.written(f"""
        create stream words from topic '{words}' with (valueFormat = string);
        create sink copies into database 'copies' with (url = 'postgresql://moldau@127.0.0.1:1/shop')
            as select value from words;
    """)
    topics.produce(words, ["one"])
    outcome = pipelines.run(path, restarts_max=0)
    assert not outcome.ended_well
    (said,) = outcome.said
    assert said.startswith("pipeline.copies failed: option url: the database can't be reached: ")
    assert said.endswith("Connection refused")

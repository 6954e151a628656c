"""The examples, each run with records of the kind that it is about."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from moldau.spark.clients.librdkafka import ANSWER_S_MAX
from moldau.spark.dead_letters.sending_back import send_back
from moldau.spark.pipelines.loading import load
from tests.spark.pipelines.pipelines import Outcome, Pipelines
from tests.spark.topics import Topics

EXAMPLES = Path(__file__).parents[3] / "examples"


class Example:
    """A copy of an example in a folder of the test's own, about topics of the test's own."""

    def __init__(self, name: str, topics: Topics, pipelines: Pipelines) -> None:
        self._topics = topics
        self._pipelines = pipelines
        text = (EXAMPLES / name).read_text()
        named = sorted(set(re.findall(r"\btopic[ (]['\"]([\w.-]+)['\"]", text)))
        self.topic = {one: topics.name(one) for one in named}
        for one, unique in self.topic.items():
            text = re.sub(rf"(\btopic[ (]['\"]){re.escape(one)}(['\"])", rf"\g<1>{unique}\g<2>", text)
        self.folder = pipelines.folder
        # The pipeline's name is in the names of groups, transactions and dead letters.
        self.name = topics.name(Path(name).stem)
        self.path = pipelines.written(text, f"{self.name}{Path(name).suffix}")

    def put(self, topic: str, *values: dict[str, Any] | None, keys: str | None = None) -> None:
        name = self.topic[topic]
        if name not in self._topics.admin.list_topics(timeout=ANSWER_S_MAX).topics:
            self._topics.create_named(name)
        for value in values:
            key = {"key": str(value[keys])} if keys and value is not None else {}
            self._topics.produce(name, [None if value is None else json.dumps(value)], **key)

    def run(self) -> Outcome:
        outcome = self._pipelines.run(self.path)
        assert outcome.ended_well, outcome.said
        return outcome

    def results(self, topic: str) -> list[tuple[str, Any]]:
        rows = self._topics.rows(self.topic[topic])
        found = [((row.key or b"").decode(), json.loads(row.value or b"null")) for row in rows]
        return sorted(found, key=lambda one: (one[0], json.dumps(one[1], sort_keys=True)))


def test_click_sessions(topics: Topics, pipelines: Pipelines) -> None:
    example = Example("click_sessions.sql", topics, pipelines)

    def click(number: int, visitor: str, page: str, at: str) -> dict[str, Any]:
        return {"id": f"c{number}", "visitor": visitor, "page": page, "at": f"2026-01-01T{at}:00Z"}

    first = click(1, "ann", "/home", "10:00")
    example.put("clicks", first, first, click(2, "ann", "/cart", "10:20"), click(3, "bob", "/help", "10:05"))
    example.put("clicks", click(4, "ann", "/home", "11:10"), click(5, "eve", "/home", "14:00"))
    example.run()
    found = example.results("click-sessions")
    assert [(key, one["begun"][11:16], one["ended"][11:16], one["clicks"], one["landed_on"]) for key, one in found] == [
        ("ann", "10:00", "10:50", 2, "/home"),
        ("ann", "11:10", "11:40", 1, "/home"),
        ("bob", "10:05", "10:35", 1, "/help"),
    ]


def test_order_enrichment(topics: Topics, pipelines: Pipelines) -> None:
    example = Example("order_enrichment.sql", topics, pipelines)
    example.put(
        "customers",
        {"id": "c1", "name": "Ann", "country": "CZ"},
        {"id": "c1", "name": "Anna", "country": "DE"},
        {"id": "c2", "name": "Bob", "country": "AT"},
        keys="id",
    )
    topics.produce(example.topic["customers"], [None], key="c2")

    def order(number: int, customer: str, amount: float | None) -> dict[str, Any]:
        return {"id": f"o{number}", "customer": customer, "amount": amount, "at": "2026-01-01T10:00:00Z"}

    example.put("orders", order(1, "c1", 5.0), order(2, "c2", 7.5), order(3, "c1", None), order(4, "c1", -1.0))
    query = example.run().of("enriched_orders")
    assert [(key, one.get("name"), one.get("country")) for key, one in example.results("orders-enriched")] == [
        ("o1", "Anna", "DE"),
        ("o2", None, None),
    ]
    assert query.broken == {"enriched.has_amount": 2, "enriched.known_customer": 1}
    assert query.progress.lag == 0


def test_fraud_windows(topics: Topics, pipelines: Pipelines) -> None:
    example = Example("fraud_windows.sql", topics, pipelines)

    def payment(card: str, country: str, minute: int) -> dict[str, Any]:
        at = f"2026-01-01T10:{minute:02}:00Z"
        return {"id": f"{card}-{minute}", "card": card, "country": country, "amount": 10.0, "at": at}

    example.put("payments", *(payment("often", "CZ", minute) for minute in range(5)))
    example.put("payments", *(payment("far", country, minute) for minute, country in enumerate(("CZ", "DE", "FR"))))
    example.put("payments", payment("fine", "CZ", 1), payment("fine", "CZ", 2), payment("fine", "DE", 59))
    example.run()
    alerts = example.results("fraud-alerts")
    assert [(card, one["begun"][11:16], one["payments"], one["countries"]) for card, one in alerts] == [
        ("far", "09:55", 3, 3),
        ("far", "10:00", 3, 3),
        ("often", "09:55", 5, 1),
        ("often", "10:00", 5, 1),
    ]


def test_metrics_rollup(topics: Topics, pipelines: Pipelines) -> None:
    example = Example("metrics_rollup.sql", topics, pipelines)

    def measured(value: float, at: str) -> dict[str, Any]:
        return {"host": "a", "name": "load", "value": value, "at": f"2026-01-01T10:{at}Z"}

    example.put("metrics", measured(1.0, "00:10"), measured(3.0, "00:20"), measured(9.0, "01:05"))
    example.run()
    example.put("metrics", measured(8.0, "01:30"))
    example.run()
    with sqlite3.connect(example.folder / "metrics.db") as database:
        rows = database.execute("select measured, least, average, most from metrics_by_minute order by minute")
        assert rows.fetchall() == [(2, 1.0, 2.0, 3.0), (2, 8.0, 8.5, 9.0)]
    database.close()


def test_change_events(topics: Topics, pipelines: Pipelines) -> None:
    example = Example("change_events.sql", topics, pipelines)

    def row(number: int, name: str) -> dict[str, Any]:
        return {"id": number, "name": name, "email": f"{name}@example.org"}

    def change(operation: str, before: Any, after: Any, ts_ms: int) -> dict[str, Any]:
        return {"before": before, "after": after, "op": operation, "ts_ms": ts_ms, "source": {"db": "shop"}}

    example.put("shop.customers", change("r", None, row(1, "ann"), 1), change("c", None, row(2, "bob"), 2))
    example.put("shop.customers", change("u", row(1, "ann"), row(1, "anna"), 3), change("c", None, row(3, "eve"), 4))
    example.run()
    # A wrapped event, a deletion with the tombstone that follows it, and one that only the key tells the row of.
    example.put("shop.customers", {"schema": {"type": "struct"}, "payload": change("c", None, row(4, "dan"), 5)})
    example.put("shop.customers", change("d", row(2, "bob"), None, 6), None)
    gone = {"schema": {}, "payload": {"id": 3}}
    topics.produce(example.topic["shop.customers"], [json.dumps(change("d", None, None, 7))], key=json.dumps(gone))
    example.run()
    with sqlite3.connect(example.folder / "customers.db") as database:
        assert database.execute("select id, name from customers order by id").fetchall() == [(1, "anna"), (4, "dan")]
    database.close()


def test_topic_to_lake(topics: Topics, pipelines: Pipelines) -> None:
    example = Example("topic_to_lake.sql", topics, pipelines)

    def order(number: int, amount: float | None) -> dict[str, Any]:
        return {"id": f"o{number}", "customer": "c1", "amount": amount, "at": "2026-01-31T10:00:00Z"}

    example.put("orders", order(1, 5.0), order(2, None), order(3, 7.0))
    outcome = example.run()
    example.put("orders", order(4, 9.0))
    example.run()
    rows = DeltaTable(str(example.folder / "lake" / "orders")).to_pyarrow_table().to_pylist()
    assert sorted((one["id"], str(one["day"])) for one in rows) == [(f"o{n}", "2026-01-31") for n in (1, 3, 4)]
    assert outcome.of("orders_lake").broken == {"orders.is_an_order": 1}
    letters = topics.rows(f"{example.name}.orders.dead-letters")
    assert [json.loads(letter.value or b"")["id"] for letter in letters] == ["o2"]
    headers = {name.rpartition(".")[2]: (value or b"").decode() for name, value in letters[0].headers}
    assert headers["topic"] == example.topic["orders"]
    assert headers["offset"] == "1"
    assert headers["reason"] == "is_an_order: id is not null and amount >= 0"


def test_dead_letters_are_sent_back(topics: Topics, pipelines: Pipelines) -> None:
    example = Example("dead_letters.py", topics, pipelines)
    topic = example.topic["readings"]
    example.put("readings", {"sensor": "a", "celsius": 25.0}, {"sensor": "b", "celsius": "warm"})
    example.run()
    letters = f"{topic}.dead-letters"
    assert topics.values(letters) == [b'{"sensor": "b", "celsius": "warm"}']
    sent = send_back((("bootstrap.servers", topics.bootstrap),), letters)
    assert sent.by_topic == {topic: 1}
    # What was wrong is mended: the column takes text.
    example.path.write_text(example.path.read_text().replace("celsius double", "celsius string"))
    assert topics.values(topic)[-1] == b'{"sensor": "b", "celsius": "warm"}'
    rows = DeltaTable(str(example.folder / "lake" / "warm")).to_pyarrow_table().to_pylist()
    assert rows == [{"sensor": "a", "celsius": 25.0}]


def test_reading_jumps(topics: Topics, pipelines: Pipelines) -> None:
    """State goes from batch to batch, and from run to run."""
    example = Example("reading_jumps.py", topics, pipelines)
    provider = "spark.sql.streaming.stateStore.providerClass"
    settings = load(example.path, {}).settings

    def reading(sensor: str, celsius: float, minute: int) -> dict[str, Any]:
        return {"sensor": sensor, "celsius": celsius, "at": f"2026-01-01T10:{minute:02}:00Z"}

    pipelines.spark.conf.set(provider, settings[provider])
    try:
        # Within one batch they come in another order than they were made in.
        example.put("readings", reading("a", 20, 0), reading("a", 31, 2), reading("a", 29, 1), reading("b", 20, 0))
        example.run()
        example.put("readings", reading("b", 14.5, 3), reading("a", 30, 3))
        example.run()
    finally:
        pipelines.spark.conf.unset(provider)
    found = [(key, one["before"], one["celsius"]) for key, one in example.results("reading-jumps")]
    assert found == [("a", 20.0, 29.0), ("b", 20.0, 14.5)]

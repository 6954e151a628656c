"""Topics asked in SQL."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.spark.pipelines.plan import PipelineError
from moldau.spark.sql.refusals import Refused
from moldau.spark.sql.session import SqlSession
from moldau.spark.sql.staying import StayingStreams
from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[tuple[Any, ...]]


@pytest.fixture
def session(spark: SparkSession, topics: Topics, tmp_path: Path) -> SqlSession:
    return SqlSession(
        lambda: spark,
        client={"bootstrap.servers": topics.bootstrap, "error_cb": print, "log_level": 0},
        topics=lambda: sorted(topics.admin.list_topics(timeout=30).topics),
        streams=StayingStreams(tmp_path / "streams"),
    )


@pytest.fixture
def orders(topics: Topics) -> str:
    """A topic whose name is no SQL name."""
    name = topics.create("web.orders", partitions=2)
    topics.produce(
        name, [json.dumps({"id": n, "customer": f"c{n % 2}", "amount": n * 1.5, "tags": ["a"]}) for n in range(4)]
    )
    return name


def ask(session: SqlSession, text: str) -> list[tuple[tuple[str, ...], Rows]]:
    return [(result.columns, list(result.rows)) for result in session.execute(text)]


def test_a_topic_is_a_table_by_its_name(session: SqlSession, orders: str) -> None:
    columns, rows = ask(session, f"select * from `{orders}` order by id")[0]
    assert columns == ("amount", "customer", "id", "tags", "_key", "_topic", "_partition", "_offset", "_timestamp")
    assert [row[:4] for row in rows] == [(n * 1.5, f"c{n % 2}", n, ["a"]) for n in range(4)]
    grouped = ask(session, f"select customer, sum(amount) as s from `{orders}` group by customer order by 1;")
    assert grouped == [(("customer", "s"), [("c0", 3.0), ("c1", 6.0)])]


def test_each_question_sees_what_is_new(session: SqlSession, topics: Topics, orders: str) -> None:
    assert ask(session, f"select count(*) from `{orders}`")[0][1] == [(4,)]
    topics.produce(orders, [json.dumps({"id": 9, "colour": "red"})])
    assert ask(session, f"select count(*), max(colour) from `{orders}`")[0][1] == [(5, "red")]


def test_aborted_records_are_not_counted(session: SqlSession, topics: Topics, orders: str) -> None:
    topics.transaction(orders, [json.dumps({"id": 100})] * 5, commit=False)
    assert ask(session, f"select count(*), max(id) from `{orders}`")[0][1] == [(4, 3)]


def test_text_and_nothing_are_topics_too(session: SqlSession, topics: Topics) -> None:
    texts, empty = topics.create("texts"), topics.create("empty")
    topics.produce(texts, ["hello", "{not json"])
    assert ask(session, f"select value from `{texts}` order by value") == [(("value",), [("hello",), ("{not json",)])]
    columns, rows = ask(session, f"select * from `{empty}`")[0]
    assert (columns[0], rows) == ("value", [])


def test_definitions_last_for_the_session(session: SqlSession, orders: str) -> None:
    answers = list(
        session.execute(f"""
            create view large as select id from `{orders}` where amount > 2;
            create table newest from topic '{orders}' key (customer)
                with (valueFormat = json, valueSchema = 'id bigint, customer string');
            select count(*) from large;
            select count(*) from newest;
            describe large;
        """)
    )
    assert [answer.message for answer in answers[:2]] == [
        "large is there for this session",
        "newest is there for this session",
    ]
    assert [list(answer.rows) for answer in answers[2:]] == [[(2,)], [(2,)], [("id", "bigint")]]


def test_mistakes_are_told_in_one_line(session: SqlSession, orders: str) -> None:
    with pytest.raises(Refused, match=f"^there is no topic, stream, table or view {orders}s; is {orders} meant\\?$"):
        ask(session, f"select * from `{orders}s`")
    with pytest.raises(Refused, match="there is no topic, stream, table or view qqq; see: show topics"):
        ask(session, "select * from qqq")
    with pytest.raises(Refused, match=r"UNRESOLVED_COLUMN.* `prize` cannot be resolved") as unknown:
        ask(session, f"select prize from `{orders}`")
    assert "\n" not in str(unknown.value)
    with pytest.raises(Refused, match=r"^\[DIVIDE_BY_ZERO\] Division by zero"):
        ask(session, f"select id / 0 from `{orders}`")
    with pytest.raises(PipelineError, match="sql:1: "):
        ask(session, "selct 1")
    with pytest.raises(PipelineError, match="a query was expected here, found INSERT"):
        ask(session, f"insert into `{orders}` values (1)")


def test_following_goes_on_with_what_arrives(session: SqlSession, topics: Topics, orders: str) -> None:
    result = next(session.execute(f"select id from `{orders}` where id > 1", follow=True))
    rows = iter(result.rows)
    assert sorted([next(rows), next(rows)]) == [(2,), (3,)]
    topics.produce(orders, [json.dumps({"id": 7})])
    assert next(rows) == (7,)
    rows.close()  # type: ignore[attr-defined]
    # The name is a table again.
    assert ask(session, f"select count(*) from `{orders}`")[0][1] == [(5,)]


def test_counts_are_followed_as_they_change(session: SqlSession, topics: Topics, orders: str) -> None:
    asked = f"select count(*) as n from `{orders}` group by window(_timestamp, '1 day')"
    rows = iter(next(session.execute(asked, follow=True)).rows)
    assert next(rows) == (4,)
    topics.produce(orders, [json.dumps({"id": 7})])
    assert next(rows) == (5,)
    rows.close()  # type: ignore[attr-defined]


def test_conditions_narrow_what_is_read(session: SqlSession, topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that do not fit their columns end a question that reads them: what is asked beside them is answered."""
    name, now_ms = topics.create("narrow"), int(time.time() * 1000)
    hour_ms = 3_600_000
    ages_ms = (5 * hour_ms, 2 * hour_ms, hour_ms // 2, 3 * hour_ms, 0)  # not in order
    topics.produce(name, [json.dumps({"n": "ten"})], timestamp=now_ms - 9 * hour_ms)
    for number, age_ms in enumerate(ages_ms):
        topics.produce(name, [json.dumps({"n": number})], timestamp=now_ms - age_ms)
    # The format is guessed by the newest values, which shall not meet the oldest.
    monkeypatch.setattr("moldau.spark.sql.peeking.LOOKED_AT", len(ages_ms))

    def answer(where: str) -> list[int]:
        return sorted(row[0] for row in ask(session, f"select n from `{name}` where {where}")[0][1])

    with pytest.raises(Refused, match="ten"):
        answer("n >= 0")
    assert answer("_timestamp > now() - interval 1 hour") == [2, 4]
    assert answer("_timestamp >= now() - interval 4 hours and _partition = 0") == [1, 2, 3, 4]
    assert answer("_offset between 2 and 4") == [1, 2, 3]
    assert answer("_timestamp > now() + interval 1 hour") == []
    assert answer("_partition = 7") == []
    both = f"select n from `{name}` where _offset = 1 union all select n from `{name}` where _offset = 5"
    with pytest.raises(Refused, match="ten"):
        ask(session, both)


def test_small_and_large_topics_are_answered_alike(
    session: SqlSession, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small topic is read by the driver, a large one by Spark's workers."""
    typed, text = topics.create("typed", partitions=2), topics.create("text")
    for number in range(6):
        value = {"id": number, "amount": number / 4, "at": {"day": "mon", "tags": [None, "a"]}}
        topics.produce(typed, [json.dumps(value), None], key=b"k%d" % number, partition=number % 2)
    topics.produce(text, ["hello", None], timestamp=1_700_000_000_123)
    for topic in (typed, text):
        question = f"select * from `{topic}` order by _partition, _offset"
        small = ask(session, question)
        monkeypatch.setattr("moldau.spark.sql.small_topics.RECORDS_MAX", 0)
        assert ask(session, question) == small
        monkeypatch.undo()
        monkeypatch.setattr("moldau.spark.sql.small_topics.BYTES_MAX", 1)
        assert ask(session, question) == small
        monkeypatch.undo()
        assert len(small[0][1]) == (12 if topic == typed else 2)


def test_a_view_sees_what_is_new(session: SqlSession, topics: Topics, orders: str) -> None:
    ask(session, f"create view all_orders as select id from `{orders}`")
    assert ask(session, "select count(*) from all_orders")[0][1] == [(4,)]
    topics.produce(orders, [json.dumps({"id": 9})])
    assert ask(session, "select count(*) from all_orders")[0][1] == [(5,)]

"""Streams of XML, and XML written, by Spark's own functions."""

from __future__ import annotations

import pytest

from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.plan import Violation
from moldau.spark.pipelines.xml_values import with_rules
from tests.spark.pipelines.pipelines import Pipelines
from tests.spark.topics import Topics

SCHEMA = "id bigint, price decimal(10,2), tags array<string>, _currency string"
FITS = b"<order currency='EUR'><id>1</id><price>2.50</price><tags>a</tags><tags>b</tags></order>"
BROKEN = b"<order><id>2</id>"
NO_NUMBER = b"<order><id>two</id></order>"


@pytest.mark.parametrize(
    ("said", "expected"),
    [("", Violation.FAIL), (", onError = skip", Violation.DROP), (", onError = DeadLetter", Violation.DEAD_LETTER)],
)
def test_what_does_not_fit_is_judged_by_an_expectation(said: str, expected: Violation) -> None:
    text = f"create stream a from topic 'a' with (valueFormat = XML, valueSchema = 'id int'{said})"
    plan = with_rules(parse(text, "p.sql", name="p"))
    assert [(rule.on, rule.condition, rule.otherwise) for rule in plan.expectations] == [
        ("a", "_malformed is null", expected)
    ]
    assert "onError" not in plan.sources[0].endpoint.options


@pytest.mark.long
def test_xml_is_read_and_written_and_what_does_not_fit_is_kept(topics: Topics, pipelines: Pipelines) -> None:
    orders, out, rows = topics.create("xml_orders"), topics.name("xml_out"), topics.name("xml_rows")
    topics.produce(orders, [FITS, BROKEN, NO_NUMBER, b"<order><id>3</id></order>"])
    path = pipelines.written(f"""
        create stream orders from topic '{orders}'
            with (valueFormat = xml, valueSchema = '{SCHEMA}', onError = deadletter);
        create sink rows into topic '{rows}' as select * from orders;
        create sink written into topic '{out}' key id with (valueFormat = xml, 'xml.rowTag' = 'order')
            as select id, price * 2 as price, tags, _currency from orders;
    """)
    outcome = pipelines.run(path)
    assert outcome.ended_well, outcome.said
    assert set(topics.values(rows)) == {
        b'{"id":1,"price":2.50,"tags":["a","b"],"_currency":"EUR"}',
        b'{"id":3}',
    }
    assert set(topics.values(out)) == {
        b"<order><id>3</id></order>",
        b'<order currency="EUR"><id>1</id><price>5.00</price><tags>a</tags><tags>b</tags></order>',
    }
    letters = set(topics.values("pipeline.orders.dead-letters"))
    assert letters == {BROKEN, NO_NUMBER}


@pytest.mark.long
def test_by_default_a_record_that_does_not_fit_ends_the_query(topics: Topics, pipelines: Pipelines) -> None:
    orders = topics.create("xml_failing")
    topics.produce(orders, [FITS, BROKEN])
    path = pipelines.written(f"""
        create stream orders from topic '{orders}' with (valueFormat = xml, valueSchema = '{SCHEMA}');
        create sink rows into topic '{topics.name("xml_never")}' as select * from orders;
    """)
    outcome = pipelines.run(path)
    assert not outcome.ended_well
    (said,) = outcome.said
    assert "expectation readable on orders (_malformed is null) is broken by" in said
    for place in ('"_malformed":"<order><id>2</id>"', f'"_topic":"{orders}"', '"_offset":1'):
        assert place in said

"""What a file of SQL says, and what is said about one that is wrong."""

from __future__ import annotations

import pytest

from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.plan import (
    ONCE,
    Connector,
    Endpoint,
    Expectation,
    Kind,
    Location,
    Output,
    PipelineError,
    Plan,
    Query,
    Schedule,
    Shaping,
    Sink,
    Source,
    View,
    Violation,
    Watermark,
)

ORDERS = """\
-- Orders of customers, in euros.
set name = shop;
set bootstrap.servers = 'localhost:9092';

create stream orders from topic 'orders'
    key (id) watermark at delay '10 minutes' deduplicate on (id)
    with (valueFormat = json, valueSchema = 'id string, amount double, at timestamp');
create table customers from topic 'customers' changes key id;
create view priced as
    select o.id, o.amount * 1.1 as amount -- with tax; not the end
    from orders o join customers c on o.id = c.id;
expect positive on priced check (amount > 0 and (id is not null)) otherwise dead letter;
create sink lake into delta './lake' key (id) upsert every '5 seconds' as select * from priced;
create sink out into topic 'priced' output append once with (delivery = 'at-least-once') as select * from priced
"""


def test_a_whole_pipeline() -> None:
    def place(line: int) -> Location:
        return Location("orders.sql", line)

    view = (
        "select o.id, o.amount * 1.1 as amount -- with tax; not the end\n"
        "    from orders o join customers c on o.id = c.id"
    )
    everything = Query(("priced",), sql="select * from priced")
    assert parse(ORDERS, "orders.sql", name="orders") == Plan(
        "shop",
        settings={"name": "shop", "bootstrap.servers": "localhost:9092"},
        sources=(
            Source(
                "orders",
                Kind.STREAM,
                Endpoint(
                    Connector.TOPIC,
                    "orders",
                    {"valueFormat": "json", "valueSchema": "id string, amount double, at timestamp"},
                ),
                place(5),
                keys=("id",),
                shaping=Shaping(Watermark("at", "600000 milliseconds"), ("id",)),
            ),
            Source(
                "customers",
                Kind.TABLE,
                Endpoint(Connector.TOPIC, "customers"),
                place(8),
                keys=("id",),
                are_changes=True,
            ),
        ),
        views=(View("priced", Query(("orders", "customers"), sql=view), place(9)),),
        expectations=(
            Expectation("positive", "priced", "amount > 0 and (id is not null)", Violation.DEAD_LETTER, place(12)),
        ),
        sinks=(
            Sink(
                "lake",
                Endpoint(Connector.DELTA, "./lake"),
                everything,
                place(13),
                keys=("id",),
                is_upsert=True,
                schedule=Schedule(5_000),
            ),
            Sink(
                "out",
                Endpoint(Connector.TOPIC, "priced", {"delivery": "at-least-once"}),
                everything,
                place(14),
                output=Output.APPEND,
                schedule=ONCE,
            ),
        ),
    )


def test_create_stream_as_is_a_sink_into_a_topic() -> None:
    plan = parse("create stream big key id as select * from orders where amount > 9", "a.sql", name="a")
    query = Query(("orders",), sql="select * from orders where amount > 9")
    assert plan.sinks == (Sink("big", Endpoint(Connector.TOPIC, "big"), query, Location("a.sql", 1), keys=("id",)),)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("select 1", "p.sql:1: expected SET, CREATE STREAM, CREATE TABLE, CREATE VIEW, CREATE SINK, EXPECT or INCLUDE"),
        ("create stream s from 'x'", "p.sql:1: expected TOPIC, PATTERN, DELTA, ICEBERG, DATABASE or FILES, found 'x'"),
        ("create stream s from topic x", "p.sql:1: expected the topic's name in quotes, found 'x'"),
        ("\n\ncreate stream s from topic 'x' delay", "p.sql:3: expected the end of the statement; is a ';' missing"),
        ("create view v as", "p.sql:1: expected a query, found the end of the statement"),
        ("create view v as\nselect a b c d from", "p.sql:2: "),
        ("create view v as drop table x", "p.sql:1: a query was expected here, found DROP"),
        ("create stream s from topic 'x' watermark a delay '5 parsecs'", "'5 parsecs' is no duration"),
        ("create stream s from topic 'x' key a key b", "KEY is said twice"),
        ("create stream s from topic 'x' with (a = 1, a = 2)", "option a is given twice"),
        ("create sink s into pattern 'x' as select 1", "nothing can be written to a pattern"),
        ("create table s from console 'x'", "nothing can be read from the console"),
        ("create sink s into topic 'x' once every '5s' as select 1", "two schedules: once and every 5000 ms"),
        ("expect e on v check (a > (1) otherwise drop", "expected ')', found the end of the statement"),
        ("expect e on v check (a) otherwise explode", "expected WARN, DROP, FAIL or DEAD LETTER, found 'explode'"),
        ("set a = 1; set a = 2", "a is set twice"),
        ("set 'a' = '1'; set a = 2", "a is set twice"),
        ("set 'ksql.streams.processing.guarantee' = 'x'", "processing.guarantee is not set here: results are exactly"),
        ("create stream s from topic 'x", "this quote is not closed"),
        ("/* never ends", "this comment is not closed"),
    ],
)
def test_a_mistake_is_named_with_its_place(source: str, said: str) -> None:
    with pytest.raises(PipelineError) as failed:
        parse(source, "p.sql", name="p")
    assert said in str(failed.value)
    assert "\n" not in str(failed.value)

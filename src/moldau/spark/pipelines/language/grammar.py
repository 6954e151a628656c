"""A pipeline in SQL. The heads of statements are ours; the queries in them are Spark's own.

SET key = value;
CREATE STREAM name FROM TOPIC 'topic' [CHANGES] [KEY (column, …)] [WATERMARK column DELAY 'duration']
    [DEDUPLICATE ON (column, …)] [WITH (option = value, …)];
CREATE TABLE name FROM TOPIC | DELTA | ICEBERG | DATABASE | FILES 'place' [KEY (column, …)] [WITH (…)];
CREATE VIEW name [WATERMARK …] [DEDUPLICATE …] AS query;
EXPECT name ON relation CHECK (condition) OTHERWISE WARN | DROP | FAIL | DEAD LETTER;
CREATE SINK name INTO TOPIC | DELTA | ICEBERG | DATABASE | CONSOLE 'place' [KEY (…)] [UPSERT]
    [OUTPUT APPEND | UPDATE | COMPLETE] [ONCE | CONTINUOUS | EVERY 'duration'] [WITH (…)] AS query;
CREATE STREAM name [KEY (…)] [EVERY …] [WITH (…)] AS query;      a sink into the topic of that name
INCLUDE 'functions.py';                                          Python beside the SQL
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from moldau.spark.pipelines.language.clauses import (
    CHANGES,
    DEDUPLICATE,
    KEY,
    OPTIONS,
    OUTPUT,
    SCHEDULES,
    UPSERT,
    WATERMARK,
    read_clauses,
)
from moldau.spark.pipelines.language.cursor import Cursor
from moldau.spark.pipelines.language.queries import sql_query
from moldau.spark.pipelines.language.tokens import statements_of
from moldau.spark.pipelines.plan import (
    Connector,
    Endpoint,
    Expectation,
    Kind,
    Location,
    PipelineError,
    Plan,
    Query,
    Sink,
    Source,
    View,
    Violation,
)

FROM_WORDS = "TOPIC, PATTERN, DELTA, ICEBERG, DATABASE or FILES"
INTO_WORDS = "TOPIC, DELTA, ICEBERG, DATABASE, FILES or CONSOLE"
STATEMENTS = "SET, CREATE STREAM, CREATE TABLE, CREATE VIEW, CREATE SINK, EXPECT or INCLUDE"


KSQL_PREFIX = "ksql.streams."  # ksqlDB takes a setting of its streams with and without it
# What ksqlDB's users set, and how it is said here.
OTHERWISE = {
    "processing.guarantee": "results are exactly once; WITH (delivery = 'at-least-once') of a sink says otherwise",
}


def parse(source: str, file: str, *, name: str, include: Callable[[Path, Location], Plan] | None = None) -> Plan:
    """The plan that a file of SQL says. `include` loads what it names; raises PipelineError."""
    plan = Plan(name)
    for statement in statements_of(source, file):
        cursor = Cursor(statement, source, file)
        plan = _statement(plan, cursor, include)
        cursor.end()
    return plan


def _statement(plan: Plan, cursor: Cursor, include: Callable[[Path, Location], Plan] | None) -> Plan:
    place = cursor.place
    if cursor.accept("set"):
        return _set(plan, cursor, place)
    if cursor.accept("create", "stream"):
        return _create_stream(plan, cursor, place)
    if cursor.accept("create", "table"):
        source = _source(cursor, place, cursor.name("the table's name"), Kind.TABLE)
        return replace(plan, sources=(*plan.sources, source))
    if cursor.accept("create", "view"):
        view = _view(cursor, place)
        return replace(plan, views=(*plan.views, view))
    if cursor.accept("create", "sink"):
        return replace(plan, sinks=(*plan.sinks, _sink(cursor, place)))
    if cursor.accept("expect"):
        return replace(plan, expectations=(*plan.expectations, _expectation(cursor, place)))
    if include is not None and cursor.accept("include"):
        return joined(plan, include(Path(cursor.text("a file")), place))
    return cursor.fails(STATEMENTS)


def joined(plan: Plan, more: Plan) -> Plan:
    return replace(
        plan,
        settings={**plan.settings, **more.settings},
        sources=(*plan.sources, *more.sources),
        views=(*plan.views, *more.views),
        expectations=(*plan.expectations, *more.expectations),
        sinks=(*plan.sinks, *more.sinks),
        functions={**plan.functions, **more.functions},
    )


def _set(plan: Plan, cursor: Cursor, place: Location) -> Plan:
    key = cursor.name_or_text("a setting's name").removeprefix(KSQL_PREFIX)
    cursor.expect_sign("=")
    value = cursor.value("the setting's value")
    if key in OTHERWISE:
        raise PipelineError(place, f"{key} is not set here: {OTHERWISE[key]}")
    if key in plan.settings:
        raise PipelineError(place, f"{key} is set twice")
    return replace(plan, name=value if key == "name" else plan.name, settings={**plan.settings, key: value})


def _create_stream(plan: Plan, cursor: Cursor, place: Location) -> Plan:
    name = cursor.name("the stream's name")
    if not cursor.accept("from"):
        clauses = read_clauses(cursor, KEY, OPTIONS, OUTPUT, *SCHEDULES)
        endpoint = Endpoint(Connector.TOPIC, clauses.options.pop("topic", name), clauses.options)
        query = _query(cursor)
        sink = Sink(name, endpoint, query, place, keys=clauses.keys, output=clauses.output, schedule=clauses.schedule)
        return replace(plan, sinks=(*plan.sinks, sink))
    return replace(plan, sources=(*plan.sources, _source_after_from(cursor, place, name, Kind.STREAM)))


def _source(cursor: Cursor, place: Location, name: str, kind: Kind) -> Source:
    cursor.expect("from")
    return _source_after_from(cursor, place, name, kind)


def _source_after_from(cursor: Cursor, place: Location, name: str, kind: Kind) -> Source:
    connector = cursor.choice(Connector, FROM_WORDS)
    if connector is Connector.CONSOLE:
        raise PipelineError(place, f"nothing can be read from the console; allowed: {FROM_WORDS}")
    location = cursor.text(f"the {connector.value}'s name")
    clauses = read_clauses(cursor, KEY, WATERMARK, DEDUPLICATE, OPTIONS, CHANGES)
    return Source(
        name,
        kind,
        Endpoint(connector, location, clauses.options),
        place,
        keys=clauses.keys,
        are_changes=clauses.are_changes,
        shaping=clauses.shaping,
    )


def _view(cursor: Cursor, place: Location) -> View:
    name = cursor.name("the view's name")
    clauses = read_clauses(cursor, WATERMARK, DEDUPLICATE)
    return View(name, _query(cursor), place, shaping=clauses.shaping)


def _sink(cursor: Cursor, place: Location) -> Sink:
    name = cursor.name("the sink's name")
    cursor.expect("into")
    connector = cursor.choice(Connector, INTO_WORDS)
    if connector is Connector.PATTERN:
        raise PipelineError(place, f"nothing can be written to a pattern; allowed: {INTO_WORDS}")
    location = "" if connector is Connector.CONSOLE else cursor.text(f"the {connector.value}'s name")
    clauses = read_clauses(cursor, KEY, OPTIONS, OUTPUT, UPSERT, *SCHEDULES)
    endpoint = Endpoint(connector, location, clauses.options)
    return Sink(
        name,
        endpoint,
        _query(cursor),
        place,
        keys=clauses.keys,
        is_upsert=clauses.is_upsert,
        output=clauses.output,
        schedule=clauses.schedule,
    )


def _expectation(cursor: Cursor, place: Location) -> Expectation:
    name = cursor.name("the expectation's name")
    cursor.expect("on")
    on = cursor.name("the name of a stream, table or view")
    cursor.expect("check")
    condition = cursor.parenthesised()
    cursor.expect("otherwise")
    otherwise = cursor.choice(Violation, "WARN, DROP, FAIL or DEAD LETTER")
    return Expectation(name, on, condition, otherwise, place)


def _query(cursor: Cursor) -> Query:
    cursor.expect("as")
    place = cursor.place
    if cursor.is_done:
        cursor.fails("a query")
    return sql_query(cursor.rest(), place)

"""What is wrong with a plan, found without Spark and without a broker. Spark's own analysis comes after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from moldau.spark.option_values import OptionError
from moldau.spark.pipelines.plan import (
    STARTING,
    STARTS,
    Connector,
    Kind,
    Location,
    Output,
    Plan,
    Sink,
    Source,
    Violation,
)
from moldau.spark.pipelines.running.frames.sources import CLIENT_PREFIXES
from moldau.spark.pipelines.table_options import wrong_table_sink, wrong_table_source
from moldau.spark.pipelines.topic_options import settings_by_library, wrong_sink_option, wrong_source_option
from moldau.spark.tables.databases.table_names import writable_table

SETTINGS = {
    "name": "the pipeline's name",
    "bootstrap.servers": "the cluster, unless a source or sink names its own",
    "checkpoint": "the folder or URL of the queries' progress",
    "state": "the folder or URL of the running pipeline's status and lock",
    "groupIdPrefix": "how the names of groups begin",
    "transactionalIdPrefix": "how transactional ids begin",
    STARTING: "where streams begin: earliest, the default, or latest",
}
TOPICS = (Connector.TOPIC, Connector.PATTERN)
SETTING_PREFIXES = ("spark.", *CLIENT_PREFIXES)


class Problem(NamedTuple):
    place: Location
    message: str
    is_error: bool = True

    def __str__(self) -> str:
        return f"{self.place}: {'' if self.is_error else 'warning: '}{self.message}"


def check(plan: Plan, *, asks_library: bool = False) -> list[Problem]:
    """In the order of the file. The client library judges its settings where a run would be on this machine too."""
    found = [
        *_settings(plan),
        *_names(plan),
        *_inputs(plan),
        *_cycles(plan),
        *(problem for source in plan.sources for problem in _source(source)),
        *(problem for sink in plan.sinks for problem in _sink(sink)),
        *_topic_options(plan, asks_library=asks_library),
        *_table_options(plan),
        *_expectations(plan),
        *_dead_letters(plan),
        *_unused(plan),
    ]
    return sorted(found, key=lambda problem: (problem.place.file, problem.place.line))


def _settings(plan: Plan) -> Iterator[Problem]:
    where = plan.place
    for key, value in plan.settings.items():
        if key in SETTINGS and not value.strip():
            # An empty checkpoint would be the folder of the file itself, which a reset must never empty.
            yield Problem(where, f"setting {key} is empty; leave it out for the default")
        if key not in SETTINGS and not key.startswith(SETTING_PREFIXES):
            allowed = ", ".join((*SETTINGS, *(f"{prefix}*" for prefix in SETTING_PREFIXES)))
            yield Problem(where, f"setting {key} is unknown; allowed: {allowed}")
    if plan.starts_at not in STARTS:
        wrong = f"setting {STARTING} = {plan.settings[STARTING]!r}: allowed are {' and '.join(STARTS)}"
        yield Problem(where, f"{wrong}; a stream's startingOffsets takes offsets, startingTimestamp a time")
    if not plan.sinks:
        yield Problem(where, "nothing is written anywhere: a pipeline needs a CREATE SINK, or a sink in Python")


def _names(plan: Plan) -> Iterator[Problem]:
    seen: dict[str, Location] = {}
    for one in (*plan.relations(), *plan.sinks):
        first = seen.setdefault(one.name.lower(), one.place)
        if first is not one.place:
            yield Problem(one.place, f"the name {one.name} is taken: see {first}")
    counts = Counter((rule.on, rule.name) for rule in plan.expectations)
    for rule in plan.expectations:
        if counts[rule.on, rule.name] > 1:
            yield Problem(rule.place, f"there is more than one expectation {rule.name} on {rule.on}")


def _inputs(plan: Plan) -> Iterator[Problem]:
    known = {one.name.lower() for one in plan.relations()}
    for one in plan.queries():
        for name in one.query.inputs:
            if name.lower() not in known:
                wrong = f"{one.name} reads {name}, which is no stream, table or view here{_like(name, known)}"
                yield Problem(one.place, wrong)
        if not one.query.inputs:
            yield Problem(one.place, f"{one.name} reads nothing: its query has no FROM", is_error=isinstance(one, Sink))


def _like(name: str, known: set[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, n=1)
    return f"; is {near[0]} meant?" if near else f"; there are {', '.join(sorted(known))}" if known else ""


def _cycles(plan: Plan) -> Iterator[Problem]:
    inputs = {view.name.lower(): [name.lower() for name in view.query.inputs] for view in plan.views}
    for view in plan.views:
        reached, ahead = set[str](), list(inputs[view.name.lower()])
        while ahead:
            name = ahead.pop()
            if name not in reached:
                reached.add(name)
                ahead += inputs.get(name, [])
        if view.name.lower() in reached:
            yield Problem(view.place, f"view {view.name} reads itself, directly or through others")


def _source(source: Source) -> Iterator[Problem]:
    connector = source.endpoint.connector
    if source.kind is Kind.STREAM and connector not in (Connector.TOPIC, Connector.PATTERN):
        yield Problem(source.place, f"a stream comes from a TOPIC or PATTERN; read {connector.value} as a TABLE")
    if source.kind is Kind.TABLE and connector is Connector.TOPIC and not source.keys:
        yield Problem(source.place, f"table {source.name} needs a KEY: a topic's table has the newest row of each")
    if source.are_changes and not source.keys:
        yield Problem(source.place, f"change events of {source.name} need a KEY: the columns that name a row")
    if source.shaping.deduplicate and source.kind is Kind.STREAM and source.shaping.watermark is None:
        yield Problem(source.place, f"{source.name}: DEDUPLICATE needs a WATERMARK, or its state would grow for ever")


def _sink(sink: Sink) -> Iterator[Problem]:
    connector = sink.endpoint.connector
    tables = (Connector.DELTA, Connector.ICEBERG, Connector.DATABASE)
    if sink.is_upsert and not sink.keys:
        yield Problem(sink.place, f"sink {sink.name}: UPSERT needs a KEY")
    if sink.is_upsert and connector not in (*tables, Connector.TOPIC):
        yield Problem(sink.place, f"sink {sink.name}: UPSERT goes into tables and topics, not into {connector.value}")
    if sink.output is Output.UPDATE and connector in tables and not sink.is_upsert:
        yield Problem(sink.place, f"sink {sink.name}: updated rows need UPSERT, or each update would be one more row")
    if connector is Connector.DATABASE:
        yield from _database(sink)
    if sink.output is Output.COMPLETE and connector in tables:
        yield Problem(sink.place, f"sink {sink.name}: OUTPUT COMPLETE would add all rows with every batch; use UPSERT")


def _topic_options(plan: Plan, *, asks_library: bool) -> Iterator[Problem]:
    judges = [settings_by_library] if asks_library else []
    for source in plan.sources:
        wrong = wrong_source_option(source, plan, *judges) if source.endpoint.connector in TOPICS else None
        if wrong:
            yield Problem(source.place, f"{source.name}: {wrong}")
    for sink in plan.sinks:
        wrong = wrong_sink_option(sink, plan, *judges) if sink.endpoint.connector is Connector.TOPIC else None
        if wrong:
            yield Problem(sink.place, f"sink {sink.name}: {wrong}")


def _table_options(plan: Plan) -> Iterator[Problem]:
    for source in plan.sources:
        if wrong := wrong_table_source(source):
            yield Problem(source.place, f"{source.name}: {wrong}")
    for sink in plan.sinks:
        if wrong := wrong_table_sink(sink):
            yield Problem(sink.place, f"sink {sink.name}: {wrong}")


def _database(sink: Sink) -> Iterator[Problem]:
    url = next((value for name, value in sink.endpoint.options.items() if name.lower() == "url"), "")
    try:
        writable_table(sink.endpoint.location, url)
    except OptionError as wrong:
        yield Problem(sink.place, f"sink {sink.name}: {wrong}")


def _expectations(plan: Plan) -> Iterator[Problem]:
    known = {one.name.lower() for one in plan.relations()}
    sinks = {sink.name.lower() for sink in plan.sinks}
    for one in plan.expectations:
        if one.on.lower() not in known:
            hint = "; put it on what the sink reads" if one.on.lower() in sinks else _like(one.on, known)
            yield Problem(one.place, f"expectation {one.name} is on {one.on}, which is no stream, table or view{hint}")
        if not one.condition:
            yield Problem(one.place, f"expectation {one.name} has no condition")


def _dead_letters(plan: Plan) -> Iterator[Problem]:
    """A batch decides about the rows of a stream, once; what it writes must be there once if it runs again."""
    streams = {one.name.lower() for one in plan.sources if one.kind is Kind.STREAM}
    judged = {one.name.lower() for one in plan.relations() if plan.has_dead_letters(one.name)}
    for rule in plan.expectations:
        if rule.otherwise is Violation.DEAD_LETTER and not plan.upstream([rule.on]) & streams:
            again = "a table is read again with every batch"
            yield Problem(rule.place, f"expectation {rule.name}: {again}, so its rows can't be dead letters; use DROP")
    for sink in plan.sinks:
        kept = plan.upstream(sink.query.inputs) & judged
        if kept and sink.endpoint.connector is Connector.FILES:
            wrong = f"sink {sink.name} reads {min(kept)}, whose dead letters need a sink that takes a batch once"
            yield Problem(sink.place, f"{wrong}: a topic, DELTA, ICEBERG or DATABASE")


def _unused(plan: Plan) -> Iterator[Problem]:
    read = {name.lower() for one in plan.queries() for name in one.query.inputs}
    for one in plan.relations():
        if one.name.lower() not in read:
            yield Problem(one.place, f"nothing reads {one.name}", is_error=False)

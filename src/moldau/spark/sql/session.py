"""A conversation in SQL: each statement is one of ours about streams and tables, or a question for Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from moldau.spark.options import NARROWING
from moldau.spark.pipelines.language.cursor import Cursor
from moldau.spark.pipelines.language.grammar import KSQL_PREFIX, parse
from moldau.spark.pipelines.language.queries import inputs_of
from moldau.spark.pipelines.language.tokens import Statement, statements_of
from moldau.spark.pipelines.plan import STARTING, Connector, Endpoint, Kind, Location, PipelineError, Plan, Source
from moldau.spark.pipelines.running.frames import sources
from moldau.spark.pipelines.running.frames.plan_frames import Frames
from moldau.spark.pipelines.running.reasons import said_by, spark_failures
from moldau.spark.reading.narrowing import Narrowing
from moldau.spark.registry_names import PREFIX as REGISTRY_PREFIX
from moldau.spark.secrets import is_secret, reference_of
from moldau.spark.sql.conditions import narrowing_of
from moldau.spark.sql.following import following
from moldau.spark.sql.peeking import newest_values, options_of, registry_options
from moldau.spark.sql.refusals import Refused
from moldau.spark.sql.small_topics import Records, small_records
from moldau.spark.sql.staying import StayingStreams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HERE = "sql"
Opened = TypeVar("Opened")


class Result(NamedTuple):
    """Rows under names, or a message where there are no rows."""

    columns: tuple[str, ...] = ()
    rows: Iterable[tuple[Any, ...]] = ()
    message: str | None = None


class SqlSession:
    def __init__(
        self,
        open_spark: Callable[[], SparkSession],
        *,
        client: Mapping[str, Any],
        topics: Callable[[], list[str]],
        streams: StayingStreams,
        master: str | None = None,
        waits_for: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`client` are librdkafka's settings; Spark is opened by the first statement that needs it.

        `waits_for` is told what an answer waits for, whenever that changes.
        """
        self._open_spark = open_spark
        self._client = dict(client)
        self._topics = topics
        self._streams = streams
        self._master = master
        self._waits_for = waits_for
        self._opening: Future[SparkSession] | None = None
        self._frames: Frames | None = None
        self._plan = Plan(HERE, settings=_settings(client))
        self._said: list[str] = []  # definitions so far, for a stream that stays must know them too
        self._defined: set[str] = set()

    @property
    def has_spark(self) -> bool:
        """Whether any statement so far needed it."""
        return self._frames is not None

    def execute(self, source: str, *, follow: bool = False) -> Iterator[Result]:
        """One result for each statement; raises Refused, and PipelineError for what can't be understood."""
        for statement in statements_of(source, HERE):
            text = source[statement.tokens[0].start : statement.tokens[-1].end]
            yield self._one(statement, source, text, follow=follow)

    def _one(self, statement: Statement, source: str, text: str, *, follow: bool) -> Result:
        cursor = Cursor(statement, source, HERE)
        if cursor.accept("show", "topics"):
            return Result(("topic",), [(name,) for name in self._topics()])
        if cursor.accept("show", "streams"):
            return Result(("stream", "state", "rows", "query"), list(self._streams.all()))
        if cursor.accept("drop", "stream"):
            name = cursor.name("the stream's name")
            self._streams.drop(name)
            return Result(message=f"dropped {name}; its topic stays")
        if cursor.accept("describe"):
            return self._describe(cursor.name("a topic, stream, table or view"))
        if cursor.accept("set"):
            return self._set(cursor)
        if any(cursor.accept(*words.split()) for words in DEFINITIONS):
            return self._define(text)
        return self._ask(text, follow=follow)

    def _set(self, cursor: Cursor) -> Result:
        """Spark's own settings; what others know by this statement is explained."""
        place, key = cursor.place, cursor.name_or_text("a setting's name").removeprefix(KSQL_PREFIX)
        cursor.expect_sign("=")
        value = cursor.value("the setting's value")
        cursor.end()
        if key == STARTING and value.lower() == "earliest":
            return Result(message="a question reads from the oldest record on, and so does --follow: nothing to set")
        if key.startswith(REGISTRY_PREFIX):
            self._plan = replace(self._plan, settings={**self._plan.settings, key: value})
            return Result(message=f"{key} is set: topics are read by their schemas in the registry")
        if not key.startswith("spark."):
            hint = "say where to begin by a condition on _timestamp or _offset" if key == STARTING else ""
            raise PipelineError(place, f"{key} is not set here: {hint or ALLOWED}")
        try:
            self._open().spark.conf.set(key, value)
        except spark_failures() as wrong:
            raise Refused(said_by(wrong)) from None
        return Result(message=f"{key} is {value} for this session")

    def _define(self, text: str) -> Result:
        plan = parse(text, HERE, name=HERE)
        if plan.sinks:
            return self._stay(plan.sinks[0].name, text)
        for one in plan.relations():
            made = self._read(one) if isinstance(one, Source) else self._query(text, one.query.inputs, one.query.sql)
            self._open().add(one, made, [])
            self._defined.add(one.name.lower())
        self._said.append(text)
        named = ", ".join(one.name for one in plan.relations())
        return Result(message=f"{named} is there for this session")

    def _stay(self, name: str, text: str) -> Result:
        known = {one.name.lower() for one in parse(";\n".join(self._said), HERE, name=HERE).relations()}
        inputs = parse(text, HERE, name=HERE).sinks[0].query.inputs
        streams = [self._as_statement(self._source_of(one)) for one in inputs if one.lower() not in known]
        references = {key: reference_of(key) for key in self._plan.settings if is_secret(key)}
        secrets = {variable: self._plan.settings[key] for key, (variable, _) in references.items()}
        written = {**self._plan.settings, **{key: reference for key, (_, reference) in references.items()}}
        settings = [f"set {key} = '{_quoted(value)}'" for key, value in written.items()]
        source = ";\n".join([*settings, *self._said, *streams, text]) + "\n"
        self._streams.create(name, source, master=self._master, secrets=secrets)
        return Result(message=f"stream {name} runs and stays; see it with: show streams")

    def _ask(self, text: str, *, follow: bool) -> Result:
        frame = self._query(text, inputs_of(text, Location(HERE, 1)), text, follow=follow, is_asked_once=not follow)
        columns = tuple(frame.columns)
        return Result(columns, self._followed(frame) if frame.isStreaming else self._rows(frame))

    def _followed(self, frame: DataFrame) -> Iterator[tuple[Any, ...]]:
        self._waits_for("waiting for the first rows")
        yield from following(frame)

    def _rows(self, frame: DataFrame) -> Iterator[tuple[Any, ...]]:
        self._waits_for("Spark reads the records")
        try:
            yield from (tuple(row) for row in frame.toLocalIterator())
        except KeyboardInterrupt:
            with suppress(*spark_failures(), AttributeError):  # over Connect there is no context
                frame.sparkSession.sparkContext.cancelAllJobs()
            raise
        except spark_failures() as wrong:
            raise Refused(said_by(wrong)) from None

    def _query(
        self,
        text: str,
        inputs: tuple[str, ...],
        sql: str | None,
        *,
        follow: bool = False,
        is_asked_once: bool = False,
    ) -> DataFrame:
        self._begin_opening()
        topics = self._topics()
        # A topic is looked at anew for each question: it may have got records, columns and partitions.
        named = [name for name in inputs if name in topics and name.lower() not in self._defined]
        kind = Kind.STREAM if follow else Kind.TABLE
        read = [replace(self._source_of(name), kind=kind) for name in named]
        if not follow:
            read = [self._narrowed(source, sql or text) for source in read]
        # A view that is defined for later has to see what is new then.
        small = {source.name: small_records(source, self._plan) for source in read} if is_asked_once else {}
        frames = self._open()
        for source in read:
            self._waits_for(f"Spark looks at {source.name}")
            frames.add(source, self._read(source, small.get(source.name)), [])
        try:
            return frames.spark.sql(sql or text)
        except spark_failures() as wrong:
            unknown = [name for name in inputs if name not in topics and name.lower() not in self._defined]
            if unknown and "TABLE_OR_VIEW_NOT_FOUND" in str(wrong):
                raise _unknown(unknown[0], topics) from None
            raise Refused(said_by(wrong)) from None

    def _source_of(self, name: str) -> Source:
        """A topic by its name, in the format that its values have."""
        topics = self._topics()
        if name not in topics:
            raise _unknown(name, topics)
        values = newest_values(self._client, name)
        options = registry_options(values, self._plan.settings) or options_of(values)
        return Source(name, Kind.STREAM, Endpoint(Connector.TOPIC, name, options), Location(HERE, 1))

    def _read(self, source: Source, records: Records | None = None) -> DataFrame:
        spark = self._open().spark
        try:
            if records is not None:
                return sources.as_read(spark.createDataFrame(records.table, records.schema), source)
            if source.kind is Kind.TABLE and source.endpoint.connector is Connector.TOPIC and not source.keys:
                return sources.read_records(spark, source, self._plan)
            return sources.read(spark, source, self._plan)
        except spark_failures() as wrong:
            raise Refused(said_by(wrong)) from None

    def _narrowed(self, source: Source, text: str) -> Source:
        """Read with the question's own conditions where they say that a part is enough."""
        found = narrowing_of(text, source.name, self._milliseconds)
        options = {**source.endpoint.options, NARROWING: found.as_text()} if found != Narrowing() else {}
        return replace(source, endpoint=replace(source.endpoint, options=options)) if options else source

    def _milliseconds(self, expression: str) -> int | None:
        """A constant expression as a time, by Spark; a mistake in it is told when the whole question is asked."""
        try:
            rows = self._open().spark.sql(f"select unix_millis(cast({expression} as timestamp))").collect()
        except spark_failures():
            return None
        return None if rows[0][0] is None else int(rows[0][0])

    def _describe(self, name: str) -> Result:
        frame = self._query(f"select * from `{name}`", (name,), f"select * from `{name}`")
        return Result(("column", "type"), [(one.name, one.dataType.simpleString()) for one in frame.schema.fields])

    def _as_statement(self, source: Source) -> str:
        options = ", ".join(f"{key} = '{_quoted(value)}'" for key, value in source.endpoint.options.items())
        return f"create stream `{source.name}` from topic '{_quoted(source.endpoint.location)}' with ({options})"

    def _begin_opening(self) -> None:
        """Spark takes seconds to start, in which the topics can be looked at."""
        if self._frames is None and self._opening is None:
            self._waits_for("Spark starts")
            with suppress(ModuleNotFoundError):
                # Its modules import each other: two threads that begin at different ones find halves of them.
                import_module("pyspark.sql")
            starting: Future[SparkSession] = Future()
            threading.Thread(
                target=_settle, args=(starting, self._open_spark), name="Spark starts", daemon=True
            ).start()
            self._opening = starting

    def _open(self) -> Frames:
        if self._frames is None:
            self._begin_opening()
            assert self._opening is not None, "it has begun"
            opening, self._opening = self._opening, None
            self._frames = Frames(opening.result())
        return self._frames


def _settle(future: Future[Opened], make: Callable[[], Opened]) -> None:
    try:
        future.set_result(make())
    except BaseException as wrong:  # whatever it is, it belongs to the one who waits
        future.set_exception(wrong)


ALLOWED = "allowed are the settings of Spark, spark.*, and of a registry, schema.registry.*"
DEFINITIONS = ("create stream", "create table", "create view", "create sink")


def _unknown(name: str, known: list[str]) -> Refused:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    hint = f"; is {near[0]} meant?" if near else "; see: show topics"
    return Refused(f"there is no topic, stream, table or view {name}{hint}")


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _settings(client: Mapping[str, Any]) -> dict[str, str]:
    """librdkafka's settings under the names that a pipeline gives them."""
    left = ("bootstrap.servers", "log_level", "client.id")
    rest = {f"kafka.{key}": str(value) for key, value in client.items() if key not in left and not callable(value)}
    return {"bootstrap.servers": str(client["bootstrap.servers"]), **rest}

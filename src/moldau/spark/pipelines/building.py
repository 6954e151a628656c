"""A pipeline in Python: the same plan as from SQL, said with functions.

from moldau.spark import Pipeline, topic, delta

pipeline = Pipeline("clicks")
pipeline.stream("clicks", topic("clicks", valueFormat="json", valueSchema="user string, at timestamp"),
                watermark=("at", "10 minutes"))

@pipeline.view
def by_user(clicks):
    return clicks.groupBy("user").count()

pipeline.sink("counts", topic("counts"), reads="by_user", key="user", output="update")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from moldau.spark.pipelines.language.durations import duration_ms
from moldau.spark.pipelines.language.grammar import joined, parse
from moldau.spark.pipelines.language.queries import sql_query
from moldau.spark.pipelines.plan import (
    CONTINUOUS,
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

F = TypeVar("F", bound=Callable[..., Any])


def topic(name: str, **options: str) -> Endpoint:
    return Endpoint(Connector.TOPIC, name, options)


def pattern(regular_expression: str, **options: str) -> Endpoint:
    """All topics whose names match."""
    return Endpoint(Connector.PATTERN, regular_expression, options)


def delta(path: str, **options: str) -> Endpoint:
    return Endpoint(Connector.DELTA, path, options)


def iceberg(table: str, **options: str) -> Endpoint:
    return Endpoint(Connector.ICEBERG, table, options)


def database(table: str, **options: str) -> Endpoint:
    return Endpoint(Connector.DATABASE, table, options)


def files(path: str, **options: str) -> Endpoint:
    return Endpoint(Connector.FILES, path, options)


def console(**options: str) -> Endpoint:
    return Endpoint(Connector.CONSOLE, "", options)


class Pipeline:
    """Gathers what a file of Python says; `plan` is the result."""

    def __init__(self, name: str, **settings: str) -> None:
        """Settings as keywords have `_` where their names have `.`: `bootstrap_servers`."""
        self.plan = Plan(name, settings={key.replace("_", "."): value for key, value in settings.items()})

    def set(self, key: str, value: str) -> None:
        self.plan = replace(self.plan, settings={**self.plan.settings, key: value})

    def stream(
        self,
        name: str,
        source: Endpoint,
        *,
        key: str | tuple[str, ...] = (),
        watermark: tuple[str, str] | None = None,
        deduplicate: str | tuple[str, ...] = (),
        changes: bool = False,
    ) -> None:
        shaping = _shaping(watermark, deduplicate, _caller())
        self._add_source(
            Source(name, Kind.STREAM, source, _caller(), keys=_tuple(key), are_changes=changes, shaping=shaping)
        )

    def table(self, name: str, source: Endpoint, *, key: str | tuple[str, ...] = (), changes: bool = False) -> None:
        self._add_source(Source(name, Kind.TABLE, source, _caller(), keys=_tuple(key), are_changes=changes))

    def view(
        self,
        function: F | None = None,
        *,
        watermark: tuple[str, str] | None = None,
        deduplicate: str | tuple[str, ...] = (),
    ) -> Any:
        """A decorator: the function's name is the view's, its parameters are the names that it reads."""
        place = _caller()
        shaping = _shaping(watermark, deduplicate, place)

        def add(made: F) -> F:
            view = View(made.__name__, _function_query(made), place, shaping=shaping)
            self.plan = replace(self.plan, views=(*self.plan.views, view))
            return made

        return add if function is None else add(function)

    def expect(self, name: str, *, on: str, check: str, otherwise: str = "warn") -> None:
        place = _caller()
        rule = Expectation(name, on, check, _one_of(Violation, otherwise.replace("-", " "), "otherwise", place), place)
        self.plan = replace(self.plan, expectations=(*self.plan.expectations, rule))

    def sink(
        self,
        name: str,
        into: Endpoint,
        *,
        reads: str | Callable[..., Any],
        key: str | tuple[str, ...] = (),
        upsert: bool = False,
        output: str | None = None,
        every: str | None = None,
    ) -> None:
        """`reads` is a relation's name, a query or a function; `every` is a duration, 'once' or 'continuous'."""
        place = _caller()
        sink = Sink(
            name,
            into,
            _query(reads, place),
            place,
            keys=_tuple(key),
            is_upsert=upsert,
            output=None if output is None else _one_of(Output, output, "output", place),
            schedule=None if every is None else _schedule(every, place),
        )
        self.plan = replace(self.plan, sinks=(*self.plan.sinks, sink))

    def function(self, made: F) -> F:
        """A decorator: SQL can call it by its name. Made with `pyspark.sql.functions.udf`, or plain."""
        name = str(getattr(made, "__name__", None) or getattr(made, "_name", ""))
        self.plan = replace(self.plan, functions={**self.plan.functions, name: made})
        return made

    def sql(self, text: str) -> None:
        """Statements of the SQL grammar beside the Python."""
        place = _caller()
        more = parse("\n" * (place.line - 1) + text, place.file, name=self.plan.name)
        self.plan = joined(self.plan, more)

    def _add_source(self, source: Source) -> None:
        self.plan = replace(self.plan, sources=(*self.plan.sources, source))


def _caller() -> Location:
    """The line of the pipeline's file that is being said now."""
    here = Path(__file__)
    frame = inspect.currentframe()
    while frame is not None and Path(frame.f_code.co_filename) == here:
        frame = frame.f_back
    assert frame is not None, "somebody called this"
    return Location(Path(frame.f_code.co_filename).name, frame.f_lineno)


def _tuple(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _shaping(watermark: tuple[str, str] | None, deduplicate: str | tuple[str, ...], place: Location) -> Shaping:
    if watermark is None:
        return Shaping(deduplicate=_tuple(deduplicate))
    column, delay = watermark
    return Shaping(Watermark(column, f"{_duration(delay, place)} milliseconds"), _tuple(deduplicate))


def _duration(text: str, place: Location) -> int:
    try:
        return duration_ms(text)
    except ValueError as wrong:
        raise PipelineError(place, str(wrong)) from None


def _schedule(text: str, place: Location) -> Schedule:
    known = {"once": ONCE, "continuous": CONTINUOUS}
    return known.get(text) or Schedule(_duration(text, place))


def _one_of(kind: Any, value: str, what: str, place: Location) -> Any:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(str(one.value) for one in kind)
        raise PipelineError(place, f"{what} {value!r} is unknown; allowed: {allowed}") from None


def _query(reads: str | Callable[..., Any], place: Location) -> Query:
    if callable(reads):
        return _function_query(reads)
    if len(reads.split()) > 1:
        return sql_query(reads, place)
    return Query((reads,), sql=f"select * from {reads}")


def _function_query(function: Callable[..., Any]) -> Query:
    return Query(tuple(inspect.signature(function).parameters), function=function)

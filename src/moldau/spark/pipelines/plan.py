"""What a pipeline says, as values: the same plan comes from SQL and from Python, and everything else works on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

LETTERS_SUFFIX = ".dead-letters"
STARTING = "auto.offset.reset"  # ksqlDB's name for where streams begin
STARTS = ("earliest", "latest")


class Location(NamedTuple):
    """Where in a file something was said."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class PipelineError(Exception):
    """A mistake in a pipeline's file, in one line that says where."""

    def __init__(self, place: Location, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place
        self.message = message


class Connector(Enum):
    """What data comes from or goes to; the values are the words of the grammar."""

    TOPIC = "topic"
    PATTERN = "pattern"
    DELTA = "delta"
    ICEBERG = "iceberg"
    DATABASE = "database"
    FILES = "files"
    CONSOLE = "console"


class Kind(Enum):
    STREAM = "stream"
    TABLE = "table"


class Violation(Enum):
    """What happens to a row that breaks an expectation."""

    WARN = "warn"
    DROP = "drop"
    FAIL = "fail"
    DEAD_LETTER = "dead letter"


class Output(Enum):
    """Spark's output modes."""

    APPEND = "append"
    UPDATE = "update"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Endpoint:
    connector: Connector
    location: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.connector.value} {self.location}".rstrip()


@dataclass(frozen=True, slots=True)
class Watermark:
    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Shaping:
    """What is done to rows, streams above all, before anybody reads them by name."""

    watermark: Watermark | None = None
    deduplicate: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """Everything that is there once (0), a batch each interval, or as fast as batches go (None)."""

    interval_ms: int | None = None

    @property
    def is_once(self) -> bool:
        return self.interval_ms == 0

    def __str__(self) -> str:
        if self.interval_ms is None:
            return "continuous"
        return "once" if self.is_once else f"every {self.interval_ms} ms"


ONCE = Schedule(0)
CONTINUOUS = Schedule(None)


@dataclass(frozen=True, slots=True)
class Query:
    """SQL, or a Python function of frames; and the names that it reads."""

    inputs: tuple[str, ...]
    sql: str | None = None
    function: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    kind: Kind
    endpoint: Endpoint
    place: Location
    keys: tuple[str, ...] = ()
    are_changes: bool = False  # change events in Debezium's envelope
    shaping: Shaping = Shaping()


@dataclass(frozen=True, slots=True)
class View:
    name: str
    query: Query
    place: Location
    shaping: Shaping = Shaping()


@dataclass(frozen=True, slots=True)
class Expectation:
    name: str
    on: str
    condition: str
    otherwise: Violation
    place: Location


@dataclass(frozen=True, slots=True)
class Sink:
    name: str
    endpoint: Endpoint
    query: Query
    place: Location
    keys: tuple[str, ...] = ()
    is_upsert: bool = False
    output: Output | None = None
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    views: tuple[View, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    sinks: tuple[Sink, ...] = ()
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)  # for SQL to call

    @property
    def place(self) -> Location:
        """Its file as a whole: settings do not know their lines."""
        said = next((one.place.file for one in (*self.relations(), *self.sinks)), self.name)
        return Location(said, 1)

    @property
    def starts_at(self) -> str:
        """Where streams begin that do not say so themselves: with the oldest record, so that a result lacks nothing."""
        return self.settings.get(STARTING, STARTS[0]).strip().lower()

    def relations(self) -> Iterator[Source | View]:
        """What queries can read by name."""
        yield from self.sources
        yield from self.views

    def queries(self) -> Iterator[View | Sink]:
        """What reads others by name."""
        yield from self.views
        yield from self.sinks

    def expectations_of(self, name: str) -> list[Expectation]:
        return [one for one in self.expectations if one.on.lower() == name.lower()]

    def has_dead_letters(self, name: str) -> bool:
        return any(one.otherwise is Violation.DEAD_LETTER for one in self.expectations_of(name))

    def upstream(self, names: Iterable[str], *, stop: str | None = None) -> set[str]:
        """All relations that are read, directly or through others, in lower case; nothing beyond `stop`."""
        views = {view.name.lower(): view.query.inputs for view in self.views}
        reached, ahead = set[str](), [name.lower() for name in names]
        while ahead:
            name = ahead.pop()
            if name not in reached:
                reached.add(name)
                ahead += (one.lower() for one in views.get(name, ()) if stop is None or name != stop.lower())
        return reached

    def read_by(self, query: Query) -> Plan:
        """With the sources and views alone that a query reads, directly or through others."""
        reached = self.upstream(query.inputs)
        return replace(
            self,
            sources=tuple(one for one in self.sources if one.name.lower() in reached),
            views=tuple(one for one in self.views if one.name.lower() in reached),
        )

    def tables_of(self, name: str) -> list[str]:
        """The tables that a relation reads, itself included."""
        reached = self.upstream([name])
        return [one.name for one in self.sources if one.kind is Kind.TABLE and one.name.lower() in reached]

    def schedule_of(self, sink: Sink) -> Schedule:
        return sink.schedule or CONTINUOUS


def letters_topic(relation: str, plan: Plan) -> str:
    """Where rows of a relation go that break an expectation of it."""
    return f"{plan.name}.{relation}{LETTERS_SUFFIX}"

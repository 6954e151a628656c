"""What may follow the head of a statement: keys, watermarks, options, schedules; in any order, once each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from moldau.spark.pipelines.language.cursor import Cursor
from moldau.spark.pipelines.language.durations import duration_ms
from moldau.spark.pipelines.plan import CONTINUOUS, ONCE, Output, PipelineError, Schedule, Shaping, Watermark


@dataclass(slots=True)
class Clauses:
    keys: tuple[str, ...] = ()
    shaping: Shaping = field(default_factory=Shaping)
    options: dict[str, str] = field(default_factory=dict)
    are_changes: bool = False
    is_upsert: bool = False
    output: Output | None = None
    schedule: Schedule | None = None


class Clause(NamedTuple):
    """The words that it begins with, and what the rest of it does."""

    words: tuple[str, ...]
    read: Callable[[Cursor, Clauses], None]


def read_clauses(cursor: Cursor, *allowed: Clause) -> Clauses:
    clauses, seen = Clauses(), set[Clause]()
    while found := next((one for one in allowed if cursor.accept(*one.words)), None):
        if found in seen:
            raise PipelineError(cursor.place, f"{' '.join(found.words).upper()} is said twice")
        seen.add(found)
        found.read(cursor, clauses)
    return clauses


def duration(cursor: Cursor) -> int:
    place, text = cursor.place, cursor.text("a duration such as '10 minutes'")
    try:
        return duration_ms(text)
    except ValueError as wrong:
        raise PipelineError(place, str(wrong)) from None


def _keys(cursor: Cursor, clauses: Clauses) -> None:
    clauses.keys = cursor.names()


def _watermark(cursor: Cursor, clauses: Clauses) -> None:
    column = cursor.name("the column of the event's time")
    cursor.expect("delay")
    watermark = Watermark(column, f"{duration(cursor)} milliseconds")
    clauses.shaping = replace(clauses.shaping, watermark=watermark)


def _deduplicate(cursor: Cursor, clauses: Clauses) -> None:
    clauses.shaping = replace(clauses.shaping, deduplicate=cursor.names())


def _options(cursor: Cursor, clauses: Clauses) -> None:
    cursor.expect_sign("(")
    while True:
        place, key = cursor.place, cursor.value("an option's name")
        cursor.expect_sign("=")
        if key in clauses.options:
            raise PipelineError(place, f"option {key} is given twice")
        clauses.options[key] = cursor.value("the option's value")
        if not cursor.accept_sign(","):
            break
    cursor.expect_sign(")")


def _changes(_: Cursor, clauses: Clauses) -> None:
    clauses.are_changes = True


def _upsert(_: Cursor, clauses: Clauses) -> None:
    clauses.is_upsert = True


def _output(cursor: Cursor, clauses: Clauses) -> None:
    clauses.output = cursor.choice(Output, "APPEND, UPDATE or COMPLETE")


def _schedule(schedule: Schedule, clauses: Clauses, cursor: Cursor) -> None:
    if clauses.schedule is not None:
        raise PipelineError(cursor.place, f"two schedules: {clauses.schedule} and {schedule}")
    clauses.schedule = schedule


KEY = Clause(("key",), _keys)
WATERMARK = Clause(("watermark",), _watermark)
DEDUPLICATE = Clause(("deduplicate", "on"), _deduplicate)
OPTIONS = Clause(("with",), _options)
CHANGES = Clause(("changes",), _changes)
UPSERT = Clause(("upsert",), _upsert)
OUTPUT = Clause(("output",), _output)
SCHEDULES = (
    Clause(("once",), lambda cursor, clauses: _schedule(ONCE, clauses, cursor)),
    Clause(("continuous",), lambda cursor, clauses: _schedule(CONTINUOUS, clauses, cursor)),
    Clause(("every",), lambda cursor, clauses: _schedule(Schedule(duration(cursor)), clauses, cursor)),
)

"""Where a group is to read on, as pure rules: what is asked for, what a log and a group have, and what follows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto

from moldau.core.ids import TopicPartition


class Target(Enum):
    EARLIEST = auto()
    LATEST = auto()
    CURRENT = auto()
    """What is committed, or the end where nothing is."""
    OFFSET = auto()
    SHIFT = auto()
    """From what is committed, forward or back."""
    TIMESTAMP = auto()
    """The first record that is as late, in milliseconds; the end if none is."""


@dataclass(frozen=True, slots=True)
class Rule:
    target: Target
    number: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """Of one partition; `at_time` is the offset of a rule's timestamp, None if no record is as late."""

    start: int
    end: int
    committed: int | None = None
    at_time: int | None = None


class Surprise(Enum):
    """Why a new offset is not the one that was asked for."""

    ABOVE_END = auto()
    BELOW_START = auto()
    NONE_SO_LATE = auto()


@dataclass(frozen=True, slots=True)
class NewOffset:
    offset: int
    asked: int | None = None
    surprise: Surprise | None = None


class NothingCommitted(Exception):
    """There is no offset to count from."""

    def __init__(self, place: TopicPartition) -> None:
        super().__init__(f"Cannot shift offset for partition {place} since there is no current committed offset")
        self.place = place


EARLIEST, LATEST, CURRENT = Rule(Target.EARLIEST), Rule(Target.LATEST), Rule(Target.CURRENT)


def new_offset(rule: Rule, known: Known, place: TopicPartition) -> NewOffset:
    """Raises NothingCommitted."""
    match rule.target:
        case Target.EARLIEST:
            return NewOffset(known.start)
        case Target.LATEST:
            return NewOffset(known.end)
        case Target.CURRENT:
            return NewOffset(known.end if known.committed is None else known.committed)
        case Target.OFFSET:
            return within(rule.number, known)
        case Target.SHIFT:
            if known.committed is None:
                raise NothingCommitted(place)
            return within(known.committed + rule.number, known)
        case Target.TIMESTAMP:
            if known.at_time is None:
                return NewOffset(known.end, surprise=Surprise.NONE_SO_LATE)
            return NewOffset(known.at_time)


def within(asked: int, known: Known) -> NewOffset:
    """What the log has: nobody can read before its start or after its end."""
    if asked > known.end:
        return NewOffset(known.end, asked, Surprise.ABOVE_END)
    if asked < known.start:
        return NewOffset(known.start, asked, Surprise.BELOW_START)
    return NewOffset(asked, asked)


_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<days>[+-]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[+-]?\d+)H)?(?:(?P<minutes>[+-]?\d+)M)?"
    r"(?:(?P<seconds>[+-]?\d+)(?:[.,](?P<fraction>\d{0,9}))?S)?)?\Z",
    re.IGNORECASE,
)
_UNITS_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


def iso_duration_ms(text: str) -> int:
    """`P2DT3H4.5S`, as Java has it: days, hours, minutes and seconds, each of them and the whole with a sign."""
    found = _DURATION.match(text)
    parts = found.groupdict() if found else {}
    if not any(parts.get(unit) for unit in _UNITS_MS) or (parts.get("time") or "").upper() == "T":
        raise ValueError(f"{text!r} is no duration; expected PnDTnHnMnS, such as P1D, PT2H or PT1H30M")
    total_ms = sum(int(parts[unit] or 0) * unit_ms for unit, unit_ms in _UNITS_MS.items())
    fraction_ms = int((parts["fraction"] or "").ljust(3, "0")[:3])
    total_ms += -fraction_ms if (parts["seconds"] or "").startswith("-") else fraction_ms
    return -total_ms if parts["sign"] == "-" else total_ms


def datetime_ms(text: str) -> int:
    """`2026-01-31T12:00:00.000`, which is in UTC unless it says otherwise."""
    try:
        if "T" not in text:
            raise ValueError
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no time; expected YYYY-MM-DDThh:mm:ss.sss, in UTC or with an offset such as +02:00"
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)


Plans = Mapping[str, Mapping[TopicPartition, int]]
_ONE_GROUP_CELLS, _GROUPS_CELLS = 3, 4


def read_plans(text: str, *, group: str | None) -> Plans:
    """CSV of topic,partition,offset where there is one `group`, and of group,topic,partition,offset."""
    rows = [row for row in csv.reader(text.splitlines()) if row]
    cells = _ONE_GROUP_CELLS if group is not None and rows and len(rows[0]) == _ONE_GROUP_CELLS else _GROUPS_CELLS
    plans: dict[str, dict[TopicPartition, int]] = {}
    for number, row in enumerate(rows, 1):
        if len(row) != cells or not all(re.fullmatch(r"\d{1,19}", each) for each in row[-2:]):
            wanted = "topic,partition,offset" if group is not None else "group,topic,partition,offset"
            raise ValueError(f"row {number} is {','.join(row)!r}; expected {wanted}")
        owner = str(group) if cells == _ONE_GROUP_CELLS else row[0]
        plans.setdefault(owner, {})[TopicPartition(row[-3], int(row[-2]))] = int(row[-1])
    return plans


def places_text(places: Iterable[TopicPartition]) -> str:
    """`orders:0,1;other:0`, topics in order."""
    by_topic: dict[str, list[int]] = {}
    for place in sorted(places):
        by_topic.setdefault(place.topic, []).append(place.partition)
    return ";".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in by_topic.items())

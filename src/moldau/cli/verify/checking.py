"""What became of records: acknowledged, in the log, read, lost, duplicated, out of order. Values in, counts out.

A value is PRODUCER.NUMBER, as `moldau verifiable-producer --value-prefix` makes them: the numbers of one producer grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

EXAMPLES_MAX = 5  # of what is wrong; the count is told beside them


class Acknowledged(NamedTuple):
    """`offset` is negative where the client was not told it: a batch that the broker had already."""

    value: str
    partition: int
    offset: int
    at_s: float


class Stored(NamedTuple):
    """In the log when all was over, as a reader of committed records sees it."""

    value: str
    partition: int
    offset: int


class Read(NamedTuple):
    value: str
    partition: int
    offset: int
    at_s: float


class Gap(NamedTuple):
    begin_s: float
    length_s: float


@dataclass(frozen=True, slots=True)
class Counts:
    acknowledged: int = 0
    read: int | None = None
    """Values, however often they were delivered; None where nobody was to read."""
    lost: int = 0
    """Acknowledged, and not where the acknowledgement said."""
    unread: int = 0
    """Acknowledged, in the log, and delivered to no consumer."""
    duplicated: int = 0
    """More than once in the log."""
    redelivered: int = 0
    """Read more than once from one place, as consumers do that lost what they had not committed."""
    out_of_order: int = 0
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def complaints(self) -> list[str]:
        """What may not be, whoever is judged; a consumer's second look at a record is its own affair."""
        words = {
            "lost": "acknowledged records are lost",
            "unread": "acknowledged records were not read",
            "duplicated": "records are in the log more than once",
            "out_of_order": "records are out of order",
        }
        found = {name: getattr(self, name) for name in words}
        return [
            f"{count} {words[name]}, such as {', '.join(self.examples[name])}" for name, count in found.items() if count
        ]


def judged(
    acknowledged: Sequence[Acknowledged], stored: Sequence[Stored], readers: Mapping[str, Sequence[Read]] | None
) -> Counts:
    """`readers` are the members of one group; None where nobody was to read."""
    delivered = {each.value for records in (readers or {}).values() for each in records}
    places = _places(stored)
    lost = [each for each in acknowledged if not _is_kept(each, places.get(each.value, ()))]
    lost_values = {each.value for each in lost}
    unread = [each for each in acknowledged if each.value not in delivered and each.value not in lost_values]
    found: dict[str, list[str]] = {
        "lost": [_named(each) for each in lost],
        "unread": [] if readers is None else [_named(each) for each in unread],
        "duplicated": [f"{value} at {_listed(where)}" for value, where in places.items() if len(where) > 1],
        "redelivered": _redelivered(readers or {}),
        "out_of_order": [*_log_disorder(stored), *_reading_disorder(readers or {})],
    }
    return Counts(
        acknowledged=len({each.value for each in acknowledged}),
        read=None if readers is None else len(delivered),
        examples={name: each[:EXAMPLES_MAX] for name, each in found.items()},
        **{name: len(each) for name, each in found.items()},
    )


def _places(stored: Iterable[Stored]) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for each in stored:
        found.setdefault(each.value, []).append((each.partition, each.offset))
    return found


def _is_kept(each: Acknowledged, places: Sequence[tuple[int, int]]) -> bool:
    """A record at another offset than was acknowledged is not the one that was acknowledged."""
    return bool(places) if each.offset < 0 else (each.partition, each.offset) in places


def _redelivered(readers: Mapping[str, Sequence[Read]]) -> list[str]:
    seen: set[tuple[int, int]] = set()
    again: list[str] = []
    for records in readers.values():
        for each in records:
            if (each.partition, each.offset) in seen:
                again.append(_named(each))
            seen.add((each.partition, each.offset))
    return again


def _log_disorder(stored: Sequence[Stored]) -> list[str]:
    """In each partition the numbers of a producer grow; a value that is there twice is a duplicate, no disorder."""
    last: dict[tuple[int, str], int] = {}
    seen: set[str] = set()
    found = []
    for each in sorted(stored, key=lambda each: (each.partition, each.offset)):
        producer, number = _parsed(each.value)
        if each.value not in seen and number < last.get((each.partition, producer), -1):
            found.append(_named(each))
        seen.add(each.value)
        last[each.partition, producer] = max(number, last.get((each.partition, producer), -1))
    return found


def _reading_disorder(readers: Mapping[str, Sequence[Read]]) -> list[str]:
    """What a reader got for the first time, and behind a record that comes later in its partition."""
    found = []
    for records in readers.values():
        ends: dict[int, int] = {}
        seen: set[tuple[int, int]] = set()
        for each in records:
            place = (each.partition, each.offset)
            if place not in seen and each.offset < ends.get(each.partition, -1):
                found.append(_named(each))
            seen.add(place)
            ends[each.partition] = max(each.offset, ends.get(each.partition, -1))
    return found


def _parsed(value: str) -> tuple[str, int]:
    producer, _, number = value.rpartition(".")
    return producer, int(number)


def _named(each: Acknowledged | Stored | Read) -> str:
    return f"{each.value} at {each.partition}:{each.offset}"


def _listed(places: Sequence[tuple[int, int]]) -> str:
    return " and ".join(f"{partition}:{offset}" for partition, offset in places)


def longest_gap(times_s: Iterable[float], begin_s: float, end_s: float) -> Gap:
    """The longest time between two of them, or to an edge of the span that is looked at."""
    marks = [begin_s, *sorted(each for each in times_s if begin_s <= each <= end_s), end_s]
    return max((Gap(one, other - one) for one, other in pairwise(marks)), key=lambda gap: gap.length_s)


def first_from(times_s: Iterable[float], at_s: float) -> float | None:
    return min((each for each in times_s if each >= at_s), default=None)


def longest_pause_by_partition(records: Iterable[Read], begin_s: float, end_s: float) -> dict[int, float]:
    """How long each partition was not read at most: what a rebalance costs whoever waits for its records."""
    times: dict[int, list[float]] = {}
    for each in records:
        times.setdefault(each.partition, []).append(each.at_s)
    return {partition: longest_gap(each, begin_s, end_s).length_s for partition, each in sorted(times.items())}

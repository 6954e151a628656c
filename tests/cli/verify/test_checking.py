"""What is lost, unread, duplicated and out of order, by tables: a checker that can't fail is worth nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from moldau.cli.verify.checking import (
    Acknowledged,
    Counts,
    Gap,
    Read,
    Stored,
    first_from,
    judged,
    longest_gap,
    longest_pause_by_partition,
)

WRONG = ("lost", "unread", "duplicated", "redelivered", "out_of_order")
ZERO = dict.fromkeys(WRONG, 0)


def acknowledged(*records: tuple[str, int, int]) -> list[Acknowledged]:
    return [Acknowledged(*each, at_s=0.0) for each in records]


def stored(*records: tuple[str, int, int]) -> list[Stored]:
    return [Stored(*each) for each in records]


def read(*records: tuple[str, int, int]) -> list[Read]:
    return [Read(*each, at_s=0.0) for each in records]


def found(counts: Counts) -> Mapping[str, int]:
    return {name: getattr(counts, name) for name in WRONG}


A, B, C = ("0.0", 0, 0), ("0.1", 0, 1), ("0.2", 0, 2)
ALL = [A, B, C]


@pytest.mark.parametrize(
    ("sent", "kept", "readers", "wrong"),
    [
        pytest.param(ALL, ALL, [ALL], {}, id="all well"),
        pytest.param([], [], [[]], {}, id="nothing at all"),
        pytest.param([A], ALL, [ALL], {}, id="what was not acknowledged may be there"),
        pytest.param(ALL, [A, B], [ALL], {"lost": 1}, id="lost though it was read"),
        pytest.param(ALL, [A, B], [[A, B]], {"lost": 1}, id="lost, and that alone is told"),
        pytest.param(ALL, [], [[]], {"lost": 3}, id="all lost"),
        pytest.param(ALL, [A, B, ("0.2", 0, 7)], [ALL], {"lost": 1}, id="not where it was acknowledged"),
        pytest.param(ALL, [A, B, ("0.2", 1, 2)], [ALL], {"lost": 1}, id="in another partition"),
        pytest.param([("0.2", 0, -1)], [("0.2", 0, 7)], [[C]], {}, id="acknowledged without an offset"),
        pytest.param([("0.2", 0, -1)], [A], [[C]], {"lost": 1}, id="without an offset, and lost"),
        pytest.param(ALL, ALL, [[A, C]], {"unread": 1}, id="not read"),
        pytest.param(ALL, ALL, [[]], {"unread": 3}, id="nothing read"),
        pytest.param(ALL, ALL, [[A], [B, C]], {}, id="read by several"),
        pytest.param(ALL, ALL, None, {}, id="nobody was to read"),
        pytest.param(ALL, [*ALL, ("0.1", 0, 3)], [ALL], {"duplicated": 1}, id="duplicated in its partition"),
        pytest.param(ALL, [*ALL, ("0.1", 1, 0)], [ALL], {"duplicated": 1}, id="duplicated in another one"),
        pytest.param(ALL, ALL, [ALL, [B, C]], {"redelivered": 2}, id="another member reads again"),
        pytest.param(ALL, ALL, [[A, B, A, B, C]], {"redelivered": 2}, id="a member goes back"),
        pytest.param(ALL, ALL, [[A, C, B]], {"out_of_order": 1}, id="read out of order"),
        pytest.param(
            [A, ("0.2", 0, 1), ("0.1", 0, 2)], [A, ("0.2", 0, 1), ("0.1", 0, 2)], [[A, ("0.2", 0, 1), ("0.1", 0, 2)]],
            {"out_of_order": 1}, id="written out of order",
        ),
        pytest.param(
            [("0.5", 0, 0), ("1.0", 0, 1)], [("0.5", 0, 0), ("1.0", 0, 1)], None, {}, id="each producer has its numbers"
        ),
        pytest.param([("0.5", 0, 0), ("0.1", 1, 0)], [("0.5", 0, 0), ("0.1", 1, 0)], None, {}, id="each partition"),
        pytest.param([("0.10", 0, 1), ("0.9", 0, 0)], [("0.9", 0, 0), ("0.10", 0, 1)], None, {}, id="as numbers"),
    ],
)  # fmt: skip
def test_what_became_of_records(
    sent: Sequence[Any], kept: Sequence[Any], readers: Sequence[Sequence[Any]] | None, wrong: Mapping[str, int]
) -> None:
    named = None if readers is None else {str(at): read(*records) for at, records in enumerate(readers)}
    assert found(judged(acknowledged(*sent), stored(*kept), named)) == {**ZERO, **wrong}


def test_counts_name_examples_and_complain() -> None:
    counts = judged(acknowledged(*ALL), stored(A, B, ("0.1", 0, 3)), {"one": read(A)})
    assert (counts.acknowledged, counts.read) == (3, 1)
    assert counts.complaints == [
        "1 acknowledged records are lost, such as 0.2 at 0:2",
        "1 acknowledged records were not read, such as 0.1 at 0:1",
        "1 records are in the log more than once, such as 0.1 at 0:1 and 0:3",
    ]


def test_a_second_delivery_is_no_complaint() -> None:
    counts = judged(acknowledged(*ALL), stored(*ALL), {"one": read(*ALL), "two": read(B, C)})
    assert (counts.redelivered, counts.complaints) == (2, [])


@pytest.mark.parametrize(
    ("times_s", "gap"),
    [
        ([], Gap(1.0, 9.0)),
        ([2.0, 3.0, 9.5], Gap(3.0, 6.5)),
        ([2.0, 3.0], Gap(3.0, 7.0)),
        ([7.0, 8.0, 9.0], Gap(1.0, 6.0)),
        ([9.0, 3.0, 5.0, 0.0, 40.0], Gap(5.0, 4.0)),
    ],
)
def test_longest_gap(times_s: Sequence[float], gap: Gap) -> None:
    assert longest_gap(times_s, 1.0, 10.0) == gap


def test_first_from() -> None:
    assert first_from([5.0, 3.0, 4.0], 3.5) == 4.0
    assert first_from([3.0], 3.5) is None


def test_a_partition_that_stands_still_is_seen_beside_one_that_moves() -> None:
    moving = [Read(f"0.{at}", 0, at, float(at)) for at in range(11)]
    still = [Read("1.0", 1, 0, 1.0), Read("1.1", 1, 1, 8.0)]
    assert longest_pause_by_partition([*moving, *still], 0.0, 10.0) == {0: 1.0, 1: 7.0}

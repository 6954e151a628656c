"""Burrow's rules against histories: each line of histories.txt is one, with the verdict of Burrow's own code.

A history is `offset@second/lag` for each commit, `-` for a lag that nobody knows; then the recent ends of the log, the
lag as it is, the time and, where it is not 0, the allowed lag.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.monitor.rules import (
    Commit,
    PartitionVerdict,
    Status,
    group_status,
    group_verdict,
    has_gained,
    has_rewound,
    has_stopped,
    partition_status,
    was_caught_up,
)

HISTORIES = Path(__file__).with_name("histories.txt").read_text().splitlines()

NAMED = {line[8:].partition("|")[0].strip(): line for line in HISTORIES}


def parsed(line: str) -> tuple[Status, list[Commit], list[int], int, int, int]:
    head, history, *facts = (part.strip() for part in line.split("|"))
    known = {name: words for name, *words in (fact.split() for fact in facts)}
    commits = []
    for word in history.split():
        offset, _, rest = word.partition("@")
        second, _, lag = rest.partition("/")
        commits.append(Commit(int(offset), int(second) * 1_000, None if lag == "-" else int(lag)))
    allowed = int(known.get("allowed", ["0"])[0])
    ends = [int(each) for each in known["ends"]]
    return Status[head.split()[0]], commits, ends, int(known["lag"][0]), int(known["now"][0]) * 1_000, allowed


@pytest.mark.parametrize("name", NAMED)
def test_the_verdict_on_a_history_is_burrows(name: str) -> None:
    status, commits, ends, lag, now_ms, allowed = parsed(NAMED[name])
    found = partition_status(commits, ends, current_lag=lag, now_ms=now_ms, allowed_lag=allowed)
    assert found.name == status.name


def test_the_table_has_histories_of_every_status() -> None:
    statuses = [parsed(line)[0] for line in NAMED.values()]
    assert len(statuses) >= 60
    assert set(statuses) == set(Status) - {Status.NOTFOUND, Status.ERR}


def test_burrows_clock_has_whole_seconds() -> None:
    commits = [Commit(10, 0), Commit(11, 1_000)]
    assert not has_stopped(commits, 2_999)
    assert has_stopped(commits, 3_000)


def test_parts_of_the_rules() -> None:
    commits = [Commit(10, 0, 5), Commit(8, 1, None), Commit(9, 2, 6)]
    assert has_rewound(commits)
    assert not has_rewound([*commits, Commit(10, 3)])
    assert not has_gained(commits)
    assert has_gained([*commits, Commit(10, 3, 5)])
    assert (was_caught_up(9, [12, 9]), was_caught_up(9, [12, 10]), was_caught_up(9, [])) == (True, False, False)


def verdict(status: Status = Status.OK, lag: int = 0, complete: float = 1.0, partition: int = 0) -> PartitionVerdict:
    return PartitionVerdict("orders", partition, status=status, current_lag=lag, complete=complete)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], Status.OK),
        ([Status.OK, Status.OK], Status.OK),
        ([Status.OK, Status.WARN], Status.WARN),
        ([Status.STOP], Status.ERR),
        ([Status.WARN, Status.STALL, Status.OK], Status.ERR),
        ([Status.REWIND, Status.WARN], Status.ERR),
    ],
)
def test_a_group_is_as_bad_as_its_worst_partition(statuses: list[Status], expected: Status) -> None:
    assert group_status(verdict(each) for each in statuses) == expected


def test_a_groups_figures() -> None:
    partitions = [
        verdict(lag=5, complete=0.9),
        verdict(Status.WARN, lag=7, partition=1),
        verdict(lag=7, partition=2),
        PartitionVerdict("orders", 3, lag_seconds=2.5),
    ]
    group = group_verdict("local", "billing", partitions)
    assert (group.status, group.complete, group.totallag) == (Status.WARN, 0.5, 19)
    assert group.maxlag == partitions[1], "the first of those that lag most"
    assert group.in_trouble == (partitions[1],)
    assert group.lag_seconds == 2.5


def test_a_group_without_partitions_is_ok_and_not_complete() -> None:
    group = group_verdict("local", "billing", [])
    assert (group.status, group.complete, group.totallag, group.maxlag) == (Status.OK, 0.0, 0, None)
    assert group.lag_seconds is None

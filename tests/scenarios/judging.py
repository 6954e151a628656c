"""What a scenario found: figures for its row of the table, and what was wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.scenarios.clients import Member, Record, Sender


class Wrong(Exception):
    """A scenario can't go on: what it waited for never came."""


@dataclass
class Outcome:
    figures: dict[str, str] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    @property
    def has_passed(self) -> bool:
        return not self.complaints

    def forbid(self, found: Sequence[object], what: str) -> None:
        if found:
            self.complaints.append(f"{len(found)} {what}, such as {', '.join(map(str, found[:3]))}")


def judge(outcome: Outcome, sender: Sender, members: Iterable[Member]) -> None:
    """Nothing acknowledged is lost, no value has two offsets, no offset two values, and nothing is read twice."""
    progress = sender.progress
    read = [record for member in members for record in member.records]
    values = {record.value for record in read}
    outcome.figures |= {
        "acknowledged": str(len(progress.acknowledged)),
        "longest wait": f"{progress.longest_wait_s:.1f} s",
    }
    outcome.forbid(progress.failures, "sends failed")
    outcome.forbid(
        [record for record in progress.acknowledged if record.value not in values], "acknowledged records were lost"
    )
    outcome.forbid(_with_two_offsets([*read, *progress.acknowledged]), "records have two offsets")
    outcome.forbid(_with_two_values([*read, *progress.acknowledged]), "offsets have two values")
    deliveries = Counter((record.partition, record.offset) for record in read)
    outcome.forbid([each for each, count in deliveries.items() if count > 1], "records were read twice")
    for member in members:
        outcome.forbid(_out_of_order(member.records), "records were read out of order")


def _with_two_offsets(records: list[Record]) -> list[str]:
    places: dict[str, set[tuple[int, int]]] = {}
    for record in records:
        places.setdefault(record.value, set()).add((record.partition, record.offset))
    return [f"{value} at {sorted(where)}" for value, where in places.items() if len(where) > 1]


def _with_two_values(records: list[Record]) -> list[str]:
    values: dict[tuple[int, int], set[str]] = {}
    for record in records:
        values.setdefault((record.partition, record.offset), set()).add(record.value)
    return [f"{place}: {sorted(found)}" for place, found in values.items() if len(found) > 1]


def _out_of_order(records: list[Record]) -> list[Record]:
    ends: dict[int, int] = {}
    found = []
    for record in records:
        if record.offset < ends.get(record.partition, -1):
            found.append(record)
        ends[record.partition] = record.offset
    return found

"""Where Moldau's answer may differ from Apache Kafka's, and why. Anything else that differs fails the tests.

A row that no longer matches anything fails them too, so that this list is always the whole and present truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.differential.world import Step


@dataclass(frozen=True, slots=True)
class Difference:
    """A scenario, and patterns, as of file names, for its steps and the fields of their answers."""

    scenario: str
    step: str
    field: str
    reason: str

    def covers(self, scenario: str, step: str, path: str) -> bool:
        return scenario == self.scenario and fnmatchcase(step, self.step) and fnmatchcase(path, self.field)


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "produce.null_records",
        "*",
        "*",
        "Apache Kafka trips over null records and never answers; we refuse the partition and go on.",
    ),
)


@dataclass(frozen=True, slots=True)
class Disagreement:
    step: str
    path: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.step}: {self.path or 'answer'}: Apache Kafka says {self.theirs!r}, we say {self.ours!r}"


MISSING = "nothing"
RECORDS = ".records"  # compared as a whole: the batches of one partition


def disagreements(theirs: list[Step], ours: list[Step]) -> Iterator[Disagreement]:
    """Every field of every answer that is not the same, in the order of the steps."""
    for (step, their_answer), (_, our_answer) in zip(theirs, ours, strict=True):
        if their_answer != our_answer:
            left, right = dict(leaves(their_answer)), dict(leaves(our_answer))
            for path in left | right:
                if left.get(path, MISSING) != right.get(path, MISSING):
                    yield Disagreement(step, path, left.get(path, MISSING), right.get(path, MISSING))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list) and value and not path.endswith(RECORDS):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in items:
            yield from leaves(one, f"{path}.{key}" if path else str(key))
    else:
        yield path, value

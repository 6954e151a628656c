"""What a check says: how bad it is, what was seen, why that matters, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TypeAlias, TypeVar

SHOWN_MAX = 5  # of a list in a sentence; the rest is counted


class Severity(StrEnum):
    """`problem` is broken or about to be, `warning` will hurt when something fails or grows, `note` could be better."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    check: str
    """The name of what was checked, which stays: scripts may look for it."""
    subject: str
    """What it is about: a setting, a folder, a broker, a topic, a group."""
    seen: str
    why: str = ""
    do: tuple[str, ...] = ()
    """Commands, or lines of a file; each stands for itself."""

    def row(self, area: str) -> dict[str, object]:
        found = asdict(self)
        found["severity"] = str(self.severity)
        found["do"] = list(self.do)
        return {"area": area, **found}


F = TypeVar("F")
Check: TypeAlias = Callable[[F], Iterable[Finding]]
"""A pure function from facts to findings; one without a finding had nothing to judge."""


def run_checks(checks: Iterable[Check[F]], facts: F) -> Iterator[Finding]:
    for check in checks:
        yield from check(facts)


def ok(check: str, subject: str, seen: str) -> Finding:
    return Finding(Severity.OK, check, subject, seen)


def listed(things: Sequence[object]) -> str:
    """`a, b, c and 4 more`."""
    shown = ", ".join(map(str, things[:SHOWN_MAX]))
    more = len(things) - SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"

"""What a scenario found: its verdict, counts and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from moldau.cli.verify.checking import Counts

HELD, FAILED, SKIPPED = "held", "FAILED", "skipped"

Figure = float | int | str | Sequence[float]


class Wrong(Exception):
    """A scenario can't go on: what it waited for never came."""


class Skipped(Exception):
    """A scenario can't be tried on this cluster; the text says why."""


@dataclass(slots=True)
class Outcome:
    scenario: str
    counts: Counts = field(default_factory=Counts)
    figures: dict[str, Figure] = field(default_factory=dict)
    """Names end in their units: `election_ms` is a list, one for each round."""
    complaints: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: str | None = None
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        if self.complaints:
            return FAILED
        return HELD if self.skipped is None else SKIPPED

    def take(self, counts: Counts) -> None:
        """Beside what was counted before, where a scenario has several parts."""
        mine = self.counts
        names = ("acknowledged", "lost", "unread", "duplicated", "redelivered", "out_of_order")
        examples = {
            name: [*mine.examples.get(name, ()), *counts.examples.get(name, ())]
            for name in {**mine.examples, **counts.examples}
        }
        sums = {name: getattr(mine, name) + getattr(counts, name) for name in names}
        read = None if mine.read is None and counts.read is None else (mine.read or 0) + (counts.read or 0)
        self.counts = Counts(**sums, read=read, examples=examples)
        self.complaints += counts.complaints

    def add(self, name: str, value: float) -> None:
        """One more of a figure that is measured several times."""
        known = self.figures.get(name, [])
        assert isinstance(known, list), f"{name} is one figure"
        self.figures[name] = [*known, value]

    def times(self, name: str) -> list[float]:
        found = self.figures.get(name, [])
        return [*found] if isinstance(found, list) else [float(str(found))]


def told(figures: Mapping[str, Figure]) -> list[str]:
    """For people: a list by its median and its maximum."""
    return [f"{_label(name)} {_value(name, value)}" for name, value in figures.items()]


def _label(name: str) -> str:
    return name.removesuffix("_ms").replace("_", " ")


def _value(name: str, value: Figure) -> str:
    unit = " ms" if name.endswith("_ms") else ""
    if isinstance(value, list):
        if len(value) == 1:
            return f"{value[0]:.0f}{unit}"
        return f"{median(value):.0f}{unit} (max {max(value):.0f}{unit}, {len(value)} times)"
    return f"{value:.0f}{unit}" if isinstance(value, float) else f"{value}{unit}"

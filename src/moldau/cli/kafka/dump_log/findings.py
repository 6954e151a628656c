"""What is wrong with the files that were read, told at the end as Apache Kafka's tool tells it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

Pairs = dict[str, list[tuple[int, int]]]

DAMAGES_SHOWN_MAX = 20  # of one run; a file of which every batch is broken has no end of them


class Damaged(Exception):
    """A file that can't be read on; the message says which and where."""


@dataclass(slots=True)
class Findings:
    index_mismatches: Pairs = field(default_factory=dict)
    timestamp_mismatches: Pairs = field(default_factory=dict)
    timestamps_out_of_order: Pairs = field(default_factory=dict)
    offsets_not_found: Pairs = field(default_factory=dict)
    gaps: Pairs = field(default_factory=dict)
    padding_pairs: int = 0  # of those above that stand for the zeros in which a broker's new index begins
    damages: list[str] = field(default_factory=list)
    damage_count: int = 0

    def add_damage(self, message: str) -> None:
        self.damage_count += 1
        if self.damage_count <= DAMAGES_SHOWN_MAX:
            self.damages.append(message)

    @property
    def is_sound(self) -> bool:
        """Gaps between offsets are none of it: compaction makes them."""
        return not self.damage_count and self.pair_count == self.padding_pairs

    @property
    def pair_count(self) -> int:
        """Of index entries that don't fit the log."""
        found = (
            self.index_mismatches,
            self.timestamp_mismatches,
            self.timestamps_out_of_order,
            self.offsets_not_found,
        )
        return sum(len(pairs) for each in found for pairs in each.values())

    def print_all(self) -> None:
        """The words, and the order, of Apache Kafka's tool; its last lines are ours."""
        _tell(
            {path: sorted(dict(pairs).items(), reverse=True) for path, pairs in self.index_mismatches.items()},
            "Mismatches in :{path}",
            "  Index offset: {}, log offset: {}",
        )
        _tell(
            self.timestamp_mismatches,
            "Found timestamp mismatch in :{path}",
            "  Index timestamp: {}, log timestamp: {}",
        )
        _tell(
            self.timestamps_out_of_order,
            "Found out of order timestamp in :{path}",
            "  Index timestamp: {}, Previously indexed timestamp: {}",
        )
        _tell(
            self.offsets_not_found,
            "The following indexed offsets are not found in :{path}",
            "Indexed offset: {}, found log offset: {}",
        )
        _tell(self.gaps, "Non-consecutive offsets in {path}", "  {} is followed by {}")
        self._print_damages()

    def _print_damages(self) -> None:
        for message in self.damages:
            _say(f"moldau dump-log: {message}")
        if self.damage_count > len(self.damages):
            _say(f"moldau dump-log: and {self.damage_count - len(self.damages)} more")


def add_pair(pairs: Pairs, path: str, first: int, second: int) -> None:
    pairs.setdefault(path, []).append((first, second))


def _tell(found: Pairs, head: str, line: str) -> None:
    for path, pairs in found.items():
        _say(head.format(path=path))
        for first, second in pairs:
            _say(line.format(first, second))


def _say(line: str) -> None:
    print(line, file=sys.stderr)

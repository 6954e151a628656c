"""What is remembered of a cluster between looks: the last commits of partitions of groups, and the ends of logs.

A window is one array of numbers: 10,000 groups of three partitions are 15 MB, as objects they would be ten times that.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from moldau.core.ids import TopicPartition
from moldau.monitor.rules import Commit

NUMBERS = 5  # of a commit: offset, timestamp, observed, order, lag
NO_LAG = -1
LAG_MAX = (1 << 63) - 1  # that a cell holds: brokers take any offset, and so the lowest that there is
NO_ORDER = -1
OFFSET, TIMESTAMP, ORDER = 0, 1, 3
GroupWindows = dict[str, dict[int, "Window"]]


class Window:
    """The last commits of one partition of a group, from the oldest on."""

    __slots__ = ("cells",)

    def __init__(self, cells: bytes = b"") -> None:
        self.cells = array("q", cells)

    def __len__(self) -> int:
        return len(self.cells) // NUMBERS

    def add(self, commit: Commit, *, size: int, min_distance_ms: int = 0, order: int = NO_ORDER) -> bool:
        """False for a commit that is here already, by its place among all commits of the cluster."""
        cells = self.cells
        timestamp_ms = commit.timestamp_ms
        if cells:
            if order != NO_ORDER and order <= cells[ORDER - NUMBERS]:
                return False
            last_ms = cells[TIMESTAMP - NUMBERS]
            if timestamp_ms - last_ms < min_distance_ms:
                # The earlier time stays, or a consumer that commits often would never get a second entry.
                timestamp_ms = last_ms
                del cells[-NUMBERS:]
        lag = NO_LAG if commit.lag is None else min(commit.lag, LAG_MAX)
        cells.extend((commit.offset, timestamp_ms, commit.observed_ms, order, lag))
        if len(cells) > size * NUMBERS:
            del cells[: len(cells) - size * NUMBERS]
        return True

    def commits(self) -> list[Commit]:
        return [self._commit(at) for at in range(0, len(self.cells), NUMBERS)]

    @property
    def first(self) -> Commit:
        return self._commit(0)

    @property
    def last(self) -> Commit:
        return self._commit(len(self.cells) - NUMBERS)

    def _commit(self, at: int) -> Commit:
        offset, timestamp_ms, observed_ms, _, lag = self.cells[at : at + NUMBERS]
        return Commit(offset, timestamp_ms, None if lag == NO_LAG else lag, observed_ms)


class Baseline:
    """An offset that a group had when it was first seen: nobody knows when it was committed, nor whether it moves."""

    __slots__ = ("offset", "since_ms")

    def __init__(self, offset: int, since_ms: int) -> None:
        self.offset = offset
        self.since_ms = since_ms


@dataclass(slots=True)
class Windows:
    """Of one cluster."""

    size: int
    min_distance_ms: int = 0
    groups: dict[str, GroupWindows] = field(default_factory=dict)
    ends: dict[TopicPartition, array[int]] = field(default_factory=dict)
    baselines: dict[str, dict[TopicPartition, Baseline]] = field(default_factory=dict)
    changed: set[tuple[str, TopicPartition]] = field(default_factory=set)
    """Windows that are not on disk as they are here."""
    gone: set[tuple[str, str | None]] = field(default_factory=set)
    """Groups, or topics of groups, that are still on disk."""

    def nobody_keeps(self) -> None:
        """What changed since the last look: groups come and go for as long as the process lives."""
        self.changed.clear()
        self.gone.clear()

    def window(self, group: str, place: TopicPartition) -> Window | None:
        return self.groups.get(group, {}).get(place.topic, {}).get(place.partition)

    def add_ends(self, ends: Mapping[TopicPartition, int]) -> None:
        for place, end in ends.items():
            kept = self.ends.setdefault(place, array("q"))
            kept.append(end)
            if len(kept) > self.size:
                del kept[: len(kept) - self.size]

    def load_ends(self, place: TopicPartition, ends: bytes) -> None:
        self.ends[place] = array("q", ends)

    def forget_topics(self, known: Iterable[str]) -> None:
        """All but those that the cluster has."""
        topics = frozenset(known)
        self.ends = {place: kept for place, kept in self.ends.items() if place.topic in topics}
        for group, windows in [*self.groups.items()]:
            for topic in [each for each in windows if each not in topics]:
                self.forget(group, topic)

    def add(self, group: str, place: TopicPartition, commit: Commit, *, order: int = NO_ORDER) -> None:
        """With the lag behind the end of the log as it is known; a commit beyond that has none."""
        known = self.ends.get(place)
        lag = max(0, known[-1] - commit.offset) if known else commit.lag
        windows = self.groups.setdefault(group, {}).setdefault(place.topic, {})
        window = windows.setdefault(place.partition, Window())
        seen = Commit(commit.offset, commit.timestamp_ms, lag, commit.observed_ms)
        if window.add(seen, size=self.size, min_distance_ms=self.min_distance_ms, order=order):
            self.changed.add((group, place))

    def poll(
        self,
        group: str,
        committed: Mapping[TopicPartition, int],
        *,
        now_ms: int,
        patience_ms: int,
        reads_commits: bool,
    ) -> None:
        """Offsets that the group has: the only source of commits where `__consumer_offsets` can't be read.

        The first one is a commit of unknown age. It enters the window together with the next one, or alone once it
        stood still for as long as a full window takes: a consumer that commits rarely has not stopped.
        """
        if not committed:
            self.baselines.pop(group, None)
            return
        baselines = self.baselines.setdefault(group, {})
        for place in [each for each in baselines if each not in committed]:
            del baselines[place]
        for place, offset in committed.items():
            window = self.window(group, place)
            if window:
                if not reads_commits and window.cells[OFFSET - NUMBERS] != offset:
                    self.add(group, place, Commit(offset, now_ms, observed_ms=now_ms))
                continue
            baseline = baselines.get(place)
            if baseline is None:
                baselines[place] = Baseline(offset, now_ms)
                continue
            moved = baseline.offset != offset
            if moved and reads_commits:  # the commit itself will be read
                baseline.offset, baseline.since_ms = offset, now_ms
            elif moved or now_ms - baseline.since_ms >= patience_ms:
                self.add(group, place, Commit(baseline.offset, baseline.since_ms, observed_ms=now_ms))
                if moved:
                    self.add(group, place, Commit(offset, now_ms, observed_ms=now_ms))
                del baselines[place]

    def remove(self, group: str, place: TopicPartition) -> None:
        """The group has no offset there any more."""
        partitions = self.groups.get(group, {}).get(place.topic, {})
        if partitions.pop(place.partition, None) is not None:
            self.changed.add((group, place))

    def forget(self, group: str, topic: str | None = None) -> None:
        windows = self.groups.get(group, {})
        if topic is not None:
            windows.pop(topic, None)
        if topic is None or not windows:
            self.groups.pop(group, None)
            self.baselines.pop(group, None)
        self.gone.add((group, topic))
        self.changed = {key for key in self.changed if key[0] != group or topic not in (None, key[1].topic)}

    def all(self) -> Iterator[tuple[str, TopicPartition, Window]]:
        for group, topics in self.groups.items():
            for topic, partitions in topics.items():
                for partition, window in partitions.items():
                    yield group, TopicPartition(topic, partition), window

"""Everything that one look sees, in the order that lets a commit be compared with an end that is not older."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.client.cluster import Cluster
from moldau.core.clock import Clock
from moldau.core.ids import TopicPartition
from moldau.monitor.sampling.commits import CommitReader, SeenCommit
from moldau.monitor.sampling.first_unread import FirstUnread, Unread
from moldau.monitor.sampling.groups import SeenGroups, seen_groups
from moldau.monitor.sampling.stock import Stock, StockTaker
from moldau.monitor.sampling.topics import END, START, Layout, layout, offsets_at


@dataclass(frozen=True, slots=True)
class Look:
    at_ms: int
    layout: Layout
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    groups: SeenGroups
    commits: tuple[SeenCommit, ...]
    reads_commits: bool
    is_caught_up: bool
    """Nothing more is to be read of the commits so far."""
    times: Mapping[Unread, int | None]
    problems: tuple[str, ...]
    stock: Stock = field(default_factory=Stock)
    records_read: int = 0
    """Of `__consumer_offsets`, by all looks so far."""


@dataclass(slots=True)
class Looker:
    """What one look leaves for the next."""

    clock: Clock
    reader: CommitReader = field(default_factory=CommitReader)
    unread: FirstUnread = field(default_factory=FirstUnread)
    stock: StockTaker | None = None
    pending: list[SeenCommit] = field(default_factory=list)
    """Commits that were read by looks that failed afterwards: they are not read again."""

    def look(self, cluster: Cluster) -> Look:
        """Raises what `client.Cluster` does when nobody can be asked."""
        problems: list[str] = []
        known = layout(cluster)
        places = [each.place for topic in known.topics.values() for each in topic.partitions]
        starts = offsets_at(cluster, known, places, START, problems)
        self.pending += self.reader.read(cluster, known, self.clock.now_ms(), problems)
        groups = seen_groups(cluster, known, problems)
        ends = offsets_at(cluster, known, places, END, problems)
        wanted = {
            (place, offset)
            for group in groups.groups.values()
            for place, offset in (group.committed or {}).items()
            if offset < ends.get(place, 0)
        }
        self.unread.look(cluster, known, wanted, problems)
        stock = Stock() if self.stock is None else self.stock.look(cluster, known, self.clock.elapsed_ms())
        problems += stock.problems
        commits, self.pending = self.pending, []
        return Look(
            self.clock.now_ms(),
            known,
            starts,
            ends,
            groups,
            tuple(commits),
            self.reader.can_read,
            self.reader.is_caught_up,
            dict(self.unread.times),
            tuple(dict.fromkeys(problems)),
            stock,
            self.reader.records_read,
        )

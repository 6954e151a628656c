"""A look and what is remembered, judged: the state of a cluster's groups at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from moldau.core.ids import TopicPartition
from moldau.monitor.rules import GroupVerdict, PartitionVerdict, Status, group_verdict, partition_status
from moldau.monitor.sampling.first_unread import lag_seconds
from moldau.monitor.sampling.groups import Committed, Member, SeenGroup
from moldau.monitor.sampling.look import Look
from moldau.monitor.windows import Window, Windows

NOBODY = Member("", "", "", ())


@dataclass(frozen=True, slots=True)
class Rules:
    """What a user may set of Burrow's."""

    intervals: int = 10
    minimum_complete: float = 0.0
    allowed_lag: int = 0
    min_distance_s: float = 1.0
    expire_group_s: float = 604_800.0


@dataclass(frozen=True, slots=True)
class Judged:
    """Of one cluster; nothing in it changes any more."""

    look: Look
    verdicts: Mapping[str, GroupVerdict]
    committed: Mapping[str, Committed]
    commits: Mapping[str, int] = field(default_factory=dict)
    """How many commits of each group were seen so far."""

    @property
    def topics(self) -> list[str]:
        return [*self.look.layout.topics]

    def group(self, name: str) -> SeenGroup:
        return self.look.groups.groups[name]


def judged(cluster: str, look: Look, windows: Windows, committed: Mapping[str, Committed], rules: Rules) -> Judged:
    judge = Judge(look, windows, rules)
    verdicts = {
        name: group_verdict(cluster, name, [*judge.partitions(group, committed.get(name, {}))])
        for name, group in sorted(look.groups.groups.items())
    }
    return Judged(look, verdicts, committed)


def partitions_of(look: Look, committed: Committed, group: SeenGroup) -> Iterator[TopicPartition]:
    """All of every topic that the group has something of, as Burrow counts them."""
    named = {place.topic for place in committed} | {place.topic for each in group.members for place in each.assigned}
    for topic in sorted(named & look.layout.topics.keys()):
        yield from (each.place for each in look.layout.topics[topic].partitions)


@dataclass(frozen=True, slots=True)
class Judge:
    look: Look
    windows: Windows
    rules: Rules

    def partitions(self, group: SeenGroup, committed: Committed) -> Iterator[PartitionVerdict]:
        owners = {place: member for member in group.members for place in member.assigned}
        for place in partitions_of(self.look, committed, group):
            window = self.windows.window(group.name, place)
            yield self._verdict(place, committed.get(place), window, owners.get(place, NOBODY))

    def _verdict(
        self, place: TopicPartition, offset: int | None, window: Window | None, owner: Member
    ) -> PartitionVerdict:
        look = self.look
        end = look.ends.get(place)
        lag = 0 if offset is None or end is None else max(0, end - offset)
        waiting_s = None if offset is None else lag_seconds(look.times, place, offset, end, look.at_ms)
        if window and window.last.timestamp_ms < look.at_ms - self.rules.expire_group_s * 1_000:
            window = None
        complete = min(1.0, len(window) / self.rules.intervals) if window else 0.0
        return PartitionVerdict(
            *place,
            status=self._status(place, window, lag, complete) if window else Status.OK,
            start=window.first if window else None,
            end=window.last if window else None,
            current_lag=lag,
            complete=complete,
            owner=owner.host,
            client_id=owner.client_id,
            lag_seconds=waiting_s,
        )

    def _status(self, place: TopicPartition, window: Window, lag: int, complete: float) -> Status:
        if lag <= self.rules.allowed_lag or complete < self.rules.minimum_complete:
            return Status.OK
        return partition_status(
            window.commits(),
            self.windows.ends.get(place, ()),
            current_lag=lag,
            now_ms=self.look.at_ms,
            allowed_lag=self.rules.allowed_lag,
        )

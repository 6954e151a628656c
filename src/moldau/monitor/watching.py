"""One cluster under watch: look after look, each judged, kept and told to those who asked for it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from threading import Event, Lock
from typing import Protocol

from moldau.client.cluster import Cluster, NoAnswer, Refused
from moldau.client.connection import Unsupported
from moldau.core.clock import Clock
from moldau.core.errors import ApiError, ProtocolViolation
from moldau.core.ids import ZERO_UUID
from moldau.monitor.judging import Judged, Rules, judged
from moldau.monitor.rules import Commit, GroupVerdict, Status
from moldau.monitor.sampling.commits import OFFSETS_TOPIC, CommitReader
from moldau.monitor.sampling.groups import Committed
from moldau.monitor.sampling.look import Look, Looker
from moldau.monitor.sampling.stock import StockTaker
from moldau.monitor.sampling.topics import Layout
from moldau.monitor.windows import Windows

logger = logging.getLogger(__name__)

# All that asking a cluster may end in.
FAILURES = (NoAnswer, Refused, Unsupported, OSError, ProtocolViolation, ApiError)
PROBLEMS_LOGGED_MAX = 20
TROUBLE_MAX = 100  # partitions that one line of the log names


@dataclass(frozen=True, slots=True)
class Change:
    """Of a group's status, with the verdict that it has become."""

    cluster: str
    group: str
    at_ms: int
    before: Status
    verdict: GroupVerdict


class Keeper(Protocol):
    """Where windows and changes survive a restart; all of one look are kept, or nothing of it."""

    def load(self, cluster: str, windows: Windows, looker: Looker) -> dict[str, Status]: ...

    def keep(self, cluster: str, windows: Windows, looker: Looker, changes: Iterable[Change]) -> None: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which groups of a cluster are watched."""

    allow: re.Pattern[str] | None = None
    deny: re.Pattern[str] | None = None

    def has(self, group: str) -> bool:
        if self.allow is not None and not self.allow.search(group):
            return False
        return self.deny is None or not self.deny.search(group)


@dataclass(slots=True)
class Watch:
    name: str
    open: Callable[[], Cluster]
    clock: Clock
    rules: Rules
    interval_s: float
    wanted: Wanted = field(default_factory=Wanted)
    read_commits: bool = True
    takes_stock: bool = False
    """Whether sizes on disk and configurations of topics are asked for, too."""
    keeper: Keeper | None = None
    tell: Callable[[str, Judged], None] | None = None
    """What is done with each judged look, such as notifying."""
    state: Judged | None = None
    failure: str | None = None
    """Why the last look saw nothing."""
    tried_ms: int | None = None
    look_ms: int = 0
    windows: Windows = field(init=False)
    looker: Looker = field(init=False)
    lock: Lock = field(default_factory=Lock)
    """Held by whoever reads or changes the windows."""
    _cluster: Cluster | None = None
    _statuses: dict[str, Status] = field(default_factory=dict)
    _committed: dict[str, Committed] = field(default_factory=dict)
    _commits: dict[str, int] = field(default_factory=dict)
    _problems: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.windows = Windows(self.rules.intervals, round(self.rules.min_distance_s * 1_000))
        self.looker = Looker(
            self.clock, CommitReader(self.read_commits), stock=StockTaker() if self.takes_stock else None
        )
        if self.keeper is not None:
            self._statuses = self.keeper.load(self.name, self.windows, self.looker)

    def run(self, stop: Event) -> None:
        try:
            while not stop.is_set():
                started_ms = self.clock.elapsed_ms()
                self._look_safely()
                stop.wait(max(0.0, self.interval_s - (self.clock.elapsed_ms() - started_ms) / 1_000))
        finally:
            self.close()

    def _look_safely(self) -> None:
        try:
            self.look()
        except Exception as wrong:
            # A fault of ours, which one group may have brought out: of the others somebody has to hear all the same.
            if self.failure is None:
                logger.exception("a look at cluster %s failed", self.name, extra={"cluster": self.name})
            self._failed(repr(wrong))

    def look(self) -> bool:
        """Whether the cluster answered."""
        started_ms = self.clock.elapsed_ms()
        self.tried_ms = started_ms
        try:
            found = self._seen()
        except FAILURES as wrong:
            self._failed(str(wrong))
            return False
        with self.lock:
            changes = self._take(found)
        self.look_ms = self.clock.elapsed_ms() - started_ms
        self._say(found, changes)
        if self.tell is not None and self.state is not None:
            self.tell(self.name, self.state)
        return True

    def _seen(self) -> Look:
        if self._cluster is not None:
            try:
                return self.looker.look(self._cluster)
            except FAILURES:  # its session may have ended, or a broker was started again
                self.close()
        self._cluster = self.open()
        return self.looker.look(self._cluster)

    def forget(self, group: str, topic: str | None = None) -> None:
        """As if it had never been seen; the next look sees it again if it is still there."""
        with self.lock:
            self.windows.forget(group, topic)
            if self.state is None or group not in self.state.verdicts:
                return
            verdicts = {name: each for name, each in self.state.verdicts.items() if name != group}
            self.state = replace(self.state, verdicts=verdicts)

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _failed(self, why: str) -> None:
        self.close()  # brokers may have other addresses when they are back
        if self.failure is None:
            logger.warning(
                "cluster %s can't be looked at: %s", self.name, why, extra={"cluster": self.name, "failure": why}
            )
        self.failure = why

    def _take(self, found: Look) -> list[Change]:
        windows, groups = self.windows, found.groups.groups
        self._follow(found.layout)
        for name in [each for each in groups if not self.wanted.has(each)]:
            del groups[name]
        windows.add_ends(found.ends)
        windows.forget_topics(found.layout.named)
        for commit in found.commits:
            if not self.wanted.has(commit.group):
                continue
            if commit.offset is None:
                windows.remove(commit.group, commit.place)
                continue
            self._commits[commit.group] = self._commits.get(commit.group, 0) + 1
            if commit.timestamp_ms >= found.at_ms - self.rules.expire_group_s * 1_000:
                seen = Commit(commit.offset, commit.timestamp_ms, observed_ms=found.at_ms)
                windows.add(commit.group, commit.place, seen, order=commit.order)
        patience_ms = round(self.rules.intervals * self.interval_s * 1_000)
        for name, group in groups.items():
            if group.committed is not None:
                self._committed[name] = group.committed
                windows.poll(
                    name,
                    group.committed,
                    now_ms=found.at_ms,
                    patience_ms=patience_ms,
                    reads_commits=found.reads_commits,
                )
        if found.groups.are_all:
            self._forget_gone(found)
        committed = {name: self._committed.get(name, {}) for name in groups}
        verdicts = judged(self.name, found, windows, committed, self.rules)
        self.state = replace(verdicts, commits={name: self._commits.get(name, 0) for name in groups})
        changes = self._changes(found)
        if self.keeper is not None:
            self.keeper.keep(self.name, windows, self.looker, changes)
        else:
            windows.nobody_keeps()
        return changes

    def _follow(self, layout: Layout) -> None:
        """In another topic, commits of before come after all that are to be read: none would count, and groups stop."""
        if self.state is None or not is_made_anew(self.state.look.layout, layout):
            return
        logger.warning(
            "cluster %s: %s was made anew; what was seen before is forgotten", self.name, OFFSETS_TOPIC,
            extra={"cluster": self.name},
        )  # fmt: skip
        for name in self.windows.groups.keys() | self.windows.baselines:
            self.windows.forget(name)
        self.windows.ends.clear()
        self.looker.reader.positions.clear()

    def _forget_gone(self, found: Look) -> None:
        there = found.groups.groups.keys()
        for name in [each for each in self.windows.groups.keys() | self.windows.baselines if each not in there]:
            self.windows.forget(name)
        for name in [each for each in self._committed if each not in there]:
            del self._committed[name]
        self._commits = {name: count for name, count in self._commits.items() if name in there}
        self._statuses = {name: status for name, status in self._statuses.items() if name in there}

    def _changes(self, found: Look) -> list[Change]:
        assert self.state is not None, "a look was just judged"
        changes = []
        for name, verdict in self.state.verdicts.items():
            before = self._statuses.get(name, Status.NOTFOUND)
            if verdict.status != before:
                changes.append(Change(self.name, name, found.at_ms, before, verdict))
                self._statuses[name] = verdict.status
        return changes

    def _say(self, found: Look, changes: Iterable[Change]) -> None:
        if self.failure is not None:
            logger.warning("cluster %s answers again", self.name, extra={"cluster": self.name})
            self.failure = None
        problems = frozenset(found.problems)
        for problem in sorted(problems - self._problems)[:PROBLEMS_LOGGED_MAX]:
            logger.warning("cluster %s: %s", self.name, problem, extra={"cluster": self.name, "failure": problem})
        self._problems = problems
        for change in changes:
            if change.before == Status.NOTFOUND and change.verdict.status == Status.OK:
                continue
            level = logging.INFO if change.verdict.status == Status.OK else logging.WARNING
            logger.log(level, "%s", told(change), extra=fields_of(change))


def is_made_anew(before: Layout, after: Layout) -> bool:
    """Whether the topic of commits is another one: the cluster was emptied, perhaps under the same id."""
    ids = {each.topics[OFFSETS_TOPIC].id for each in (before, after) if OFFSETS_TOPIC in each.topics}
    return len(ids - {ZERO_UUID}) > 1  # brokers of old have none


def fields_of(change: Change) -> dict[str, object]:
    """For the log in JSON."""
    verdict = change.verdict
    return {
        "cluster": change.cluster,
        "group": change.group,
        "status": verdict.status.name,
        "before": change.before.name,
        "lag": verdict.totallag,
        "lag_seconds": verdict.lag_seconds,
        "trouble": [f"{each.topic}-{each.partition} {each.status.name}" for each in verdict.in_trouble[:TROUBLE_MAX]],
    }


def told(change: Change) -> str:
    verdict = change.verdict
    reasons = ", ".join(f"{each.topic}-{each.partition} {each.status.name}" for each in verdict.in_trouble[:3])
    more = f" and {len(verdict.in_trouble) - 3} more" if len(verdict.in_trouble) > 3 else ""
    seconds = verdict.lag_seconds
    waiting = "" if seconds is None else f", {seconds:.0f} s"
    return (
        f"group {change.group} of {change.cluster}: {change.before.name} to {verdict.status.name}"
        f" (lag {verdict.totallag}{waiting}{': ' if reasons else ''}{reasons}{more})"
    )

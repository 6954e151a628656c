"""Groups: where they read on, when what is there was written, and whether a rebalance comes to an end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from moldau.cli.doctor.cluster.facts import ClusterFacts, Group, Unread
from moldau.client.cluster import Cluster
from moldau.client.groups.describing import Group as DescribedGroup
from moldau.client.groups.describing import describe_groups
from moldau.core.ids import TopicPartition
from moldau.monitor.sampling.first_unread import FirstUnread
from moldau.monitor.sampling.groups import SeenGroup, seen_groups
from moldau.monitor.sampling.topics import layout

REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
LOOK_AGAIN_S = 5.0  # an ordinary rebalance is over by then; 3 s of it are the wait for the first members

Note = Callable[[str, str], None]
Members = tuple[str, int | None, frozenset[str]]
"""State, epoch and members: as long as they stay, it is the same rebalance."""


def gather_groups(
    cluster: Cluster, facts: ClusterFacts, *, now_ms: Callable[[], int], note: Note, tell: Callable[[str], None]
) -> ClusterFacts:
    problems: list[str] = []
    tell("asking for consumer groups")
    known = layout(cluster)
    reached = {
        id_: node for id_, node in known.nodes.items() if id_ in facts.brokers and not facts.brokers[id_].failure
    }
    known = replace(known, nodes=reached)
    seen = seen_groups(cluster, known, problems)
    ends = {each.place: each.end for each in facts.partitions() if each.end is not None}
    behind = [
        (name, place, offset)
        for name, group in seen.groups.items()
        for place, offset in (group.committed or {}).items()
        if offset < ends.get(place, 0)
    ]
    tell("looking for the first records that groups have not read")
    unread = FirstUnread()
    unread.look(cluster, known, {(place, offset) for _, place, offset in behind}, problems)
    waited = _rebalancing(cluster, seen.groups, tell)
    for problem in problems:
        note("consumer groups", problem)
    return replace(
        facts,
        now_ms=now_ms(),
        groups=tuple(_group(each, ends, waited.get(name)) for name, each in sorted(seen.groups.items())),
        unread=tuple(
            Unread(name, place, offset, unread.times.get((place, offset))) for name, place, offset in sorted(behind)
        ),
    )


def _group(seen: SeenGroup, ends: dict[TopicPartition, int], rebalancing_ms: int | None) -> Group:
    lags = [ends[place] - offset for place, offset in (seen.committed or {}).items() if place in ends]
    lag = sum(max(0, each) for each in lags) if lags else None
    return Group(seen.name, seen.state, len(seen.members), lag, rebalancing_ms)


def _rebalancing(cluster: Cluster, seen: dict[str, SeenGroup], tell: Callable[[str], None]) -> dict[str, int]:
    """How long each of those that rebalanced at the first look did so, if nothing changed until the second."""
    names = [name for name, group in seen.items() if group.state in REBALANCING]
    if not names:
        return {}
    before = _states(cluster, names)
    began_s = time.monotonic()
    while (passed_s := time.monotonic() - began_s) < LOOK_AGAIN_S:
        tell(f"watching {len(names)} groups that rebalance: {passed_s:.0f} of {LOOK_AGAIN_S:.0f} s")
        time.sleep(min(1.0, LOOK_AGAIN_S - passed_s))
    after = _states(cluster, names)
    passed_ms = round((time.monotonic() - began_s) * 1_000)
    return {
        name: passed_ms for name in names if before.get(name) == after.get(name, ()) and before[name][0] in REBALANCING
    }


def _states(cluster: Cluster, names: list[str]) -> dict[str, Members]:
    return {
        name: (each.state, each.epoch, frozenset(member.id for member in each.members))
        for name, each in describe_groups(cluster, names).items()
        if isinstance(each, DescribedGroup)
    }

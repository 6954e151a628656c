"""A proposal where replicas may go: leaders in turn, followers beside them, racks as evenly as they can be."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from moldau.cli.failures import CommandFailed


def place(partitions: int, factor: int, racks: Mapping[int, str | None], chance: random.Random) -> list[list[int]]:
    """The replicas of each partition, where `racks` has the brokers that may be used; chance says where it begins."""
    if factor > len(racks):
        raise CommandFailed(
            f"The target replication factor of {factor} cannot be reached because only {len(racks)} broker(s) are"
            " registered or some brokers have all their log directories cordoned."
        )
    ring = alternating(racks)
    start = chance.randrange(len(ring))
    return [_replicas(ring, start + index, index // len(ring), factor, racks) for index in range(partitions)]


def alternating(racks: Mapping[int, str | None]) -> list[int]:
    """The brokers in an order in which neighbours are in different racks."""
    waiting: dict[str | None, list[int]] = {}
    for broker_id in sorted(racks):
        waiting.setdefault(racks[broker_id], []).append(broker_id)
    found: list[int] = []
    while waiting:
        for rack in sorted(waiting, key=str):
            found.append(waiting[rack].pop(0))
            if not waiting[rack]:
                del waiting[rack]
    return found


def _replicas(ring: Sequence[int], start: int, shift: int, factor: int, racks: Mapping[int, str | None]) -> list[int]:
    """Followers begin one further in each round, or two brokers would always share their partitions."""
    at = start % len(ring)
    leader, others = ring[at], [*ring[at + 1 :], *ring[:at]]
    if others:
        cut = shift % len(others)
        others = [*others[cut:], *others[:cut]]
    chosen = [leader]
    while len(chosen) < factor:
        used = Counter(racks[each] for each in chosen)
        best = min((each for each in others if each not in chosen), key=lambda each: used[racks[each]])
        chosen.append(best)
    return chosen

"""What the controller says about a partition's replicas, and what a leader asks it for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

if TYPE_CHECKING:
    from moldau.replication.traffic import Traffic

LAG_MS_MAX = 30_000  # the default of replica.lag.time.max.ms
UNKNOWN_BYTES = 1 << 40  # of records from before this leadership: so many that whoever waits for some looks
NO_BROKER_EPOCH = -1  # a follower that says nothing about its registration

IsEligible: TypeAlias = Callable[[int, int], bool]
"""Whether a broker may join an ISR, by its id and the epoch of its fetches (-1: it does not say). It must be registered
under that epoch, and be neither fenced nor about to stop."""

IsAlive: TypeAlias = Callable[[int], bool]
"""Whether a broker is registered and not fenced."""


class Assignment(NamedTuple):
    """What the controller decided: which brokers hold a replica and which of them are in sync."""

    replicas: tuple[int, ...]
    isr: frozenset[int]
    partition_epoch: int = 0
    offline: frozenset[int] = frozenset()
    """Replicas whose log directory failed or is full: they fetch what they can, and may not join the ISR."""


class InSyncReplica(NamedTuple):
    broker_id: int
    broker_epoch: int = NO_BROKER_EPOCH


class IsrChange(msgspec.Struct, frozen=True, eq=False):
    """An ISR to ask the controller for, by AlterPartition. Each is an ask of its own: two alike are not the same."""

    isr: tuple[InSyncReplica, ...]
    leader_epoch: int
    partition_epoch: int
    joining: int | None = None
    """The replica that comes in; None when some go out."""


class ReplicationTerms(msgspec.Struct, frozen=True):
    """What holds for all partitions of a broker."""

    lag_ms_max: int = LAG_MS_MAX
    is_eligible: IsEligible = lambda _broker_id, _broker_epoch: True
    is_alive: IsAlive = lambda _broker_id: True
    traffic: Traffic | None = None
    """What partitions count in; None where metrics are off."""

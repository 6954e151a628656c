"""The next state of a partition whose replicas, ISR or brokers change: the rules of Kafka's `PartitionChangeBuilder`.

Eligible leader replicas (KIP-966): while fewer than `min.insync.replicas` are in sync nothing is committed, so whoever
leaves the ISR then still has all that was committed, and may lead when nobody in sync is left. The ISR can be empty.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from moldau.controller.image import RECOVERING, PartitionImage
from moldau.core.ids import NO_LEADER

Ids: TypeAlias = tuple[int, ...]


class Election(Enum):
    PREFERRED = auto()  # the first replica, if it can
    ONLINE = auto()  # only if the present leader can't go on
    UNCLEAN = auto()  # the same, and if need be a replica that lacks committed records


class Terms(NamedTuple):
    """What a topic's configuration and the cluster's features say of its partitions."""

    min_isr: int
    election: Election = Election.ONLINE
    has_elr: bool = True


class Target(NamedTuple):
    """What shall be different; None is for what stays as it is."""

    isr: Ids | None = None
    replicas: Ids | None = None
    adding: Ids | None = None
    removing: Ids | None = None
    offline: Ids | None = None
    leader_recovery_state: int | None = None
    not_whole: Collection[int] = ()
    """Replicas that may lack committed records, so that they are eligible for nothing."""
    lost: Collection[int] = ()
    """Replicas whose logs are gone: they lead nothing that others may have, until those are unregistered."""


def change_partition(
    before: PartitionImage,
    target: Target,
    terms: Terms,
    able: Container[int],
    *,
    registered: Container[int],
    election: Election | None = None,
) -> PartitionImage:
    """The partition as it is from now on; the same object if nothing changes. Those that are `able` may lead, others
    that are `registered` may come back.

    A new leader, or replicas that go, begin a new leader epoch, and every change a new partition epoch.
    """
    isr, replicas, adding, removing = _with_reassignment(before, target)
    elr = _eligible(before, isr, replicas, target.not_whole, terms)
    offline = before.offline if target.offline is None else target.offline
    lost = _lost(before, target, replicas)
    unable = (*offline, *lost)
    recovery = before.leader_recovery_state
    leader = _elect(before.leader, replicas, isr or elr, able, unable, is_preferred=election is Election.PREFERRED)
    if leader in elr:
        isr, elr = (leader,), tuple(each for each in elr if each != leader)
    elif leader == NO_LEADER:
        leader = _elect_last(before, replicas, able, unable, may_try=not isr and not elr and terms.has_elr)
        if leader == NO_LEADER and (election or terms.election) is Election.UNCLEAN:
            unable = unable if _are_kept(replicas, lost, registered) else offline
            leader = _elect(NO_LEADER, replicas, replicas, able, unable)
        if leader != NO_LEADER:
            isr, elr, recovery = (leader,), (), RECOVERING
    if not isr and not terms.has_elr:
        isr = tuple(each for each in before.isr if each in replicas) or replicas[:1]
    begins_epoch = leader != before.leader or (
        replicas != before.replicas and not set(before.replicas) <= set(replicas)
    )
    after = PartitionImage(
        replicas,
        isr,
        leader,
        before.leader_epoch + begins_epoch,
        before.partition_epoch + 1,
        adding,
        removing,
        elr,
        _last_known(before, isr, leader, terms),
        offline,
        recovery if target.leader_recovery_state is None else target.leader_recovery_state,
        tuple(each for each in lost if each != leader),
    )
    return before if replace(before, partition_epoch=before.partition_epoch + 1) == after else after


def _elect(
    leader: int, replicas: Ids, pool: Ids, able: Container[int], unable: Ids, *, is_preferred: bool = False
) -> int:
    """The present leader stays if it can, unless the preferred replica is wanted, and can."""
    for replica in (*(replicas[:1] if is_preferred else ()), leader, *replicas):
        if replica in pool and replica in able and replica not in unable:
            return replica
    return NO_LEADER


def _with_reassignment(before: PartitionImage, target: Target) -> tuple[Ids, Ids, Ids, Ids]:
    """ISR, replicas, and those being added and removed: none of them when all that stay are in sync."""
    isr = before.isr if target.isr is None else target.isr
    replicas = before.replicas if target.replicas is None else target.replicas
    adding = before.adding_replicas if target.adding is None else target.adding
    removing = before.removing_replicas if target.removing is None else target.removing
    if not adding and not removing:
        return isr, replicas, adding, removing
    staying = tuple(each for each in replicas if each not in removing)
    staying_isr = tuple(each for each in isr if each not in removing)
    if not staying or not staying_isr or not set(staying) <= set(staying_isr):
        return isr, replicas, adding, removing
    return staying_isr, staying, (), ()


def _eligible(before: PartitionImage, isr: Ids, replicas: Ids, not_whole: Collection[int], terms: Terms) -> Ids:
    if not terms.has_elr or len(isr) >= terms.min_isr:
        return ()
    candidates = {*before.elr, *before.isr}
    return tuple(sorted(each for each in candidates if each not in isr and each not in not_whole and each in replicas))


def _elect_last(before: PartitionImage, replicas: Ids, able: Container[int], unable: Ids, *, may_try: bool) -> int:
    """Where nobody is known to have everything, the last leader has the most."""
    last = before.last_known_elr if may_try and len(before.last_known_elr) == 1 else ()
    return _elect(NO_LEADER, last, replicas, able, unable)


def _are_kept(replicas: Ids, lost: Ids, registered: Container[int]) -> bool:
    """Whether a broker has the records or may come back with them: else an empty partition is better than none."""
    return any(each in registered and each not in lost for each in replicas)


def _lost(before: PartitionImage, target: Target, replicas: Ids) -> Ids:
    """Whoever joins the ISR has fetched all that it lost."""
    joined = {*(target.isr or ())} - {*before.isr}
    found = dict.fromkeys((*before.lost, *(each for each in replicas if each in target.lost)))
    return tuple(each for each in found if each in replicas and each not in joined)


def _last_known(before: PartitionImage, isr: Ids, leader: int, terms: Terms) -> Ids:
    if not terms.has_elr or leader != NO_LEADER:
        return ()
    if not isr and before.leader != NO_LEADER:
        return (before.leader,)
    return before.last_known_elr

"""How a member of a consumer group comes from what it has to what it is to have, one heartbeat at a time.

    STABLE      --another target, nothing to give up, everything free-------> STABLE
    STABLE      --another target, something to give up----------------------> UNREVOKED
    STABLE      --another target, something is not free yet-----------------> UNRELEASED
    UNREVOKED   --the client says that it gave it up------------------------> as from STABLE
    UNRELEASED  --every heartbeat looks again-------------------------------> as from STABLE

A member keeps its epoch while it has something to give up, so that it may commit offsets of that until it has; only
then it comes to the target's epoch. A partition is never given to a member while another one has it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec
from msgspec.structs import replace

from moldau.core.errors import ApiError, ErrorCode
from moldau.groups.consumer.members import EpochPartitions, MemberState, Partitions, Progress


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """What a member is to come to, and what it says that it has."""

    target_epoch: int
    target: Partitions
    subscribed: Collection[bytes]
    """Ids of the topics that the member wants now; the target may be older than its last change of mind."""
    is_resubscribed: bool
    """The member changed its mind with this heartbeat."""
    owned: Partitions | None
    """What the client has by its own account; None if it said nothing about it."""
    is_taken: Callable[[bytes, int], bool]
    """Whether another member has a partition."""


def reconcile(progress: Progress, goal: Goal) -> Progress:
    match progress.state:
        case MemberState.STABLE:
            if progress.epoch != goal.target_epoch:
                return _next(progress, goal)
            return _without_unsubscribed(progress, goal) if goal.is_resubscribed else progress
        case MemberState.UNREVOKED:
            if not _has_any(goal.owned, progress.revoking):
                return _next(progress, goal)
            return _without_unsubscribed(progress, goal) if goal.is_resubscribed else progress
        case MemberState.UNRELEASED:
            return _next(progress, goal)
    if goal.owned is None or goal.owned:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
        )
    return _next(replace(progress, epoch=goal.target_epoch), goal)


def _has_any(owned: Partitions | None, revoking: EpochPartitions) -> bool:
    """A client that says nothing about what it has may have it still."""
    if owned is None:
        return True
    return any(not partitions.isdisjoint(revoking.get(topic_id, {})) for topic_id, partitions in owned.items())


def _without_unsubscribed(progress: Progress, goal: Goal) -> Progress:
    """Topics that the member does not want any more are taken from it before the next assignment is there."""
    kept = {topic_id: held for topic_id, held in progress.assigned.items() if topic_id in goal.subscribed}
    if len(kept) == len(progress.assigned):
        return progress
    revoking: dict[bytes, dict[int, int]] = {topic_id: dict(held) for topic_id, held in progress.revoking.items()}
    for topic_id, held in progress.assigned.items():
        if topic_id not in kept:
            revoking.setdefault(topic_id, {}).update(held)
    if _has_any(goal.owned, revoking):
        return replace(
            progress,
            state=MemberState.UNREVOKED,
            previous_epoch=progress.epoch,
            assigned=kept,
            revoking=revoking,
        )
    return replace(progress, previous_epoch=progress.epoch, assigned=kept)


def _next(progress: Progress, goal: Goal) -> Progress:
    wanted = {topic_id: held for topic_id, held in goal.target.items() if held and topic_id in goal.subscribed}
    kept: dict[bytes, dict[int, int]] = {}
    revoking: dict[bytes, dict[int, int]] = {}
    for topic_id, held in progress.assigned.items():
        target = wanted.get(topic_id, frozenset())
        for partition, epoch in held.items():
            (kept if partition in target else revoking).setdefault(topic_id, {})[partition] = epoch
    if revoking and _has_any(goal.owned, revoking):
        return Progress(progress.epoch, progress.epoch, MemberState.UNREVOKED, kept, revoking)
    is_waiting = False
    for topic_id, target in wanted.items():
        for partition in sorted(target - kept.get(topic_id, {}).keys()):
            if goal.is_taken(topic_id, partition):
                is_waiting = True
            else:
                kept.setdefault(topic_id, {})[partition] = goal.target_epoch
    state = MemberState.UNRELEASED if is_waiting else MemberState.STABLE
    return Progress(goal.target_epoch, progress.epoch, state, kept, {})

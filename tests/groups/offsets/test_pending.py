from __future__ import annotations

from typing import Any

import pytest

from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.groups.classic.membership import Leaving
from moldau.groups.limits import GroupLimits
from moldau.groups.offsets.classic import CommittedPartition, Committing, decide_commit_in_transaction
from moldau.groups.records import CommittedOffset, OffsetCommitted, OffsetDeleted, OffsetPending, TransactionEnded
from tests.groups.worlds import GROUP, LIMITS, World, stable

ONE, TWO = 1, 2


def pending(producer_id: int, offset: int, partition: int = 0) -> OffsetPending:
    return OffsetPending(producer_id, GROUP, "orders", partition, CommittedOffset(offset))


def committed(offset: int, partition: int = 0) -> OffsetCommitted:
    return OffsetCommitted(GROUP, "orders", partition, CommittedOffset(offset))


def after(*facts: Any) -> dict[int, int]:
    """The offsets that count when the log holds these facts."""
    world = World()
    for fact in facts:
        world.shard.apply(fact)
    kept = world.shard.offsets_of(GROUP).get("orders", {})
    return {partition: value.offset for partition, value in kept.items()}


COMMIT_ONE, ABORT_ONE = TransactionEnded(ONE, True), TransactionEnded(ONE, False)
COMMIT_TWO, ABORT_TWO = TransactionEnded(TWO, True), TransactionEnded(TWO, False)


@pytest.mark.parametrize(
    ("facts", "offsets"),
    [
        ([pending(ONE, 5)], {}),
        ([pending(ONE, 5), COMMIT_ONE], {0: 5}),
        ([pending(ONE, 5), ABORT_ONE], {}),
        ([committed(3), pending(ONE, 5), ABORT_ONE], {0: 3}),
        ([pending(ONE, 5), pending(ONE, 6, 1), pending(ONE, 7), COMMIT_ONE], {0: 7, 1: 6}),
        ([pending(ONE, 5), COMMIT_TWO], {}),
        ([pending(ONE, 5), COMMIT_ONE, COMMIT_ONE], {0: 5}),
        # The later commit wins, whatever ends first.
        ([pending(ONE, 5), committed(9), COMMIT_ONE], {0: 9}),
        ([pending(ONE, 5), pending(TWO, 6), COMMIT_TWO, COMMIT_ONE], {0: 6}),
        ([pending(ONE, 5), pending(TWO, 6), COMMIT_ONE, COMMIT_TWO], {0: 6}),
        ([pending(ONE, 5), pending(TWO, 6), ABORT_TWO, COMMIT_ONE], {0: 5}),
        ([pending(ONE, 5), committed(9), pending(ONE, 6), COMMIT_ONE], {0: 6}),
        # What is deleted does not come back.
        ([pending(ONE, 5), OffsetDeleted(GROUP, "orders", 0), COMMIT_ONE], {}),
        ([pending(ONE, 5), OffsetDeleted(GROUP, "orders", 0), pending(ONE, 6), COMMIT_ONE], {0: 6}),
    ],
)
def test_what_counts(facts: list[Any], offsets: dict[int, int]) -> None:
    assert after(*facts) == offsets


def committing(**other: Any) -> Committing:
    return Committing(group_id=GROUP, partitions=(CommittedPartition("orders", 0, 41, 3, "note"),), **other)


def decide(world: World, **other: Any) -> Decision[list[ErrorCode]]:
    group = world.shard.groups.get(GROUP)
    return decide_commit_in_transaction(group, committing(**other), producer_id=ONE, limits=LIMITS, now_ms=9)


def test_a_commit_in_a_transaction_is_a_fact_of_that_transaction() -> None:
    fact = OffsetPending(ONE, GROUP, "orders", 0, CommittedOffset(41, 3, "note", 9))
    assert decide(World()) == Decision([fact], [ErrorCode.NONE])


@pytest.mark.parametrize(
    ("other", "error"),
    [
        ({}, ErrorCode.NONE),
        ({"member_id": "a", "generation": 1}, ErrorCode.NONE),
        ({"member_id": "a", "generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "x", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "a", "generation": 1, "instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_producer_that_names_a_member_must_be_right_about_it(other: dict[str, Any], error: ErrorCode) -> None:
    assert decide(stable("a"), **other).reply == [error]


def test_a_member_of_no_group_is_refused() -> None:
    assert decide(World(), member_id="a", generation=1) == Decision.reply_only([ErrorCode.ILLEGAL_GENERATION])


def test_also_while_an_assignment_is_made() -> None:
    world = World()
    world.enter("a")
    world.pass_time(3_000)
    assert decide(world, member_id="a", generation=1).reply == [ErrorCode.NONE]


def test_long_notes_are_refused() -> None:
    decision = decide_commit_in_transaction(
        None, committing(), producer_id=ONE, limits=GroupLimits(offset_metadata_chars_max=3), now_ms=0
    )
    assert decision == Decision([], [ErrorCode.OFFSET_METADATA_TOO_LARGE])


def test_an_open_transaction_keeps_its_group_and_its_offsets() -> None:
    world = World()
    world.shard.apply(committed(3))
    world.shard.apply(committed(4, 1))
    world.shard.apply(pending(ONE, 5))
    world.now_ms = 365 * 24 * 60 * 60 * 1_000
    decision = world.shard.decide_expiry(world.now_ms)
    assert decision.records == [OffsetDeleted(GROUP, "orders", 1)]


def test_a_group_is_deleted_with_what_is_pending() -> None:
    world = stable("a")
    world.leave(Leaving("a"))
    world.shard.apply(pending(ONE, 5))
    world.do(lambda shard, _: shard.decide_delete_group(GROUP))
    world.shard.apply(COMMIT_ONE)
    assert (world.shard.groups, world.shard.offsets) == ({}, {})

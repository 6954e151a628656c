from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.groups.consumer.facts import GroupEpochSet, OldMetadataSet, TargetEpochSet
from moldau.groups.offsets.classic import CommittedPartition, Committing
from moldau.groups.records import OffsetDeleted
from tests.groups.consumer.worlds import GROUP, ConsumerWorld, beat, topic_id

STALE, UNKNOWN, NONE = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE
WEEK_MS = 7 * 24 * 60 * 60_000


def two_members() -> ConsumerWorld:
    """a was alone and kept two partitions; b has had the others since epoch 3."""
    world = ConsumerWorld()
    world.join("a")
    world.join("b")
    world.settle("a", "b")
    return world


def test_a_member_commits_at_its_epoch() -> None:
    world = two_members()
    mine = min(world.assigned("a"))
    assert world.commit("a", 3, mine, 41) is NONE
    assert world.shard.offsets_of(GROUP)["orders"][mine].offset == 41


@pytest.mark.parametrize(("epoch", "error"), [(4, STALE), (1, STALE), (-1, STALE)])
def test_another_epoch_is_stale(epoch: int, error: ErrorCode) -> None:
    world = two_members()
    assert world.commit("a", epoch, min(world.assigned("a"))) is error


def test_an_old_epoch_will_do_for_what_the_member_has_had_since() -> None:
    world = two_members()
    assert world.commit("a", 2, min(world.assigned("a"))) is NONE
    assert world.commit("a", 2, min(world.assigned("b"))) is STALE
    assert world.commit("b", 2, min(world.assigned("b"))) is STALE


def test_strangers_commit_nothing_while_there_are_members() -> None:
    world = two_members()
    assert [world.commit(member, epoch, 0) for member, epoch in (("x", 3), ("", -1))] == [UNKNOWN, UNKNOWN]
    for member in ("a", "b"):
        world.send(beat(member, -1))
    assert [world.commit(member, epoch, 0) for member, epoch in (("", -1), ("a", 3))] == [NONE, UNKNOWN]


def test_versions_before_member_epochs_are_not_for_members() -> None:
    world = two_members()
    assert world.commit("a", 3, min(world.assigned("a")), knows_epochs=False) is ErrorCode.UNSUPPORTED_VERSION


def test_a_producer_hears_of_a_wrong_epoch_as_of_a_wrong_generation() -> None:
    world = two_members()
    line = CommittedPartition("orders", 0, 1, topic_id=topic_id("orders"))

    def commit(member_id: str, epoch: int) -> list[ErrorCode]:
        request = Committing(group_id=GROUP, member_id=member_id, generation=epoch, partitions=[line])
        return world.shard.decide_commit_in_transaction(request, 7, 0).reply

    assert commit("a", 3) == commit("", -1) == [NONE]
    assert (commit("a", 9), commit("x", 3)) == ([ErrorCode.ILLEGAL_GENERATION], [UNKNOWN])


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [(None, -1, NONE), ("a", 3, NONE), ("a", 2, STALE), ("a", 4, STALE), ("x", 3, UNKNOWN), (None, 3, UNKNOWN)],
)
def test_who_may_fetch(member_id: str | None, epoch: int, error: ErrorCode) -> None:
    assert two_members().shard.check_fetch(GROUP, member_id, epoch) is error


def test_any_group_that_is_not_of_the_new_kind_lets_everybody_fetch() -> None:
    assert two_members().shard.check_fetch("other", "x", 9) is NONE


def test_offsets_of_topics_that_are_read_are_not_deleted() -> None:
    world = two_members()
    world.commit("a", 3, min(world.assigned("a")))
    asked = [("orders", min(world.assigned("a"))), ("other", 0)]
    decision = world.shard.decide_delete_offsets(GROUP, asked)
    assert (decision.records, decision.reply) == ([], [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, NONE])


def test_only_an_empty_group_is_deleted_and_with_everything_of_it() -> None:
    world = ConsumerWorld()
    world.join("a")
    world.commit("a", 2, 1)
    assert world.shard.decide_delete_group(GROUP).reply is ErrorCode.NON_EMPTY_GROUP
    world.send(beat("a", -1))
    decision = world.shard.decide_delete_group(GROUP)
    assert decision.records == [
        OffsetDeleted(GROUP, "orders", 1),
        TargetEpochSet(GROUP, None),
        OldMetadataSet(GROUP, is_there=False),
        GroupEpochSet(GROUP, None),
    ]
    world.do(lambda shard, _: shard.decide_delete_group(GROUP))
    assert (world.shard.consumer_groups, world.shard.groups, world.shard.offsets) == ({}, {}, {})


def test_offsets_expire_after_their_commit_unless_the_topic_is_read() -> None:
    world = ConsumerWorld()
    world.join("a")
    world.commit("a", 2, 1)
    assert world.shard.decide_expiry(world.now_ms + WEEK_MS).records == []
    world.send(beat("a", -1))
    assert world.shard.decide_expiry(world.now_ms + WEEK_MS - 1).records == []
    world.now_ms += WEEK_MS
    world.do(lambda shard, now_ms: shard.decide_expiry(now_ms))
    assert (world.shard.consumer_groups, world.shard.offsets) == ({}, {})

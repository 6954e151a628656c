"""Long work over offsets is done in parts, and what happens between them counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from moldau.coordinator.journal import CoordinatorRecord
from moldau.coordinator.runtime import Runtime
from moldau.core.clock import SystemClock
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID
from moldau.groups.limits import GroupLimits
from moldau.groups.offsets.classic import CommittedPartition, Committing
from moldau.groups.offsets.sweeping import SLICE_LOOKS, SLICE_OFFSETS, size_of
from moldau.groups.records import CommittedOffset, Fact, OffsetCommitted, OffsetDeleted
from moldau.groups.shard import GroupShard
from tests.coordinator.journals import MemoryJournal
from tests.coordinator.loops import on_a_loop
from tests.groups.worlds import GROUP, World

DAY_MS = 24 * 60 * 60 * 1000
WEEK_MS = 7 * DAY_MS
MANY = 2 * SLICE_OFFSETS + 50


def commit(
    world: World, group_id: str, count: int, *, topic: str = "orders", first: int = 0, topic_id: bytes = ZERO_UUID
) -> None:
    partitions = [CommittedPartition(topic, first + index, 1, topic_id=topic_id) for index in range(count)]
    request = Committing(group_id=group_id, partitions=partitions)
    assert world.do(lambda shard, now_ms: shard.decide_commit(request, now_ms)) == [ErrorCode.NONE] * count


class Parts:
    """A long decision, one part after the other; the first is applied at once."""

    def __init__(self, world: World, decide: Callable[[GroupShard, int], Decision[Any]]) -> None:
        self._world = world
        self.sizes: list[int] = []
        self.tombstones: set[tuple[str, str, int]] = set()
        self._take(decide(world.shard, world.now_ms))

    def _take(self, decision: Decision[Any]) -> None:
        self.decision = decision
        self.sizes.append(len(decision.records))
        for fact in decision.records:
            self._world.shard.apply(fact)
            if isinstance(fact, OffsetDeleted):
                self.tombstones.add((fact.group_id, fact.topic, fact.partition))

    def next(self) -> bool:
        """Decide and apply one more part; False when there is none."""
        if self.decision.then is None:
            return False
        self._take(self.decision.then(self._world.now_ms))
        return True

    def finish(self) -> Any:
        while self.next():
            pass
        return self.decision.reply


def expiry(shard: GroupShard, now_ms: int) -> Decision[None]:
    return shard.decide_expiry(now_ms)


def test_a_large_group_expires_in_parts_and_goes_with_the_last() -> None:
    world = World()
    commit(world, "large", MANY)
    commit(world, "small", 3)
    world.now_ms = WEEK_MS
    parts = Parts(world, expiry)
    parts.finish()
    assert world.shard.offsets == {}
    assert world.shard.groups == {}
    assert max(parts.sizes) <= SLICE_OFFSETS + 5
    assert sum(parts.sizes) == MANY + 3 + 2
    assert [timer.at_ms for timer in parts.decision.timers] == [WEEK_MS + world.shard.limits.expiry_interval_ms]


def test_many_small_groups_expire_in_parts() -> None:
    world = World()
    for number in range(SLICE_OFFSETS):
        commit(world, f"group-{number}", 2)
    world.now_ms = WEEK_MS
    parts = Parts(world, expiry)
    parts.finish()
    assert (world.shard.offsets, world.shard.groups) == ({}, {})
    assert len(parts.sizes) > 1


def test_much_that_stays_is_looked_at_in_parts() -> None:
    world = World()
    for number in range(20):
        commit(world, f"group-{number}", SLICE_LOOKS // 12)
    parts = Parts(world, expiry)
    parts.finish()
    assert parts.sizes == [0, 0]


def test_what_is_committed_between_the_parts_stays() -> None:
    world = World()
    commit(world, "large", MANY)
    world.now_ms = WEEK_MS
    parts = Parts(world, expiry)
    parts.next()
    parts.next()
    commit(world, "large", 2, first=MANY - 1)
    parts.finish()
    assert list(world.shard.offsets_of("large")["orders"]) == [MANY - 1, MANY]
    assert "large" in world.shard.groups


def test_a_group_that_is_used_again_between_the_parts_stays() -> None:
    world = World()
    commit(world, "first", 1)
    commit(world, "large", MANY)
    commit(world, "last", 1)
    world.now_ms = WEEK_MS
    parts = Parts(world, expiry)
    assert "first" not in world.shard.groups, "what was decided is not kept for later"
    commit(world, "first", 1)
    commit(world, "last", 1)
    parts.finish()
    assert set(world.shard.groups) == set(world.shard.offsets) == {"first", "last"}


def test_a_large_group_is_deleted_in_parts() -> None:
    world = World()
    commit(world, "large", MANY)
    parts = Parts(world, lambda shard, _: shard.decide_delete_group("large"))
    assert parts.finish() is ErrorCode.NONE
    assert (world.shard.offsets, world.shard.groups) == ({}, {})
    assert max(parts.sizes) <= SLICE_OFFSETS
    assert parts.tombstones == {("large", "orders", index) for index in range(MANY)}


def test_whoever_joins_a_group_that_is_being_deleted_meets_a_new_one() -> None:
    world = World()
    commit(world, GROUP, MANY)
    parts = Parts(world, lambda shard, _: shard.decide_delete_group(GROUP))
    assert world.shard.offsets_of(GROUP) == {}
    commit(world, GROUP, 1, first=7)
    world.enter("a")
    assert parts.finish() is ErrorCode.NONE
    assert list(world.shard.groups) == [GROUP], "the new one"
    assert list(world.shard.offsets_of(GROUP)["orders"]) == [7]
    assert parts.tombstones == {(GROUP, "orders", index) for index in range(MANY) if index != 7}


def test_a_large_group_with_members_is_not_deleted_at_all() -> None:
    world = World()
    commit(world, GROUP, MANY)
    world.enter("a")
    assert world.shard.decide_delete_group(GROUP) == Decision.reply_only(ErrorCode.NON_EMPTY_GROUP)


def test_offsets_of_a_deleted_topic_go_in_parts() -> None:
    world = World()
    commit(world, "large", MANY)
    commit(world, "large", 1, topic="other")
    for number in range(SLICE_LOOKS):
        commit(world, f"group-{number}", 1, topic="orders" if number % 100 == 0 else "other")
    parts = Parts(world, lambda shard, _: shard.decide_topics_deleted({"orders": ZERO_UUID, "gone": ZERO_UUID}))
    parts.finish()
    assert len(parts.sizes) > 3
    assert {topic for committed in world.shard.offsets.values() for topic in committed} == {"other"}


def test_offsets_of_deleted_topics_that_go_between_the_parts_stop_nothing() -> None:
    world = World()
    commit(world, "both", SLICE_OFFSETS + 1, topic="orders")
    commit(world, "both", SLICE_OFFSETS + 1, topic="bills")
    commit(world, "last", 1)
    parts = Parts(world, lambda shard, _: shard.decide_topics_deleted({"orders": ZERO_UUID, "bills": ZERO_UUID}))
    world.do(lambda shard, _: shard.decide_delete_offsets("both", _places(shard, "both")))
    parts.finish()
    assert world.shard.offsets == {}


def _places(shard: GroupShard, group_id: str) -> list[tuple[str, int]]:
    return [(topic, index) for topic, committed in shard.offsets_of(group_id).items() for index in committed]


def test_offsets_of_the_next_topic_of_that_name_stay() -> None:
    world = World()
    commit(world, "first", SLICE_OFFSETS + 1, topic_id=b"1" * 16)
    commit(world, "second", 2, topic_id=b"1" * 16)
    parts = Parts(world, lambda shard, _: shard.decide_topics_deleted({"orders": b"1" * 16}))
    commit(world, "second", 1, topic_id=b"2" * 16)
    parts.finish()
    assert {group: list(topics["orders"]) for group, topics in world.shard.offsets.items()} == {"second": [0]}


@pytest.mark.parametrize("count", [1, SLICE_OFFSETS])
def test_what_is_little_is_decided_at_once(count: int) -> None:
    world = World()
    commit(world, "group", count)
    world.now_ms = WEEK_MS
    for decision in (
        world.shard.decide_expiry(WEEK_MS),
        world.shard.decide_delete_group("group"),
    ):
        assert len(decision.records) == count + 1


@on_a_loop
async def test_expiry_of_which_a_slice_failed_is_done_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.coordinator.runtime.TIMER_RETRY_MS", 1)
    shard = GroupShard(GroupLimits(offsets_retention_ms=0, expiry_interval_ms=1))
    for partition in range(MANY):
        shard.apply(OffsetCommitted(GROUP, "orders", partition, CommittedOffset(1)))
    sizes_at_failure: list[int] = []

    def fail_once(self: GroupShard, fact: Fact) -> CoordinatorRecord | None:
        size = size_of(self.offsets_of(GROUP))
        if size < MANY and not sizes_at_failure:
            sizes_at_failure.append(size)
            raise ValueError("a mistake")
        return encode(self, fact)

    encode = GroupShard.encode
    monkeypatch.setattr(GroupShard, "encode", fail_once)
    runtime = Runtime(shard, MemoryJournal(), clock=SystemClock())
    runtime.write(lambda shard, now_ms: shard.decide_started(now_ms), lambda _: None)
    while GROUP in shard.groups:  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0.001)
    assert sizes_at_failure == [MANY - SLICE_OFFSETS]
    runtime.stop()

"""A shard with one consumer group, topics that the test chooses, and members that do as the protocol says."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicId
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.heartbeating import Heartbeat
from moldau.groups.consumer.topics import Topics
from moldau.groups.limits import ConsumerGroupConfig, GroupLimits
from moldau.groups.offsets.classic import CommittedPartition, Committing
from moldau.groups.shard import GroupShard
from moldau.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

GROUP = "readers"
CONFIG = ConsumerGroupConfig(assignment_interval_ms=0)
SESSION_MS = CONFIG.session_timeout_ms
REBALANCE_MS = 20_000


def topic_id(name: str) -> TopicId:
    return TopicId(name.encode().ljust(16, b"\1"))


def topic(name: str, partitions: int) -> TopicImage:
    return TopicImage(name, topic_id(name), tuple(PartitionImage((0,), (0,), 0) for _ in range(partitions)))


def image_of(counts: dict[str, int]) -> ClusterImage:
    topics = {name: topic(name, partitions) for name, partitions in counts.items()}
    return ClusterImage(topics=topics, topic_ids={each.id: name for name, each in topics.items()})


def topics_of(counts: dict[str, int], *, version: int = 1) -> Topics:
    return Topics(image_of(counts), version, version)


def beat(member_id: str, epoch: int = 0, **values: Any) -> Heartbeat:
    return Heartbeat(group_id=GROUP, member_id=member_id, epoch=epoch, client_id="c", client_host="/h", **values)


def joining(member_id: str, *names: str, **values: Any) -> Heartbeat:
    return beat(
        member_id,
        **{"rebalance_timeout_ms": REBALANCE_MS, "topics": frozenset(names), "owned": {}, **values},
    )


class ConsumerWorld:
    """Decisions are applied at once. A member owns what its last answer gave it, until it is told to give it up."""

    def __init__(self, counts: dict[str, int] | None = None, config: ConsumerGroupConfig = CONFIG) -> None:
        self.counts = {"orders": 4} if counts is None else counts
        self.config = config
        self.topics = topics_of(self.counts)
        self.shard = self.new_shard()
        self.now_ms = 1_000
        self.timers: dict[Hashable, int] = {}
        self.released: dict[Hashable, Any] = {}
        """Answers to classic members that waited."""
        self.logged: list[tuple[bytes, bytes | None]] = []
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, dict[bytes, frozenset[int]]] = {}

    def new_shard(self) -> GroupShard:
        return GroupShard(GroupLimits(), config_of=lambda _: self.config, topics=lambda: self.topics)

    @property
    def group(self) -> ConsumerGroup:
        return self.shard.consumer_groups[GROUP]

    def do(self, decide: Callable[[GroupShard, int], Decision[Any]]) -> Any:
        """Decide and apply; gives the reply."""
        before = deepcopy(self.shard.consumer_groups)
        decision = decide(self.shard, self.now_ms)
        assert self.shard.consumer_groups == before, "a decision changes nothing"
        for fact in decision.records:
            entry = self.shard.encode(fact)
            if entry is not None:
                self.logged.append(entry)
            self.shard.apply(fact)
        for timer in decision.timers:
            if timer.is_kept and timer.key in self.timers:
                continue
            self.timers.pop(timer.key, None)
            if timer.at_ms is not None:
                self.timers[timer.key] = timer.at_ms
        self.released.update({released.key: released.reply for released in decision.released})
        return decision.reply

    def send(self, request: Heartbeat) -> ConsumerGroupHeartbeatResponse:
        reply: ConsumerGroupHeartbeatResponse = self.do(
            lambda shard, now_ms: shard.decide_consumer_heartbeat(request, now_ms)
        )
        if reply.error_code == ErrorCode.NONE and reply.member_id is not None:
            self.epochs[reply.member_id] = reply.member_epoch
            if reply.assignment is not None:
                self.owned[reply.member_id] = {
                    each.topic_id: frozenset(each.partitions) for each in reply.assignment.topic_partitions
                }
        return reply

    def join(self, member_id: str, *names: str, **values: Any) -> ConsumerGroupHeartbeatResponse:
        self.owned[member_id] = {}
        return self.send(joining(member_id, *(names or ("orders",)), **values))

    def beat(self, member_id: str, **values: Any) -> ConsumerGroupHeartbeatResponse:
        """As the client is by now: at its epoch, with what it has."""
        owned = self.owned.get(member_id, {})
        return self.send(beat(member_id, self.epochs.get(member_id, 0), **{"owned": owned, **values}))

    def settle(self, *member_ids: str) -> None:
        """Heartbeats of all until nothing changes."""
        for _ in range(10):
            before = deepcopy(self.group)
            for member_id in member_ids:
                self.beat(member_id)
            if self.group == before:
                return
        raise AssertionError("the group does not settle")

    def pass_time(self, ms: int) -> None:
        """Fire the timers of that time in their order."""
        end_ms = self.now_ms + ms
        while due := [(at_ms, repr(key), key) for key, at_ms in self.timers.items() if at_ms <= end_ms]:
            self.now_ms, _, key = min(due)
            del self.timers[key]
            self.do(lambda shard, now_ms, key=key: shard.decide_timer(key, now_ms))  # type: ignore[misc]
        self.now_ms = end_ms

    def change_topics(self, **counts: int) -> None:
        """What is 0 is deleted."""
        self.counts = {name: count for name, count in {**self.counts, **counts}.items() if count}
        image = replace(image_of(self.counts), changed_topics=frozenset(counts))
        self.topics = self.topics.followed_by(image, now_ms=self.now_ms)

    def commit(self, member_id: str, epoch: int, partition: int, offset: int = 5, **values: Any) -> ErrorCode:
        request = Committing(
            group_id=GROUP,
            member_id=member_id,
            generation=epoch,
            partitions=[CommittedPartition("orders", partition, offset, topic_id=topic_id("orders"))],
            **values,
        )
        errors: list[ErrorCode] = self.do(lambda shard, now_ms: shard.decide_commit(request, now_ms))
        return errors[0]

    def assigned(self, member_id: str, name: str = "orders") -> set[int]:
        return set(self.group.members[member_id].progress.assigned.get(topic_id(name), {}))

"""One decision about a consumer group in the making: the facts so far, the group as they make it, and the timers."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TypeVar

from msgspec.structs import replace

from moldau.core.decision import Decision, Timer
from moldau.groups.consumer.assignors import ASSIGNORS, MemberSpec
from moldau.groups.consumer.facts import (
    ConsumerFact,
    GroupEpochSet,
    OldMetadataSet,
    ProfileSet,
    ProgressSet,
    RegexSet,
    TargetEpochSet,
    TargetSet,
    TopicsChecked,
)
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.members import JOIN_EPOCH, ConsumerMember, MemberState, Partitions
from moldau.groups.consumer.reconciliation import Goal, reconcile
from moldau.groups.consumer.topics import Topics
from moldau.groups.limits import ConsumerGroupConfig

R = TypeVar("R")

CONSUMER_SESSION = "consumer session"
CONSUMER_REBALANCE = "consumer rebalance"
CONSUMER_REGEX = "consumer regex"
CONSUMER_JOIN = "consumer join"
CONSUMER_SYNC = "consumer sync"
MEMBER_TIMERS = (CONSUMER_SESSION, CONSUMER_REBALANCE, CONSUMER_JOIN, CONSUMER_SYNC)
CONSUMER_TIMERS = (*MEMBER_TIMERS, CONSUMER_REGEX)


def consumer_session_key(group_id: str, member_id: str) -> Hashable:
    return (CONSUMER_SESSION, group_id, member_id)


def consumer_rebalance_key(group_id: str, member_id: str) -> Hashable:
    return (CONSUMER_REBALANCE, group_id, member_id)


def consumer_join_key(group_id: str, member_id: str) -> Hashable:
    """The time that a classic member has to join again."""
    return (CONSUMER_JOIN, group_id, member_id)


def consumer_sync_key(group_id: str, member_id: str) -> Hashable:
    """The time that a classic member has to fetch its assignment."""
    return (CONSUMER_SYNC, group_id, member_id)


def consumer_keys(group_id: str, member_id: str) -> tuple[Hashable, ...]:
    """All timers of one member."""
    return tuple((kind, group_id, member_id) for kind in MEMBER_TIMERS)


def consumer_regex_key(group_id: str) -> Hashable:
    return (CONSUMER_REGEX, group_id, "")


class ConsumerTurn:
    """`group` is as all facts so far make it. The group that was given stays as it is."""

    __slots__ = ("_facts", "_timers", "config", "group", "now_ms", "topics")

    def __init__(self, group: ConsumerGroup, *, config: ConsumerGroupConfig, topics: Topics, now_ms: int) -> None:
        self.group = group
        self.config = config
        self.topics = topics
        self.now_ms = now_ms
        self._facts: list[ConsumerFact] = []
        self._timers: dict[Hashable, Timer] = {}

    def decide(self, reply: R) -> Decision[R]:
        return Decision(tuple(self._facts), reply, tuple(self._timers.values()))

    def record(self, fact: ConsumerFact) -> None:
        if not self._facts:
            self.group = self.group.copy()
        self._facts.append(fact)
        self.group.apply(fact)

    def set_timer(self, key: Hashable, delay_ms: int) -> None:
        self._timers[key] = Timer(key, self.now_ms + delay_ms)

    def begin_timer(self, key: Hashable, delay_ms: int) -> None:
        """Unless it runs already."""
        self._timers[key] = Timer(key, self.now_ms + delay_ms, is_kept=True)

    def cancel_timer(self, key: Hashable) -> None:
        self._timers[key] = Timer(key, None)

    def await_heartbeat(self, member_id: str) -> None:
        """A classic member says itself how long it may be silent."""
        classic = self.group.members[member_id].profile.classic
        timeout_ms = self.config.session_timeout_ms if classic is None else classic.session_timeout_ms
        self.set_timer(consumer_session_key(self.group.group_id, member_id), timeout_ms)

    def remove(self, member_id: str) -> None:
        group_id = self.group.group_id
        self.record(ProgressSet(group_id, member_id, None))
        self.record(TargetSet(group_id, member_id, None))
        self.record(ProfileSet(group_id, member_id, None))
        for key in consumer_keys(group_id, member_id):
            self.cancel_timer(key)

    def replace(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """A static member takes its own place under another id."""
        group_id, target = self.group.group_id, self.group.target.get(old.member_id, {})
        progress = replace(old.progress, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        self.remove(old.member_id)
        self.record(ProfileSet(group_id, member_id, old.profile))
        self.record(TargetSet(group_id, member_id, target))
        self.record(ProgressSet(group_id, member_id, progress))
        return self.group.members[member_id]

    def fence(self, member_ids: Collection[str]) -> None:
        """Members go, whatever they have is free, and the others share it."""
        if not member_ids:
            return
        for member_id in member_ids:
            self.remove(member_id)
        self.drop_unused_regexes()
        self.bump()

    def drop_unused_regexes(self) -> None:
        wanted = self.group.subscribed_regexes()
        for regex in [known for known in self.group.regexes if known not in wanted]:
            self.record(RegexSet(self.group.group_id, regex, None))

    def bump(self) -> None:
        """There is a reason for another assignment."""
        group = self.group
        metadata_hash = self.topics.hash_of(group.subscribed_topics())
        self.record(GroupEpochSet(group.group_id, group.epoch + 1, metadata_hash))

    def check_topics(self, *, is_due: bool) -> None:
        """Another assignment is due because of the members, or because topics that they read have changed."""
        group, version = self.group, self.topics.version
        if not is_due and group.topics_version == version:
            return
        if is_due or self.topics.hash_of(group.subscribed_topics()) != group.metadata_hash:
            self.bump()
        if group.topics_version != version:
            self.record(TopicsChecked(group.group_id, version))
        if group.has_old_metadata:
            self.record(OldMetadataSet(group.group_id, is_there=False))

    def assign(self) -> None:
        """Compute the target of this epoch, unless the last one is too young."""
        group, interval_ms = self.group, self.config.assignment_interval_ms
        if group.target_epoch >= group.epoch:
            return
        if group.target_at_ms and self.now_ms < group.target_at_ms + interval_ms:
            return
        topics = self.topics
        specs = [
            MemberSpec(
                member.member_id,
                member.profile.instance_id,
                topics.ids_of(group.topics_of(member)),
                group.target.get(member.member_id, {}),
            )
            for member in group.members.values()
        ]
        assign = ASSIGNORS[group.assignor_name(self.config.assignors)]
        assigned = assign(specs, topics.shapes(group.subscribed_topics()))
        for spec in specs:
            target = assigned.get(spec.member_id, {})
            if group.target.get(spec.member_id) != target:
                self.record(TargetSet(group.group_id, spec.member_id, target))
        self.record(TargetEpochSet(group.group_id, group.epoch, self.now_ms))

    def reconcile(self, member_id: str, owned: Partitions | None, *, is_resubscribed: bool) -> None:
        """Bring a member as near to its target as the others allow."""
        group = self.group
        member = group.members[member_id]
        if not is_resubscribed and member.progress.is_reconciled_to(group.target_epoch):
            return
        goal = Goal(
            target_epoch=group.target_epoch,
            target=group.target.get(member_id, {}),
            subscribed=self.topics.ids_of(group.topics_of(member)),
            is_resubscribed=is_resubscribed,
            owned=owned,
            is_taken=lambda topic_id, partition: group.owner_of(topic_id, partition) not in (None, member_id),
        )
        progress = reconcile(member.progress, goal)
        if progress == member.progress:
            return
        self.record(ProgressSet(group.group_id, member_id, progress))
        key = consumer_rebalance_key(group.group_id, member_id)
        if progress.state is MemberState.UNREVOKED and not member.is_classic:
            self.set_timer(key, member.profile.rebalance_timeout_ms)
        else:
            self.cancel_timer(key)

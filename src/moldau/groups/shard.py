"""The groups whose ids fall into one partition of `__consumer_offsets`: their state, and every decision about it.

A group is classic or a consumer group. One becomes the other by the first member of the other kind, or the last: here
if nobody else is there, by `migration/conversion.py` if members go along.

Decisions read the state and change nothing; `apply` changes it and looks at no clock. Recovery is `apply` of what the
log holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from moldau.coordinator.journal import CoordinatorRecord, StoredRecord
from moldau.coordinator.long_work import chunks
from moldau.core.decision import Decision, Slices, Timer, sliced
from moldau.core.errors import ApiError, ErrorCode
from moldau.groups.classic import joining, membership
from moldau.groups.classic.group import Group
from moldau.groups.classic.joining import JoinReply
from moldau.groups.classic.members import Joining
from moldau.groups.classic.membership import Leaving, Syncing, SyncReply
from moldau.groups.classic.rebalance import JOIN, SESSION, SYNC, session_key
from moldau.groups.consumer import heartbeating
from moldau.groups.consumer.facts import ConsumerFact, GroupEpochSet, is_removal
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.heartbeating import Heartbeat
from moldau.groups.consumer.records import encode_consumer_fact
from moldau.groups.consumer.topics import Topics
from moldau.groups.consumer.turn import CONSUMER_REBALANCE, CONSUMER_REGEX, CONSUMER_TIMERS, ConsumerTurn
from moldau.groups.limits import ConsumerGroupConfig, GroupLimits
from moldau.groups.migration import conversion, mixed
from moldau.groups.offsets import classic as classic_offsets
from moldau.groups.offsets import consumer as consumer_offsets
from moldau.groups.offsets import sweeping
from moldau.groups.offsets.classic import Committing, GroupOffsets
from moldau.groups.offsets.pending import PendingOffsets
from moldau.groups.records import (
    CommittedOffset,
    Fact,
    GroupChanged,
    GroupCreated,
    GroupDeleted,
    OffsetCommitted,
    OffsetDeleted,
    OffsetPending,
    OffsetsDetached,
    TransactionEnded,
    decode_fact,
    decode_pending,
    encode_fact,
)
from moldau.wire.batch import NO_PRODUCER_ID
from moldau.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

R = TypeVar("R")

EXPIRY = ("expiry", "", "")
SLICE_TIMERS = 500  # set in one turn of the loop


class GroupShard:
    """A state machine that a runtime drives."""

    __slots__ = ("_config_of", "_topics", "consumer_groups", "groups", "limits", "offsets", "pending")

    def __init__(
        self,
        limits: GroupLimits,
        *,
        config_of: Callable[[str], ConsumerGroupConfig] = lambda _: ConsumerGroupConfig(),
        topics: Callable[[], Topics] = Topics,
    ) -> None:
        self.limits = limits
        self._config_of = config_of
        self._topics = topics
        self.groups: dict[str, Group] = {}
        """The classic ones, and those that only commit offsets."""
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.offsets: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self.pending = PendingOffsets()

    def encode(self, fact: Fact) -> CoordinatorRecord | None:
        return encode_consumer_fact(fact) if isinstance(fact, ConsumerFact) else encode_fact(fact)

    def decode(self, stored: StoredRecord) -> Fact | None:
        """What a record of the log states; ProtocolViolation if it is damaged."""
        if stored.marker is not None:
            return TransactionEnded(stored.producer_id, stored.marker.is_commit, stored.marker.coordinator_epoch)
        if stored.producer_id != NO_PRODUCER_ID:
            return decode_pending(stored.key, stored.value, stored.producer_id)
        return decode_fact(stored.key, stored.value)

    def apply(self, fact: Fact) -> None:
        match fact:
            case OffsetCommitted():
                self._commit(fact)
                if self.pending:
                    self.pending.overtaken(fact)
            case GroupChanged():
                self.groups[fact.group.group_id] = fact.group
            case GroupCreated():
                self.groups.setdefault(fact.group_id, Group(fact.group_id, state_since_ms=fact.at_ms))
            case OffsetDeleted():
                self._forget(fact)
            case OffsetPending():
                self._make_known(fact.group_id)
                self.pending.add(fact)
            case TransactionEnded():
                self._end_transaction(fact)
            case OffsetsDetached():
                self._detach_offsets(fact.group_id)
            case GroupDeleted():
                self.groups.pop(fact.group_id, None)
            case _:
                self._apply_consumer(fact)

    def _apply_consumer(self, fact: ConsumerFact) -> None:
        group = self.consumer_groups.get(fact.group_id)
        if group is None:
            if is_removal(fact):
                return
            self.groups.pop(fact.group_id, None)  # one that only had offsets so far
            group = self.consumer_groups[fact.group_id] = ConsumerGroup(fact.group_id)
        group.apply(fact)
        if isinstance(fact, GroupEpochSet) and fact.epoch is None:
            del self.consumer_groups[fact.group_id]

    def _commit(self, fact: OffsetCommitted) -> None:
        group_id = fact.group_id
        self._make_known(group_id)
        self.offsets.setdefault(group_id, {}).setdefault(fact.topic, {})[fact.partition] = fact.committed

    def _make_known(self, group_id: str) -> None:
        if group_id not in self.groups and group_id not in self.consumer_groups:
            self.groups[group_id] = Group(group_id)

    def _forget(self, fact: OffsetDeleted) -> None:
        topics = self.offsets.get(fact.group_id, {})
        partitions = topics.get(fact.topic, {})
        partitions.pop(fact.partition, None)
        self.pending.forget((fact.group_id, fact.topic, fact.partition))
        if not partitions:
            topics.pop(fact.topic, None)
        if not topics:
            self.offsets.pop(fact.group_id, None)

    def _detach_offsets(self, group_id: str) -> None:
        self.offsets.pop(group_id, None)
        for place in tuple(self.pending.of_group(group_id)):
            self.pending.forget((group_id, *place))

    def _end_transaction(self, fact: TransactionEnded) -> None:
        for counted in self.pending.end(fact.producer_id, is_commit=fact.is_commit):
            self._commit(counted)

    def offsets_of(self, group_id: str) -> GroupOffsets:
        return self.offsets.get(group_id, {})

    def decide_started(self, now_ms: int) -> Decision[None]:
        """After recovery every member has its full session time again; the old coordinator's clock is unknown."""
        return sliced(self._starting(now_ms))

    def _starting(self, now_ms: int) -> Slices[None]:
        timers = [Timer(EXPIRY, now_ms + self.limits.expiry_interval_ms)]
        looks = 0
        for group_id in (*self.groups, *self.consumer_groups):
            timers += self._timers_of(group_id, now_ms)
            looks += 1
            if len(timers) >= SLICE_TIMERS or looks == sweeping.SLICE_LOOKS:
                yield Decision((), None, tuple(timers))
                timers, looks = [], 0
        return Decision((), None, tuple(timers))

    def _timers_of(self, group_id: str, now_ms: int) -> Iterable[Timer]:
        """Those that a group needs that was just loaded. A member that was heard of since then has them already."""
        group, consumer_group = self.groups.get(group_id), self.consumer_groups.get(group_id)
        if group is not None:
            return [
                Timer(session_key(group_id, member.member_id), now_ms + member.session_timeout_ms, is_kept=True)
                for member in group.members.values()
            ]
        if consumer_group is None:
            return ()
        turn = self._turn(consumer_group, now_ms)
        heartbeating.resume(turn)
        return [Timer(timer.key, timer.at_ms, is_kept=True) for timer in turn.decide(None).timers]

    def _turn(self, group: ConsumerGroup, now_ms: int) -> ConsumerTurn:
        return ConsumerTurn(group, config=self._config_of(group.group_id), topics=self._topics(), now_ms=now_ms)

    def decide_timer(self, key: Hashable, now_ms: int) -> Decision[None]:
        assert isinstance(key, tuple)
        kind, group_id, member_id = key
        group, limits = self.groups.get(group_id), self.limits
        if kind == SESSION:
            return membership.decide_session_expired(group, group_id, member_id, limits=limits, now_ms=now_ms)
        if kind == JOIN:
            return membership.decide_join_expired(group, group_id, limits=limits, now_ms=now_ms)
        if kind == SYNC:
            return membership.decide_sync_expired(group, group_id, limits=limits, now_ms=now_ms)
        if kind in CONSUMER_TIMERS:
            return self._decide_consumer_timer(kind, group_id, member_id, now_ms)
        return self.decide_expiry(now_ms)

    def _decide_consumer_timer(self, kind: str, group_id: str, member_id: str, now_ms: int) -> Decision[None]:
        group = self.consumer_groups.get(group_id)
        if group is None:
            return Decision.reply_only(None)
        turn = self._turn(group, now_ms)
        if kind == CONSUMER_REGEX:
            return heartbeating.resolve_regexes(turn)
        expired = heartbeating.rebalance_expired if kind == CONSUMER_REBALANCE else heartbeating.member_expired
        return self._or_downgraded(turn, expired(turn, member_id))

    def decide_consumer_heartbeat(self, heartbeat: Heartbeat, now_ms: int) -> Decision[ConsumerGroupHeartbeatResponse]:
        group_id = heartbeat.group_id
        group, old = self.consumer_groups.get(group_id), self.groups.get(group_id)
        try:
            if group is None and not heartbeat.is_joining:
                raise heartbeating.no_group(group_id, is_classic=old is not None, is_leaving=heartbeat.is_leaving)
            turn = self._turn(group or ConsumerGroup(group_id), now_ms)
            if old is not None and not old.is_empty:
                conversion.upgrade(turn, old)
            reply = (
                heartbeating.leave(turn, heartbeat) if heartbeat.is_leaving else heartbeating.heartbeat(turn, heartbeat)
            )
        except ApiError as wrong:
            return Decision.reply_only(
                ConsumerGroupHeartbeatResponse(error_code=wrong.code, error_message=wrong.message)
            )
        decision = turn.decide(reply)
        if old is not None:
            facts = (GroupDeleted(group_id), *decision.records)
            return Decision(facts, reply, decision.timers, conversion.interrupted(old))
        return self._or_downgraded(turn, decision)

    def _or_downgraded(self, turn: ConsumerTurn, decision: Decision[R]) -> Decision[R]:
        """What was decided, unless only classic members are left by it."""
        if not decision.records or not conversion.may_downgrade(turn.group, turn.config, self.limits):
            return decision
        before = self.consumer_groups[turn.group.group_id]
        return conversion.downgrade(turn, decision.reply, ended=before, generation=before.epoch, limits=self.limits)

    def decide_join(self, request: Joining, now_ms: int) -> Decision[JoinReply]:
        consumer_group = self.consumer_groups.get(request.group_id)
        if consumer_group is not None and not consumer_group.is_empty:
            return mixed.decide_join(self._turn(consumer_group, now_ms), request, self.limits)
        group = self.groups.get(request.group_id)
        decision = joining.decide_join(group, request, limits=self.limits, now_ms=now_ms)
        if consumer_group is None or not decision.records:
            return decision
        return decision.after(*consumer_offsets.end_of(consumer_group))

    def decide_sync(self, request: Syncing, now_ms: int) -> Decision[SyncReply]:
        consumer_group = self.consumer_groups.get(request.group_id)
        if consumer_group is not None:
            return mixed.decide_sync(self._turn(consumer_group, now_ms), request)
        return membership.decide_sync(self.groups.get(request.group_id), request, limits=self.limits, now_ms=now_ms)

    def decide_heartbeat(
        self, group_id: str, member_id: str, generation: int, *, instance_id: str | None, now_ms: int
    ) -> Decision[ErrorCode]:
        consumer_group = self.consumer_groups.get(group_id)
        if consumer_group is not None:
            turn = self._turn(consumer_group, now_ms)
            return mixed.decide_heartbeat(turn, member_id, generation, instance_id=instance_id)
        group = self.groups.get(group_id)
        return membership.decide_heartbeat(group, member_id, generation, instance_id=instance_id, now_ms=now_ms)

    def decide_leave(self, group_id: str, leaving: Sequence[Leaving], now_ms: int) -> Decision[list[ErrorCode]]:
        consumer_group = self.consumer_groups.get(group_id)
        if consumer_group is not None:
            turn = self._turn(consumer_group, now_ms)
            return self._or_downgraded(turn, heartbeating.remove_members(turn, leaving))
        group = self.groups.get(group_id)
        return membership.decide_leave(group, group_id, leaving, limits=self.limits, now_ms=now_ms)

    def decide_commit(self, request: Committing, now_ms: int) -> Decision[list[ErrorCode]]:
        consumer_group = self.consumer_groups.get(request.group_id)
        if consumer_group is not None:
            return consumer_offsets.decide_commit(consumer_group, request, limits=self.limits, now_ms=now_ms)
        return classic_offsets.decide_commit(
            self.groups.get(request.group_id), request, limits=self.limits, now_ms=now_ms
        )

    def decide_commit_in_transaction(
        self, request: Committing, producer_id: int, now_ms: int
    ) -> Decision[list[ErrorCode]]:
        consumer_group = self.consumer_groups.get(request.group_id)
        if consumer_group is not None:
            return consumer_offsets.decide_commit_in_transaction(
                consumer_group, request, producer_id=producer_id, limits=self.limits, now_ms=now_ms
            )
        group = self.groups.get(request.group_id)
        return classic_offsets.decide_commit_in_transaction(
            group, request, producer_id=producer_id, limits=self.limits, now_ms=now_ms
        )

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether a client may fetch offsets as the member that it says it is, if it says that."""
        consumer_group = self.consumer_groups.get(group_id)
        return (
            ErrorCode.NONE if consumer_group is None else consumer_offsets.check_fetch(consumer_group, member_id, epoch)
        )

    def decide_end_transaction(
        self, producer_id: int, *, is_commit: bool, coordinator_epoch: int
    ) -> Decision[ErrorCode]:
        """A marker is always written: the log's own knowledge of the transaction must end too."""
        return Decision((TransactionEnded(producer_id, is_commit, coordinator_epoch),), ErrorCode.NONE)

    def decide_delete_offsets(
        self, group_id: str, partitions: Sequence[tuple[str, int]]
    ) -> Decision[ErrorCode | list[ErrorCode]]:
        known = {place for place in partitions if self._has_place(group_id, *place)}
        consumer_group = self.consumer_groups.get(group_id)
        if consumer_group is not None:
            return consumer_offsets.decide_delete_offsets(consumer_group, known, partitions)
        return classic_offsets.decide_delete_offsets(self.groups.get(group_id), known, partitions)

    def decide_delete_group(self, group_id: str) -> Decision[ErrorCode]:
        return sliced(self._deleting(group_id))

    def _deleting(self, group_id: str) -> Slices[ErrorCode]:
        """At once. Tombstones of many offsets follow in slices, and whoever joins meanwhile meets a new group."""
        if sweeping.size_of(self.offsets_of(group_id)) <= sweeping.SLICE_OFFSETS:
            return self._decide_delete(group_id, self._places(group_id))
        decision = self._decide_delete(group_id, ())
        if decision.reply is not ErrorCode.NONE:
            return decision
        pending, offsets = tuple(self.pending.of_group(group_id)), self.offsets[group_id]
        yield Decision((OffsetsDetached(group_id), *decision.records), ErrorCode.NONE)
        for places in chunks(chain(pending, sweeping.drained(offsets)), sweeping.SLICE_OFFSETS):
            # A tombstone after what was committed anew would be that one's.
            gone = [place for place in places if not self._has_place(group_id, *place)]
            yield Decision([OffsetDeleted(group_id, *place) for place in gone], ErrorCode.NONE, is_whole=False)
        return Decision((), ErrorCode.NONE)

    def _decide_delete(self, group_id: str, places: Collection[tuple[str, int]]) -> Decision[ErrorCode]:
        consumer_group = self.consumer_groups.get(group_id)
        if consumer_group is not None:
            return consumer_offsets.decide_delete_group(consumer_group, places)
        return classic_offsets.decide_delete_group(self.groups.get(group_id), places)

    def _has_place(self, group_id: str, topic: str, partition: int) -> bool:
        committed = self.offsets_of(group_id).get(topic, {})
        return partition in committed or self.pending.has(group_id, topic, partition)

    def _places(self, group_id: str) -> dict[tuple[str, int], None]:
        """Topics and partitions that the group has an offset for, or will have when a transaction is committed."""
        committed = [(topic, index) for topic, kept in self.offsets_of(group_id).items() for index in kept]
        return dict.fromkeys([*committed, *self.pending.of_group(group_id)])

    def decide_expiry(self, now_ms: int) -> Decision[None]:
        def expired(group_id: str, offsets: GroupOffsets) -> list[Fact]:
            group, consumer_group = self.groups.get(group_id), self.consumer_groups.get(group_id)
            if group is not None:
                return classic_offsets.expired(group, offsets, self.pending, limits=self.limits, now_ms=now_ms)
            if consumer_group is not None:
                return consumer_offsets.expired(
                    consumer_group, offsets, self.pending, limits=self.limits, now_ms=now_ms
                )
            return []

        again = Timer(EXPIRY, now_ms + self.limits.expiry_interval_ms)
        group_ids = (*self.groups, *self.consumer_groups)
        return sliced(sweeping.expiring(group_ids, self.offsets_of, expired, again=again))

    def decide_topics_deleted(self, topics: Mapping[str, bytes]) -> Decision[None]:
        """Offsets of a topic that is gone would be wrong for another of the same name. Topics are given with ids."""
        return sliced(sweeping.deleting_topics(tuple(self.offsets), self.offsets_of, topics))

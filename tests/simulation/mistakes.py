"""Deliberate mistakes, planted into the broker from outside: a simulation that does not notice them proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from moldau.broker.fetching import reading
from moldau.broker.producing.marker_appends import MarkerAppends
from moldau.coordinator.journal import StoredRecord
from moldau.coordinator.runtime import Runtime
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.groups.classic import membership
from moldau.groups.consumer import reconciliation
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.offsets import classic as classic_offsets
from moldau.groups.offsets import consumer as consumer_offsets
from moldau.groups.offsets.pending import PendingOffsets
from moldau.groups.shard import GroupShard
from moldau.replication.partition import Partition
from moldau.transactions import producers, transaction
from moldau.transactions.coordinator import TransactionCoordinator
from moldau.transactions.markers_due import MarkersDue
from moldau.transactions.shard import TransactionShard

Plant = Callable[[pytest.MonkeyPatch], None]


def skip_a_marker(patch: pytest.MonkeyPatch) -> None:
    write = MarkerAppends.write

    def forgetful(self: MarkerAppends, where: TopicPartition, due: MarkersDue, coordinator_epoch: int) -> Any:
        if where.partition == 1 and not where.topic.startswith("__"):
            return ErrorCode.NONE
        return write(self, where, due, coordinator_epoch)

    patch.setattr(MarkerAppends, "write", forgetful)


def admit_anybody(patch: pytest.MonkeyPatch) -> None:
    def admit(self: Any, transactional_id: str, producer: Any, partitions: Any, *, adds: bool) -> Any:
        return dict.fromkeys(partitions, ErrorCode.NONE)

    patch.setattr(TransactionCoordinator, "admit", admit)


def reply_before_the_append(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Runtime, "_when_committed", lambda self, reply, failed: reply)


def show_what_is_undecided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "last_stable_offset", property(lambda self: self.high_watermark))


def show_what_was_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "aborted", lambda partition, start, end: [])


def accept_old_generations(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classic_offsets, "_check_commit", lambda group, committing: ErrorCode.NONE)


def give_everybody_the_same(patch: pytest.MonkeyPatch) -> None:
    assigned = membership._assigned
    patch.setattr(membership, "_assigned", lambda group, member_id: assigned(group, group.leader or member_id))


def give_what_another_has(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "owner_of", lambda self, topic_id, partition: None)


def take_silence_for_yes(patch: pytest.MonkeyPatch) -> None:
    """A member that does not say what it holds is believed to have given up what it should."""
    patch.setattr(reconciliation, "_has_any", lambda owned, revoking: False)


def let_anybody_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(consumer_offsets, "_check_member", lambda group, committing: ErrorCode.NONE)


def forget_markers_when_loading(patch: pytest.MonkeyPatch) -> None:
    decode = GroupShard.decode

    def blind(self: GroupShard, stored: StoredRecord) -> Any:
        return None if stored.marker is not None else decode(self, stored)

    patch.setattr(GroupShard, "decode", blind)


def count_aborted_offsets(patch: pytest.MonkeyPatch) -> None:
    end = PendingOffsets.end
    patch.setattr(PendingOffsets, "end", lambda self, producer_id, *, is_commit: end(self, producer_id, is_commit=True))


def keep_the_epoch(patch: pytest.MonkeyPatch) -> None:
    initialised = transaction.initialised

    def unraised(before: Any, producer: Any, **values: Any) -> Any:
        epoch = max(before.epoch, 0)
        return initialised(before, producer._replace(epoch=epoch, producer_id=before.producer_id), **values)

    patch.setattr(producers, "initialised", unraised)


def never_time_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionShard, "decide_timeout", lambda self, key, now_ms: Decision.reply_only(None))


# Each with a part of what must be said about it.
MISTAKES: Mapping[Plant, str] = MappingProxyType(
    {
        skip_a_marker: "got no marker",
        admit_anybody: "but the coordinator knows",
        reply_before_the_append: "two owners|has offset|went back|is given to two|the coordinator knows",
        show_what_is_undecided: "is read to",
        show_what_was_aborted: "was read before it was committed",
        accept_old_generations: "was accepted after the partition had another owner",
        give_everybody_the_same: "two owners",
        give_what_another_has: "two owners",
        take_silence_for_yes: "two owners",
        let_anybody_commit: "had another owner",
        forget_markers_when_loading: "not everything was copied|not its input once|the coordinator has",
        count_aborted_offsets: "not everything was copied|not its input once|the coordinator has",
        keep_the_epoch: "is given to two",
        never_time_out: "that nobody ends",
    }
)

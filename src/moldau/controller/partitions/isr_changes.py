"""AlterPartition: what a leader says of its ISR, checked in Kafka's order. It is also what completes a reassignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.controller.image import RECOVERED, RECOVERING, ClusterImage, PartitionImage, TopicImage
from moldau.controller.members.brokers import broker_epoch_problem
from moldau.controller.partitions.changes import Target
from moldau.controller.partitions.edits import PartitionEdits
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicId

ANY_BROKER_EPOCH = -1  # of a replica whose epoch the leader does not know


class InSync(NamedTuple):
    broker_id: int
    broker_epoch: int = ANY_BROKER_EPOCH


class WantedIsr(NamedTuple):
    topic_id: TopicId
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[InSync, ...]
    leader_recovery_state: int = RECOVERED


class AlteredPartition(NamedTuple):
    """What became of one; the state is None where there is an error."""

    topic_id: TopicId
    partition: int
    error: ErrorCode = ErrorCode.NONE
    state: PartitionImage | None = None


def decide_alter_partition(
    image: ClusterImage, broker_id: int, broker_epoch: int, wanted: Sequence[WantedIsr], *, config: BrokerConfig
) -> Decision[list[AlteredPartition] | ErrorCode]:
    """One reply for each partition, in the order of the request, or an error of all of it."""
    stale = broker_epoch_problem(image, broker_id, broker_epoch)
    if stale is not ErrorCode.NONE:
        return Decision.reply_only(stale)
    edits = PartitionEdits(image, config)
    replies = [_alter(image, edits, broker_id, each) for each in wanted]
    return Decision(records=edits.records(), reply=replies)


def _alter(image: ClusterImage, edits: PartitionEdits, broker_id: int, wanted: WantedIsr) -> AlteredPartition:
    def refused(error: ErrorCode) -> AlteredPartition:
        return AlteredPartition(wanted.topic_id, wanted.partition, error)

    topic = image.topic_by_id(wanted.topic_id)
    if topic is None:
        return refused(ErrorCode.UNKNOWN_TOPIC_ID)
    if not 0 <= wanted.partition < len(topic.partitions):
        return refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    before = edits.state(topic, wanted.partition)
    error = _epoch_problem(before, broker_id, wanted) or _isr_problem(before, wanted)
    error = error or _ineligible(image, before, wanted)
    if error:
        return refused(error)
    return _altered(topic, edits, broker_id, wanted)


def _altered(topic: TopicImage, edits: PartitionEdits, broker_id: int, wanted: WantedIsr) -> AlteredPartition:
    before = edits.state(topic, wanted.partition)
    isr = tuple(each.broker_id for each in wanted.isr)
    edits.change(topic, wanted.partition, Target(isr=isr, leader_recovery_state=wanted.leader_recovery_state))
    after = edits.state(topic, wanted.partition)
    if after.leader != broker_id and after.leader_epoch != before.leader_epoch:
        # It completed a reassignment that takes the leader away: an error for the leader, and yet a change.
        return AlteredPartition(topic.id, wanted.partition, ErrorCode.NEW_LEADER_ELECTED)
    return AlteredPartition(topic.id, wanted.partition, state=after)


def _epoch_problem(before: PartitionImage, broker_id: int, wanted: WantedIsr) -> ErrorCode:
    if wanted.leader_epoch > before.leader_epoch or wanted.partition_epoch > before.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader knows more than this controller, which was probably replaced
    if wanted.leader_epoch < before.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != before.leader:
        return ErrorCode.INVALID_REQUEST
    if wanted.partition_epoch < before.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return ErrorCode.NONE


def _isr_problem(before: PartitionImage, wanted: WantedIsr) -> ErrorCode:
    ids = [each.broker_id for each in wanted.isr]
    is_recovering = wanted.leader_recovery_state == RECOVERING
    if (
        len(set(ids)) != len(ids)
        or not set(ids) <= set(before.replicas)
        or before.leader not in ids
        or wanted.leader_recovery_state not in (RECOVERED, RECOVERING)
        or (is_recovering and (len(ids) > 1 or before.leader_recovery_state == RECOVERED))
    ):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _ineligible(image: ClusterImage, before: PartitionImage, wanted: WantedIsr) -> ErrorCode:
    for replica in wanted.isr:
        if replica.broker_id in before.offline and replica.broker_id not in before.isr:
            return ErrorCode.INELIGIBLE_REPLICA
        broker = image.brokers.get(replica.broker_id)
        if broker is None or not broker.is_active or replica.broker_epoch not in (ANY_BROKER_EPOCH, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE

"""AssignReplicasToDirs: replicas in a log directory that failed are offline, and others lead and are in sync.

A directory without room (`FULL`, which Kafka does not know) is as good as failed where another replica is in sync. The
last one stays: what it has can be read, and nothing better is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.controller.image import BrokerImage, ClusterImage, PartitionImage
from moldau.controller.members.brokers import broker_epoch_problem
from moldau.controller.partitions.changes import Target
from moldau.controller.partitions.edits import PartitionEdits
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicId, format_uuid

# Kafka's ids for what is no directory.
UNASSIGNED, LOST, MIGRATING = (number.to_bytes(16, "big") for number in range(3))
FULL = (99).to_bytes(16, "big")  # the last of those that Kafka reserves


class ReplicaInDirectory(NamedTuple):
    directory_id: bytes
    topic_id: TopicId
    partition: int


def decide_assign_replicas_to_dirs(
    image: ClusterImage,
    broker_id: int,
    broker_epoch: int,
    replicas: Sequence[ReplicaInDirectory],
    *,
    config: BrokerConfig,
) -> Decision[list[ErrorCode] | ErrorCode]:
    """A reply for each replica, in the order of the request, or an error of all of it."""
    stale = broker_epoch_problem(image, broker_id, broker_epoch)
    if stale is not ErrorCode.NONE:
        return Decision.reply_only(stale)
    edits = PartitionEdits(image, config)
    broker = image.brokers[broker_id]
    replies = [_assign(image, edits, broker, each) for each in replicas]
    return Decision(records=edits.records(), reply=replies)


def _assign(image: ClusterImage, edits: PartitionEdits, broker: BrokerImage, replica: ReplicaInDirectory) -> ErrorCode:
    topic = image.topic_by_id(replica.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= replica.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    state = edits.state(topic, replica.partition)
    if broker.id not in state.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if replica.directory_id == FULL and not _can_do_without(state, broker.id, edits):
        return ErrorCode.NONE
    others = tuple(each for each in state.offline if each != broker.id)
    if _is_online(broker, replica.directory_id):
        target = Target(offline=others)
    else:
        isr = tuple(each for each in state.isr if each != broker.id)
        target = Target(isr=isr, offline=(*others, broker.id))
    edits.change(topic, replica.partition, target)
    return ErrorCode.NONE


def _can_do_without(state: PartitionImage, broker_id: int, edits: PartitionEdits) -> bool:
    return any(each in edits.able and each not in state.offline for each in state.isr if each != broker_id)


def _is_online(broker: BrokerImage, directory_id: bytes) -> bool:
    return directory_id in (UNASSIGNED, MIGRATING) or format_uuid(directory_id) in broker.directories

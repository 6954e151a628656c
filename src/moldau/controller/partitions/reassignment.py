"""Replicas that move to other brokers: they are added, catch up, and only then the others are removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.controller.partitions.changes import Election, Target
from moldau.controller.partitions.edits import PartitionEdits
from moldau.controller.partitions.states import Refusal, assignment_problem
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode


class WantedReplicas(NamedTuple):
    """The replicas that a partition shall have, or None to leave it with those that it had before."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


def is_reassigned(partition: PartitionImage) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def decide_reassign(
    image: ClusterImage,
    wanted: Sequence[WantedReplicas],
    *,
    config: BrokerConfig,
    may_change_replication_factor: bool = True,
) -> Decision[list[Refusal | None]]:
    """A reply for each partition, in the order of the request; one that is refused does not hold up the others."""
    edits = PartitionEdits(image, config)
    replies = [_reassign(image, edits, each, may_change_replication_factor) for each in wanted]
    return Decision(records=edits.records(), reply=replies)


def _reassign(
    image: ClusterImage, edits: PartitionEdits, wanted: WantedReplicas, may_change_replication_factor: bool
) -> Refusal | None:
    topic = image.topics.get(wanted.topic)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {wanted.topic}.")
    if not 0 <= wanted.partition < len(topic.partitions):
        message = f"Unable to find partition {wanted.topic}:{wanted.partition}."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if wanted.replicas is None:
        return _cancel(edits, topic, wanted.partition)
    problem = assignment_problem(image, wanted.replicas, None)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    before = edits.state(topic, wanted.partition)
    count = len(set(before.replicas) - set(before.removing_replicas))
    if not may_change_replication_factor and count != len(wanted.replicas):
        message = f"The replication factor is changed from {count} to {len(wanted.replicas)}"
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    edits.change(topic, wanted.partition, _target(before, wanted.replicas), election=Election.ONLINE)
    return None


def _target(before: PartitionImage, replicas: tuple[int, ...]) -> Target:
    """All that are there stay until the new ones are in sync. Those that are being added count as new."""
    removing = tuple(sorted(set(before.replicas) - set(replicas)))
    original = set(before.replicas) - set(before.adding_replicas)
    return Target(replicas=replicas + removing, removing=removing, adding=tuple(sorted(set(replicas) - original)))


def _cancel(edits: PartitionEdits, topic: TopicImage, index: int) -> Refusal | None:
    before = edits.state(topic, index)
    if not is_reassigned(before):
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    replicas = tuple(each for each in before.replicas if each not in before.adding_replicas)
    if not replicas:
        message = "Invalid replica assignment: addingReplicas contains all replicas."
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    isr = tuple(each for each in before.isr if each in replicas)
    # Where nobody is in sync, the eligible ones are what there is, and after them the last leader.
    having_most = set(before.isr or before.elr or before.last_known_elr)
    if having_most.isdisjoint(replicas) and having_most and edits.terms(topic).election is not Election.UNCLEAN:
        message = (
            f"Unable to revert partition assignment for {topic.name}:{index} because it would require an unclean "
            "leader election."
        )
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    edits.change(topic, index, Target(isr=isr, replicas=replicas, removing=(), adding=()))
    return None

"""Partitions of existing topics: there can be more of them, and their leaders and replicas can change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from moldau.controller.image import ClusterImage, Draft, PartitionImage, TopicImage
from moldau.controller.partitions.placement import Unplaceable, leader_position, new_partition, place
from moldau.controller.records import PartitionsAdded, PartitionsChanged, PartitionsRemoved
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID, TopicId
from moldau.core.limits import PARTITIONS_PER_REQUEST_MAX


class Refusal(msgspec.Struct, frozen=True):
    """Why something is not done: an error for the caller and Kafka's words for it."""

    error: ErrorCode
    message: str | None


THROTTLED = Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.THROTTLING_QUOTA_EXCEEDED.message)

Admit: TypeAlias = Callable[[int], bool]
"""Whether the client's quota allows so many partitions to be created or deleted, which counts them."""


def admit_all(_partitions: int) -> bool:
    return True


class MorePartitions(msgspec.Struct, frozen=True):
    """A topic that shall have `count` partitions; the assignments are those of the new ones."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


class ExtendedTopic(msgspec.Struct, frozen=True):
    """What became of one; the new partitions are those of `added`."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: TopicId = ZERO_UUID
    added: range = range(0)


def decide_create_partitions(
    image: ClusterImage, topics: Sequence[MorePartitions], *, validate_only: bool = False, admit: Admit = admit_all
) -> Decision[list[ExtendedTopic]]:
    """One reply per name, in the order of the request."""
    times_named = Counter(each.name for each in topics)
    records: list[PartitionsAdded] = []
    replies: list[ExtendedTopic] = []
    for wanted in {each.name: each for each in topics}.values():
        topic = image.topics.get(wanted.name)
        if times_named[wanted.name] > 1:
            replies.append(ExtendedTopic(wanted.name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif topic is None:
            replies.append(ExtendedTopic(wanted.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            added = _refuse_count(topic, wanted, admit) or _added(image, topic, wanted)
            if isinstance(added, Refusal):
                replies.append(ExtendedTopic(wanted.name, added.error, added.message))
                continue
            records.append(PartitionsAdded(topic.id, tuple(added)))
            new = range(len(topic.partitions), wanted.count)
            replies.append(ExtendedTopic(wanted.name, topic_id=topic.id, added=new))
    return Decision(records=() if validate_only else tuple(records), reply=replies)


def decide_undo_partitions(image: ClusterImage, topic_id: TopicId, count: int) -> Decision[None]:
    """Let a topic have `count` partitions again, because those added to it can't be made; none of them ever served."""
    topic = image.topic_by_id(topic_id)
    if topic is None or len(topic.partitions) <= count:
        return Decision.reply_only(None)
    return Decision(records=(PartitionsRemoved(topic_id, count),), reply=None)


def _refuse_count(topic: TopicImage, wanted: MorePartitions, admit: Admit) -> Refusal | None:
    now = len(topic.partitions)
    if wanted.count == now:
        return Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
    if wanted.count < now:
        message = f"The topic {topic.name} currently has {now} partition(s); {wanted.count} would not be an increase."
        return Refusal(ErrorCode.INVALID_PARTITIONS, message)
    added = wanted.count - now
    if wanted.assignments is not None and len(wanted.assignments) != added:
        message = (
            f"Attempted to add {added} additional partition(s), but only {len(wanted.assignments)} "
            "assignment(s) were specified."
        )
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    if added > PARTITIONS_PER_REQUEST_MAX:
        # Kafka runs into its own limit here and answers UNKNOWN_SERVER_ERROR.
        return Refusal(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    return None if admit(added) else THROTTLED


def _added(image: ClusterImage, topic: TopicImage, wanted: MorePartitions) -> list[PartitionImage] | Refusal:
    first = len(topic.partitions)
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        start = leader_position(image, topic.partitions[0].replicas[0])
        placed = place(
            image, partitions=wanted.count - first, replication_factor=factor, first_partition=first, start=start
        )
        if isinstance(placed, Unplaceable):
            return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, placed.message)
        return placed
    added: list[PartitionImage] = []
    for index, brokers in enumerate(wanted.assignments, start=first):
        partition = assigned_partition(image, index, brokers, replication_factor=factor)
        if isinstance(partition, Refusal):
            return partition
        added.append(partition)
    return added


def assigned_partition(
    image: ClusterImage, index: int, brokers: Sequence[int], *, replication_factor: int | None
) -> PartitionImage | Refusal:
    """A partition on the brokers that a request names, if it may be there."""
    message = assignment_problem(image, brokers, replication_factor)
    if message is None and not any(image.brokers[each].is_active for each in brokers):
        message = (
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )
    if message is not None:
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return new_partition(image, brokers)


def assignment_problem(image: ClusterImage, brokers: Sequence[int], replication_factor: int | None) -> str | None:
    prefix = "The manual partition assignment includes"
    if not brokers:
        return f"{prefix} an empty replica list."
    previous: int | None = None
    for broker in sorted(brokers):
        if broker not in image.brokers:
            return f"{prefix} broker {broker}, but no such broker is registered."
        if broker == previous:
            return f"{prefix} the broker {broker} more than once."
        previous = broker
    if replication_factor is not None and len(brokers) != replication_factor:
        return (
            f"{prefix} a partition with {len(brokers)} replica(s), but this is not consistent with previous "
            f"partitions, which have {replication_factor} replica(s)."
        )
    return None


def apply_partitions_added(draft: Draft, record: PartitionsAdded) -> None:
    topic = draft.image.topic_by_id(record.topic_id)
    assert topic is not None, "partitions are added to topics that exist"
    draft.put_topic(replace(topic, partitions=topic.partitions + record.partitions))


def apply_partitions_removed(draft: Draft, record: PartitionsRemoved) -> None:
    topic = draft.image.topic_by_id(record.topic_id)
    assert topic is not None, "partitions are taken back from topics that exist"
    draft.put_topic(replace(topic, partitions=topic.partitions[: record.count]))


def without_elr(topic: TopicImage) -> TopicImage:
    """With another `min.insync.replicas` records may be committed that an eligible replica lacks.

    Where nobody is in sync nothing is committed, and the eligible ones are all that there is.
    """
    partitions = tuple(
        replace(state, elr=(), last_known_elr=()) if state.elr and state.isr else state for state in topic.partitions
    )
    return replace(topic, partitions=partitions)


def clear_elrs(draft: Draft) -> None:
    """The same for all topics."""
    for topic in tuple(draft.image.topics.values()):
        if any(state.elr for state in topic.partitions):
            draft.put_topic(without_elr(topic))


def apply_partitions_changed(draft: Draft, record: PartitionsChanged) -> None:
    topic = draft.image.topic_by_id(record.topic_id)
    assert topic is not None, "partitions that change belong to a topic that exists"
    partitions = list(topic.partitions)
    for index, partition in record.partitions.items():
        partitions[index] = partition
    draft.put_topic(replace(topic, partitions=tuple(partitions)))

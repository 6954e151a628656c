"""Who leads: partitions lose their leader with its log directory, and get one again when the broker has read its files.

A leader after an unclean start is a new one, even if it is the same broker: a log that a power failure cut goes on with
other records at offsets that consumers have read. The higher epoch is how they, and followers, notice.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from moldau.controller.image import ClusterImage, Draft, PartitionImage
from moldau.controller.records import LeadersChanged
from moldau.core.decision import Decision
from moldau.core.ids import NO_LEADER, TopicPartition


def decide_leaderless(
    image: ClusterImage, broker_id: int, partitions: Collection[TopicPartition]
) -> Decision[list[TopicPartition]]:
    """Nobody leads what this broker led in a log directory that is offline; the reply names those partitions."""
    led = [each for each in partitions if (state := _state(image, each)) is not None and state.leader == broker_id]
    return Decision(records=_records(image, NO_LEADER, led), reply=led)


def decide_lead_again(
    image: ClusterImage, broker_id: int, unclean: Collection[TopicPartition]
) -> Decision[list[TopicPartition]]:
    """This broker leads anew what has no leader, and what it led when it was last stopped uncleanly."""
    leaderless = [
        TopicPartition(topic.name, index)
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if state.leader == NO_LEADER and broker_id in state.isr
    ]
    led = [each for each in unclean if (state := _state(image, each)) is not None and state.leader == broker_id]
    elected = leaderless + led
    return Decision(records=_records(image, broker_id, elected), reply=elected)


def _state(image: ClusterImage, partition: TopicPartition) -> PartitionImage | None:
    topic = image.topics.get(partition.topic)
    known = topic is not None and partition.partition < len(topic.partitions)
    return topic.partitions[partition.partition] if topic is not None and known else None


def _records(image: ClusterImage, leader: int, partitions: Collection[TopicPartition]) -> tuple[LeadersChanged, ...]:
    """One for each topic, however many partitions it has."""
    by_topic: dict[str, list[int]] = {}
    for each in partitions:
        by_topic.setdefault(each.topic, []).append(each.partition)
    return tuple(
        LeadersChanged(image.topics[name].id, leader, tuple(sorted(indexes))) for name, indexes in by_topic.items()
    )


def apply_leaders_changed(draft: Draft, record: LeadersChanged) -> None:
    topic = draft.image.topic_by_id(record.topic_id)
    assert topic is not None, "leaders change in topics that exist"
    partitions = list(topic.partitions)
    for index in record.indexes:
        before = partitions[index]
        partitions[index] = replace(
            before,
            leader=record.leader,
            leader_epoch=before.leader_epoch + 1,
            partition_epoch=before.partition_epoch + 1,
        )
    draft.put_topic(replace(topic, partitions=tuple(partitions)))

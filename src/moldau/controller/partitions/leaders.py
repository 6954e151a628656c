"""Who leads: whether there is anything to elect, and what a broker leads by itself after a start, or leads no longer.

A leader after an unclean start is a new one, even if it is the same broker: a log that a power failure cut goes on with
other records at offsets that consumers have read. The higher epoch is how they, and followers, notice.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from moldau.controller.image import ClusterImage, Draft, PartitionImage
from moldau.controller.partitions.states import Refusal
from moldau.controller.records import LeadersChanged
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, TopicPartition

PREFERRED, UNCLEAN = 0, 1  # Kafka's numbers for them

ELECTIONS_MAX = 1_000  # Kafka's limit for those of one turn, so that others have theirs


def needs_election(state: PartitionImage, kind: int) -> bool:
    return state.leader != state.replicas[0] if kind == PREFERRED else state.leader == NO_LEADER


def refuse_election(image: ClusterImage, partition: TopicPartition, kind: int) -> Refusal | None:
    """Why there is nothing to elect."""
    name, index = partition
    if name not in image.topics:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    state = partition_of(image, name, index)
    if state is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    if not needs_election(state, kind):
        return Refusal(ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.ELECTION_NOT_NEEDED.message)
    return None


def decide_leaderless(
    image: ClusterImage, broker_id: int, partitions: Collection[TopicPartition]
) -> Decision[list[TopicPartition]]:
    """Nobody leads what this broker led in a log directory that is offline; the reply names those partitions."""
    led = [each for each in partitions if _leads(image, broker_id, each)]
    return Decision(records=_records(image, NO_LEADER, led), reply=led)


def decide_lead_again(
    image: ClusterImage, broker_id: int, unclean: Collection[TopicPartition]
) -> Decision[list[TopicPartition]]:
    """This broker leads anew what has no leader, and what it led when it was last stopped uncleanly."""
    without_leader = [
        TopicPartition(topic.name, index)
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if state.leader == NO_LEADER and broker_id in state.isr
    ]
    led = [each for each in unclean if _leads(image, broker_id, each)]
    elected = without_leader + led
    return Decision(records=_records(image, broker_id, elected), reply=elected)


def _leads(image: ClusterImage, broker_id: int, partition: TopicPartition) -> bool:
    state = partition_of(image, *partition)
    return state is not None and state.leader == broker_id


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
        gone = (before.leader,) if record.leader == NO_LEADER else ()
        partitions[index] = replace(
            before,
            leader=record.leader,
            leader_epoch=before.leader_epoch + 1,
            partition_epoch=before.partition_epoch + 1,
            offline=(*(each for each in before.offline if each != record.leader), *gone),
        )
    draft.put_topic(replace(topic, partitions=tuple(partitions)))


def partition_of(image: ClusterImage, name: str, index: int) -> PartitionImage | None:
    topic = image.topics.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        return None
    return topic.partitions[index]

"""Taking over log directories that another broker wrote, Apache Kafka's for one, whose metadata we don't have."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from moldau.broker.context import Services
from moldau.broker.topics.creation import internal_topic_configs
from moldau.controller.image import BrokerImage, ClusterImage, Draft, TopicImage
from moldau.controller.machine import apply_to_draft
from moldau.controller.members.brokers import decide_register_broker
from moldau.controller.records import Record, TopicCreated
from moldau.controller.topics import CreatedTopic, NewTopic, decide_create_topics
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicId, TopicPartition, random_uuid
from moldau.core.topic_names import CLUSTER_METADATA_TOPIC
from moldau.log.checkpoints import CorruptCheckpoint, read_leader_epochs
from moldau.log.directories.opening import topic_id_of
from moldau.log.leader_epochs import UNDEFINED

LOGGER = logging.getLogger(__name__)

Found = dict[TopicPartition, TopicId | None]


async def register(services: Services, broker: BrokerImage) -> None:
    """Tell the cluster of this broker, and with the first entry of new metadata of the folders that are there.

    Only then, and in one step: beside metadata of ours, a folder without a topic is what a deletion left behind. It
    must not come back to life, also where it was the last topic.
    """
    is_new = not services.controller.image.brokers
    found = _folders(services) if is_new else {}
    for topic in await services.controller.write(partial(_decide, broker=broker, found=found, services=services)):
        if topic.error is ErrorCode.NONE:
            LOGGER.info("adopted topic %s with %d partitions; it has default configs", topic.name, topic.partitions)
        else:
            LOGGER.warning("could not adopt topic %s: %s", topic.name, topic.message)


def _folders(services: Services) -> Found:
    return {
        partition: topic_id_of(path)
        for partition, path in services.directories.unclaimed().items()
        if partition.topic != CLUSTER_METADATA_TOPIC
    }


def _decide(
    image: ClusterImage, *, broker: BrokerImage, found: Found, services: Services
) -> Decision[list[CreatedTopic]]:
    draft = Draft(image)
    records: list[Record] = [*decide_register_broker(image, broker).records]
    apply_to_draft(draft, records)
    replies: list[CreatedTopic] = []
    for name in sorted({partition.topic for partition in found}):
        adopted = _decide_adopt(draft.image, name, found, services)
        facts = [TopicCreated(_led_anew(each.topic, found, services)) for each in adopted.records]
        apply_to_draft(draft, facts)
        records += facts
        replies += adopted.reply
    return Decision(records=tuple(records), reply=replies)


def _decide_adopt(image: ClusterImage, name: str, found: Found, services: Services) -> Decision[list[CreatedTopic]]:
    indexes = [partition.partition for partition in found if partition.topic == name]
    topic_id = found[TopicPartition(name, min(indexes))] or random_uuid()
    configs = internal_topic_configs(name, services.config, replicas_max=1)
    topic = NewTopic(name, partitions=max(indexes) + 1, replication_factor=1, configs=configs)
    return decide_create_topics(image, [topic], config=services.config, new_id=lambda: topic_id)


def _led_anew(topic: TopicImage, found: Found, services: Services) -> TopicImage:
    """With an epoch after the last one of each log, as any new leader's: consumers remember the ones before."""
    partitions = tuple(
        replace(state, leader_epoch=1 + max(_epochs(TopicPartition(topic.name, index), services), default=UNDEFINED))
        if TopicPartition(topic.name, index) in found
        else state
        for index, state in enumerate(topic.partitions)
    )
    return replace(topic, partitions=partitions)


def _epochs(partition: TopicPartition, services: Services) -> Iterator[int]:
    for path in services.directories.paths:
        try:
            yield read_leader_epochs(f"{path}/{partition}").latest
        except CorruptCheckpoint as wrong:
            LOGGER.warning("%s; the leader epoch of %s begins anew", wrong, partition)

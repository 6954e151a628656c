"""Taking over data folders that another broker wrote, Apache Kafka's for one, whose metadata we don't have."""

from __future__ import annotations

import logging

from moldau.broker.context import Services
from moldau.broker.topic_creation import internal_topic_configs
from moldau.controller.topics import NewTopic, decide_create_topics
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicId, TopicPartition, random_uuid
from moldau.core.topic_names import CLUSTER_METADATA_TOPIC

log = logging.getLogger(__name__)


async def adopt_folders(services: Services) -> None:
    """Make topics of the folders that are there, if there is no topic at all.

    Only then: beside known topics a folder without one is what a deletion left behind, and must not come back to life.
    """
    if services.controller.image.topics:
        return
    found = {
        partition: topic_id
        for partition, topic_id in services.directories.unclaimed().items()
        if partition.topic != CLUSTER_METADATA_TOPIC
    }
    for name in sorted({partition.topic for partition in found}):
        await _adopt(name, found, services)


async def _adopt(name: str, found: dict[TopicPartition, TopicId | None], services: Services) -> None:
    indexes = [partition.partition for partition in found if partition.topic == name]
    topic_id = found[TopicPartition(name, min(indexes))] or random_uuid()
    configs = internal_topic_configs(name, services.config, replicas_max=1)
    topic = NewTopic(name, partitions=max(indexes) + 1, replication_factor=1, configs=configs)
    reply = await services.controller.write(
        lambda image: decide_create_topics(image, [topic], config=services.config, new_id=lambda: topic_id)
    )
    if reply[0].error is ErrorCode.NONE:
        log.info("adopted topic %s with %d partitions; it has default configs", name, topic.partitions)
    else:
        log.warning("could not adopt topic %s: %s", name, reply[0].message)

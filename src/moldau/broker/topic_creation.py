"""Creating topics because somebody asked about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moldau.broker.context import Services
from moldau.controller.topics import NewTopic, decide_create_topics
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.topic_names import GROUP_METADATA_TOPIC


async def auto_create(services: Services, names: Iterable[str]) -> dict[str, ErrorCode]:
    """Create the topics with the broker's defaults; gives the errors of those that could not be."""
    return await _create(
        services, [_group_topic(services) if name == GROUP_METADATA_TOPIC else NewTopic(name) for name in names]
    )


async def create_group_topic(services: Services) -> ErrorCode:
    """The topic of groups and committed offsets."""
    errors = await _create(services, [_group_topic(services)])
    return errors.get(GROUP_METADATA_TOPIC, ErrorCode.NONE)


def _group_topic(services: Services) -> NewTopic:
    """It has fewer replicas than configured while there are fewer brokers."""
    config = services.config
    brokers = sum(1 for _ in services.controller.image.active_brokers())
    return NewTopic(
        GROUP_METADATA_TOPIC,
        partitions=config.int("offsets.topic.num.partitions"),
        replication_factor=min(config.int("offsets.topic.replication.factor"), max(brokers, 1)),
        configs=internal_topic_configs(GROUP_METADATA_TOPIC, config),
    )


def internal_topic_configs(name: str, config: BrokerConfig) -> tuple[tuple[str, str], ...]:
    """What a topic needs so that what a coordinator keeps there is kept; nothing for a topic of users."""
    if name != GROUP_METADATA_TOPIC:
        return ()
    return (
        ("cleanup.policy", "compact"),
        ("compression.type", "producer"),
        ("segment.bytes", str(config.int("offsets.topic.segment.bytes"))),
    )


async def _create(services: Services, wanted: Sequence[NewTopic]) -> dict[str, ErrorCode]:
    try:
        created = await services.controller.write(
            lambda image: decide_create_topics(image, wanted, config=services.config)
        )
    except ApiError as wrong:
        return {topic.name: wrong.code for topic in wanted}
    # Somebody else may have created it since we looked.
    fine = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return {topic.name: topic.error for topic in created if topic.error not in fine}

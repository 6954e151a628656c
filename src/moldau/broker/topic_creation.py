"""Creating topics because somebody asked about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moldau.broker.context import Services
from moldau.controller.topics import NewTopic, decide_create_topics
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.topic_names import GROUP_METADATA_TOPIC


async def auto_create(services: Services, names: Iterable[str]) -> dict[str, ErrorCode]:
    """Create the topics with the broker's defaults; gives the errors of those that could not be."""
    return await _create(services, [NewTopic(name) for name in names])


async def create_group_topic(services: Services) -> ErrorCode:
    """The topic of groups and committed offsets; with fewer replicas than configured while there are fewer brokers."""
    config = services.config
    brokers = sum(1 for _ in services.controller.image.active_brokers())
    topic = NewTopic(
        GROUP_METADATA_TOPIC,
        partitions=config.int("offsets.topic.num.partitions"),
        replication_factor=min(config.int("offsets.topic.replication.factor"), max(brokers, 1)),
        configs=(
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(config.int("offsets.topic.segment.bytes"))),
        ),
    )
    errors = await _create(services, [topic])
    return errors.get(GROUP_METADATA_TOPIC, ErrorCode.NONE)


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

"""Creating topics because somebody asked about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from moldau.broker.context import Services
from moldau.controller.topics import NewTopic, decide_create_topics
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC


class Keys(NamedTuple):
    """The configuration of an internal topic's size."""

    partitions: str
    replicas: str


_KEYS: Mapping[str, Keys] = MappingProxyType(
    {
        GROUP_METADATA_TOPIC: Keys("offsets.topic.num.partitions", "offsets.topic.replication.factor"),
        TRANSACTION_STATE_TOPIC: Keys(
            "transaction.state.log.num.partitions", "transaction.state.log.replication.factor"
        ),
    }
)


async def auto_create(services: Services, names: Iterable[str]) -> dict[str, ErrorCode]:
    """Create the topics with the broker's defaults; gives the errors of those that could not be."""
    return await _create(services, [_new_topic(services, name) for name in names])


async def create_internal_topic(services: Services, name: str) -> ErrorCode:
    """A topic that a coordinator keeps its state in."""
    errors = await _create(services, [_new_topic(services, name)])
    return errors.get(name, ErrorCode.NONE)


def _new_topic(services: Services, name: str) -> NewTopic:
    """An internal one has fewer replicas than configured while there are fewer brokers."""
    keys = _KEYS.get(name)
    if keys is None:
        return NewTopic(name)
    config = services.config
    return NewTopic(
        name,
        partitions=config.int(keys.partitions),
        replication_factor=min(config.int(keys.replicas), _broker_count(services)),
        configs=internal_topic_configs(name, config, replicas_max=_broker_count(services)),
    )


def _broker_count(services: Services) -> int:
    return max(1, sum(1 for _ in services.controller.image.active_brokers()))


def internal_topic_configs(name: str, config: BrokerConfig, *, replicas_max: int) -> tuple[tuple[str, str], ...]:
    """What a topic needs so that what a coordinator keeps there is kept; nothing for a topic of users."""
    if name == GROUP_METADATA_TOPIC:
        return (
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(config.int("offsets.topic.segment.bytes"))),
        )
    if name == TRANSACTION_STATE_TOPIC:
        replicas_min = min(config.int("transaction.state.log.min.isr"), replicas_max)
        return (
            ("cleanup.policy", "compact"),
            ("compression.type", "uncompressed"),
            ("min.insync.replicas", str(replicas_min)),
            ("segment.bytes", str(config.int("transaction.state.log.segment.bytes"))),
            ("unclean.leader.election.enable", "false"),
        )
    return ()


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

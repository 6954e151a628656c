"""The topic that a sink makes if it is missing: with the partitions and settings that its options ask for."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from moldau.spark.clients.librdkafka import ANSWER_S_MAX, NoAnswer, admin_client, create_if_missing, reason
from moldau.spark.clients.settings import ClientSettings
from moldau.spark.option_values import OptionError, OptionValues

LOGGER = logging.getLogger(__name__)

PARTITIONS = "topicPartitions"
REPLICATION = "topicReplicationFactor"
CONFIG_PREFIX = "topicConfig."
MADE_MAX = 64  # topics that a worker remembers; asking once more does no harm


@dataclass(frozen=True, slots=True)
class NewTopicSettings:
    """None and nothing are the cluster's defaults."""

    partitions: int | None = None
    replication: int | None = None
    config: tuple[tuple[str, str], ...] = field(default=())

    @property
    def are_given(self) -> bool:
        return self != NewTopicSettings()


def new_topic_settings(options: Mapping[str, str]) -> NewTopicSettings:
    """Raises OptionError."""
    values = OptionValues(options)
    prefix = CONFIG_PREFIX.lower()
    config = {key.removeprefix(prefix): value for key, value in values.by_name.items() if key.startswith(prefix)}
    settings = NewTopicSettings(
        values.positive(PARTITIONS), values.positive(REPLICATION), tuple(sorted(config.items()))
    )
    if settings.are_given and not values.text("topic"):
        raise OptionError(
            f"options {PARTITIONS}, {REPLICATION} and {CONFIG_PREFIX}* need the option topic: "
            "topics that rows name for themselves are not made"
        )
    return settings


@lru_cache(maxsize=MADE_MAX)
def make_topic_once(client: ClientSettings, topic: str, settings: NewTopicSettings) -> None:
    """A stream's sink is made anew for every batch."""
    make_topic(client, topic, settings)


def make_topic(client: ClientSettings, topic: str, settings: NewTopicSettings) -> None:
    """If it is not there yet; one that is there stays as it is, and what differs is said in the log."""
    wanted = NewTopic(
        topic,
        num_partitions=settings.partitions or -1,
        replication_factor=settings.replication or -1,
        config=dict(settings.config),
    )
    try:
        is_new = create_if_missing(client, wanted)
    except KafkaException as wrong:
        raise NoAnswer(f"topic {topic} can't be made: {reason(wrong)}") from None
    for difference in () if is_new else differences(client, topic, settings):
        LOGGER.warning("topic %s is there and stays as it is: %s", topic, difference)


def differences(client: ClientSettings, topic: str, settings: NewTopicSettings) -> list[str]:
    """What of the settings a topic that exists does not have."""
    admin, found = admin_client(client), []
    there = len(admin.list_topics(topic, timeout=ANSWER_S_MAX).topics[topic].partitions)
    if settings.partitions not in (None, there):
        found.append(f"{PARTITIONS} = {settings.partitions} was asked for, it has {there}")
    if settings.config:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            told = admin.describe_configs([resource], request_timeout=ANSWER_S_MAX)[resource].result()
        except KafkaException as wrong:
            if wrong.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
            return found  # a job need not have the right to look
        for key, value in settings.config:
            actual = told[key].value if key in told else None
            if actual != value:
                found.append(f"{CONFIG_PREFIX}{key} = {value} was asked for, it has {actual}")
    return found

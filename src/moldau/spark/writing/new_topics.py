"""The topic that a sink makes if it is missing: with the partitions and settings that its options ask for."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from moldau.client.security import ClientSettings
from moldau.spark.clients.librdkafka import (
    ANSWER_S_MAX,
    NoAnswer,
    admin_client,
    create_if_missing,
    is_there,
    reason,
    topic_config,
)
from moldau.spark.option_values import OptionError, OptionValues

LOGGER = logging.getLogger(__name__)

PARTITIONS = "topicPartitions"
REPLICATION = "topicReplicationFactor"
CONFIG_PREFIX = "topicConfig."
TOLD_MAX = 64  # topics that a worker remembers; saying it once more does no harm


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


def keep_topic(client: ClientSettings, topic: str, settings: NewTopicSettings) -> None:
    """A stream's sink is made anew for every batch, and somebody may have deleted its topic since the last one."""
    if not is_there(client, topic):
        make_topic(client, topic, settings)
    _tell_differences_once(client, topic, settings)


@lru_cache(maxsize=TOLD_MAX)
def _tell_differences_once(client: ClientSettings, topic: str, settings: NewTopicSettings) -> None:
    _tell_differences(client, topic, settings)


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
    if not is_new:
        _tell_differences(client, topic, settings)


def _tell_differences(client: ClientSettings, topic: str, settings: NewTopicSettings) -> None:
    for difference in differences(client, topic, settings):
        LOGGER.warning("topic %s is there and stays as it is: %s", topic, difference)


def differences(client: ClientSettings, topic: str, settings: NewTopicSettings) -> list[str]:
    """What of the settings a topic that exists does not have."""
    admin, found = admin_client(client), []
    there = len(admin.list_topics(topic, timeout=ANSWER_S_MAX).topics[topic].partitions)
    if settings.partitions not in (None, there):
        found.append(f"{PARTITIONS} = {settings.partitions} was asked for, it has {there}")
    if settings.config:
        try:
            told = topic_config(admin, topic)
        except KafkaException as wrong:
            if wrong.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
            return found  # a job need not have the right to look
        for key, value in settings.config:
            actual = told[key].value if key in told else None
            if actual != value:
                found.append(f"{CONFIG_PREFIX}{key} = {value} was asked for, it has {actual}")
    return found

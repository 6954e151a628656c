"""Clients of the cluster, kept for the life of a Python worker: one for each task would cost more than its work."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, NewTopic, ResourceType

from moldau.client.security import ClientSettings
from moldau.spark.clients.settings import USUAL_PATIENCE, Patience
from moldau.spark.option_values import OptionError

CLIENT_ID = "moldau-spark"
ANSWER_S_MAX = 30.0
PAUSE_S = 0.2
LEADER_CHANGED = (KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH)
COORDINATOR_MOVES = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
)
# What is answered while a broker is restarted or a leader moves; librdkafka says "no entry" where nobody leads yet.
PASSING = (
    KafkaError._NOENT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
    *LEADER_CHANGED,
    *COORDINATOR_MOVES,
)
FORBIDDEN = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
CONSUMERS_MAX = 4  # a worker serves the queries of one application, one task at a time

# The library also unpacks no batch to more than this, and 100 MB, its default, are soon reached by what packs well.
UNPACKED_BYTES_MAX = 1 << 30
# Tuned for whole ranges: large fetches, a queue that never pauses the fetcher for its default of a second.
READING = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
    "queued.min.messages": "500000",
    "queued.max.messages.kbytes": "65536",
    "fetch.queue.backoff.ms": "5",
    "max.partition.fetch.bytes": "8388608",
    "receive.message.max.bytes": str(UNPACKED_BYTES_MAX),
}


Answer = TypeVar("Answer")


class NoAnswer(RuntimeError):
    """The cluster did not do what it was asked for; the message says what, and what the cluster said."""


def ignore_error(_error: KafkaError) -> None:
    """librdkafka reports on its own what the failing call reports too, in our words."""


def client_config(settings: ClientSettings, **own: str | bool) -> dict[str, Any]:
    """What the user set wins over the defaults of this package."""
    return {"client.id": CLIENT_ID, "log_level": 0, "error_cb": ignore_error, **own, **dict(settings)}


@lru_cache(maxsize=CONSUMERS_MAX)
def check_settings(settings: ClientSettings, *, group: str | None = None) -> None:
    """Let librdkafka judge the settings, on the driver and before anything runs; a consumer's have a group."""
    make: Any = Producer if group is None else Consumer
    own = {} if group is None else {"group.id": group}
    try:
        client = make(client_config(settings, **own))
    except (KafkaException, ValueError, TypeError) as wrong:
        raise OptionError(f"options kafka.*: {reason(wrong)}") from None
    if group is not None:
        client.close()


@lru_cache(maxsize=CONSUMERS_MAX)
def range_consumer(settings: ClientSettings, group: str) -> Consumer:
    """A consumer that is assigned ranges and joins no group; librdkafka looks for the group's coordinator all the same.

    So a cluster with ACLs has to allow it to describe that group.
    """
    config = client_config((), **READING) | dict(settings)
    # An explicit limit below our default would be refused if the queue were smaller than one fetch.
    return Consumer({**config, "group.id": group})


@lru_cache(maxsize=CONSUMERS_MAX)
def group_consumer(settings: ClientSettings, group_id: str) -> Consumer:
    """A consumer that commits offsets for a group without being its member."""
    return Consumer(client_config(settings) | {"group.id": group_id, "enable.auto.commit": "false"})


@lru_cache(maxsize=CONSUMERS_MAX)
def admin_client(settings: ClientSettings) -> AdminClient:
    return AdminClient(client_config(settings))


def topic_config(admin: AdminClient, topic: str, *, answer_s_max: float = ANSWER_S_MAX) -> dict[str, ConfigEntry]:
    """What applies to a topic, with where each value is from. Raises KafkaException."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    told: dict[str, ConfigEntry] = admin.describe_configs([resource], request_timeout=answer_s_max)[resource].result()
    return told


def create_if_missing(settings: ClientSettings, topic: NewTopic) -> bool:
    """False when it is there already, as it may be. Raises KafkaException.

    Whoever may make no topics is told so even of one that is there.
    """
    try:
        admin_client(settings).create_topics([topic], request_timeout=ANSWER_S_MAX)[topic.topic].result()
    except KafkaException as wrong:
        code = wrong.args[0].code()
        if code == KafkaError.TOPIC_ALREADY_EXISTS or (code in FORBIDDEN and is_there(settings, topic.topic)):
            return False
        raise
    return True


def is_there(settings: ClientSettings, topic: str) -> bool:
    """Asked so that no broker makes it."""
    asked = admin_client(settings).describe_topics(TopicCollection([topic]), request_timeout=ANSWER_S_MAX)
    return asked[topic].exception() is None


def group_names(settings: ClientSettings) -> list[str]:
    """All groups that one may know of. Raises KafkaException where a broker did not tell its own."""
    listed = admin_client(settings).list_consumer_groups(request_timeout=ANSWER_S_MAX).result()
    for wrong in listed.errors:  # of either kind, whatever the library says
        raise wrong if isinstance(wrong, KafkaException) else KafkaException(wrong)
    return [each.group_id for each in listed.valid]


def patiently(ask: Callable[[], Answer], patience: Patience = USUAL_PATIENCE) -> Answer:
    """A query lives longer than a broker: one that is away for a moment must not end it."""
    deadline_s, retries = time.monotonic() + ANSWER_S_MAX, 0
    while True:
        try:
            return ask()
        except KafkaException as wrong:
            is_over = time.monotonic() > deadline_s if patience.retries_max is None else retries >= patience.retries_max
            if wrong.args[0].code() not in PASSING or is_over:
                raise
            retries += 1
            time.sleep(PAUSE_S if patience.pause_s is None else patience.pause_s)


def reason(wrong: BaseException) -> str:
    """What the library says, without its codes."""
    if isinstance(wrong, KafkaException) and wrong.args and isinstance(wrong.args[0], KafkaError):
        return str(wrong.args[0].str())
    return str(wrong)

"""Creating topics and partitions, because somebody wants them or only asked about them.

They are created when they serve. What the controller has committed and no folder could be made for is taken back, so
that the answer is true and nothing is left half made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from moldau.broker.context import Context, Services
from moldau.controller.partitions.states import (
    Admit,
    ExtendedTopic,
    MorePartitions,
    admit_all,
    decide_create_partitions,
    decide_undo_partitions,
)
from moldau.controller.topics import CreatedTopic, NewTopic, are_too_many, decide_create_topics, decide_undo_topic
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

TOPICS_PER_WRITE = 200

T = TypeVar("T", CreatedTopic, ExtendedTopic)


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


async def auto_create(context: Context, names: Iterable[str]) -> dict[str, ErrorCode]:
    """Create the topics with the broker's defaults; gives the errors of those that could not be."""
    return await _create(context, [_new_topic(context.services, name) for name in names])


async def create_internal_topic(context: Context, name: str) -> ErrorCode:
    """A topic that a coordinator keeps its state in: whoever asked for it needs no right to create it."""
    errors = await _create(context, [_new_topic(context.services, name)], is_for_client=False)
    return errors.get(name, ErrorCode.NONE)


def _new_topic(services: Services, name: str) -> NewTopic:
    """An internal one has fewer replicas than configured where the cluster has fewer brokers."""
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
    """Also of those that are not there yet: a cluster that starts must not have one replica of its offsets for ever."""
    return max(services.brokers_expected, len(services.controller.image.brokers))


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


async def _create(context: Context, wanted: Sequence[NewTopic], *, is_for_client: bool = True) -> dict[str, ErrorCode]:
    services = context.services
    try:
        created = (
            None if services.controller.is_active else await _elsewhere(context, wanted, is_for_client=is_for_client)
        )
        if created is None:
            created = await create_topics(services, wanted, admit=_admitting(context))
    except ApiError as wrong:
        # Who is not the controller has asked for it long enough; the client asks again.
        is_elsewhere = wrong.code is ErrorCode.NOT_CONTROLLER
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_elsewhere else wrong.code
        return {topic.name: error for topic in wanted}
    # Somebody else may have created it since we looked.
    fine = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return {topic.name: _asked_again(topic.error) for topic in created if topic.error not in fine}


def _asked_again(error: ErrorCode) -> ErrorCode:
    """Who only asked for a topic knows nothing of quotas of those who create some, and asks again."""
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error is ErrorCode.THROTTLING_QUOTA_EXCEEDED else error


def _admitting(context: Context) -> Admit:
    quotas = context.services.quotas
    quota = None if quotas is None else quotas.mutating(context, strict=True)
    return admit_all if quota is None else quota.admit


async def _elsewhere(context: Context, wanted: Sequence[NewTopic], *, is_for_client: bool) -> list[CreatedTopic] | None:
    """By the controller on another broker; None if there is no such."""
    forwarding = context.services.forwarding
    if forwarding is None:
        return None
    # Imported here because a broker that is alone never needs it.
    from moldau.broker.topics.remote_creation import create_at_controller

    return await create_at_controller(context, forwarding, wanted, is_for_client=is_for_client)


async def create_topics(
    services: Services, wanted: Sequence[NewTopic], *, validate_only: bool = False, admit: Admit = admit_all
) -> list[CreatedTopic]:
    """One answer for each name, given when its partitions serve or are taken back."""
    answers: list[CreatedTopic] = []
    for portion in _portions(wanted, services.config):
        created = await services.controller.write(
            partial(
                decide_create_topics, topics=portion, config=services.config, validate_only=validate_only, admit=admit
            )
        )
        answers += created if validate_only else await _made(created, partial(_making, services))
    return answers


def _portions(wanted: Sequence[NewTopic], config: BrokerConfig) -> Iterator[list[NewTopic]]:
    """So many topics as are decided and followed in some milliseconds; those of one name stay together."""
    if len(wanted) <= TOPICS_PER_WRITE or are_too_many(wanted, config):
        yield list(wanted)
        return
    by_name: dict[str, list[NewTopic]] = {}
    for topic in wanted:
        by_name.setdefault(topic.name, []).append(topic)
    named = iter(by_name.values())
    while portion := [topic for alike in islice(named, TOPICS_PER_WRITE) for topic in alike]:
        yield portion


async def _made(topics: list[T], expect: Callable[[T], asyncio.Future[str | None]]) -> list[T]:
    """When they serve; in the place of one that could not be made stands why."""
    outcomes = {topic.name: expect(topic) for topic in topics if topic.error is ErrorCode.NONE}
    failures = {name: reason for name, outcome in outcomes.items() if (reason := await outcome) is not None}
    return [
        type(topic)(topic.name, ErrorCode.KAFKA_STORAGE_ERROR, failures[topic.name])
        if topic.name in failures
        else topic
        for topic in topics
    ]


def _making(services: Services, topic: CreatedTopic) -> asyncio.Future[str | None]:
    async def undo() -> None:
        await services.controller.write(lambda image: decide_undo_topic(image, topic.topic_id))

    return services.reconciliation.expect(topic.topic_id, range(topic.partitions), undo)


async def create_partitions(
    services: Services, wanted: Sequence[MorePartitions], *, validate_only: bool, admit: Admit = admit_all
) -> list[ExtendedTopic]:
    """The same for partitions of topics that are there."""
    extended = await services.controller.write(
        lambda image: decide_create_partitions(image, wanted, validate_only=validate_only, admit=admit)
    )
    return extended if validate_only else await _made(extended, partial(_extending, services))


def _extending(services: Services, topic: ExtendedTopic) -> asyncio.Future[str | None]:
    async def undo() -> None:
        await services.controller.write(lambda image: decide_undo_partitions(image, topic.topic_id, topic.added.start))

    return services.reconciliation.expect(topic.topic_id, topic.added, undo)

"""Topics that a client's question needs, created by the controller on another broker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from moldau.broker.context import Context
from moldau.broker.requests.forwarding import Forwarding
from moldau.controller.topics import DEFAULT, CreatedTopic, NewTopic
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

VERSION = 7
CREATE_MS_MAX = 10_000  # a client that only asked about a topic waits no longer: it asks again


async def create_at_controller(
    context: Context, forwarding: Forwarding, wanted: Sequence[NewTopic], *, is_for_client: bool
) -> list[CreatedTopic] | None:
    """What became of each, once this broker knows of those that exist; None if no controller was found."""
    config = context.services.config
    request = CreateTopicsRequest(topics=[_creatable(topic, config) for topic in wanted], timeout_ms=CREATE_MS_MAX)
    response = await forwarding.ask_for_client(
        request,
        VERSION,
        CreateTopicsResponse,
        header=context.header,
        peer=context.peer if is_for_client else None,
        timeout_ms=CREATE_MS_MAX,
    )
    if response is None:
        return None
    created = [CreatedTopic(each.name, ErrorCode(each.error_code), each.error_message) for each in response.topics]
    exists = {each.name for each in created if each.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CREATE_MS_MAX / 1_000):
            await forwarding.seen(lambda image: exists <= image.topics.keys())
    return created


def _creatable(topic: NewTopic, config: BrokerConfig) -> CreatableTopic:
    """With the defaults of the broker that was asked, as Kafka does it."""
    is_sized = topic.partitions != DEFAULT
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions if is_sized else config.int("num.partitions"),
        replication_factor=topic.replication_factor if is_sized else config.int("default.replication.factor"),
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
    )

"""What is named twice in one request is refused, however much is between the two."""

from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.limits import LARGE_REQUEST_BYTES
from moldau.wire import messages
from moldau.wire.codec import encode
from moldau.wire.messages.alter_configs import AlterableConfig, AlterConfigsResource
from moldau.wire.messages.create_partitions import CreatePartitionsTopic
from moldau.wire.messages.delete_topics import DeleteTopicState
from moldau.wire.messages.incremental_alter_configs import AlterableConfig as IncrementalConfig
from moldau.wire.messages.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.schema import Message
from tests.broker.handlers.wire import Wire

TOPIC = 2
OTHERS = [1, 1_000]  # names between the two: a short request, and one that is answered in parts


def others(count: int) -> list[str]:
    return [f"there-is-no-such-topic-and-its-name-is-long-{number}" for number in range(count)]


def is_long(request: Message, version: int, count: int) -> bool:
    return (len(encode(request, version)) > LARGE_REQUEST_BYTES) == (count > 1)


def partitions(wire: Wire, name: str) -> int | ErrorCode:
    request = messages.MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (found,) = wire.ask(request, 12, messages.MetadataResponse).topics
    return ErrorCode(found.error_code) if found.error_code else len(found.partitions)


@pytest.mark.parametrize("count", OTHERS)
def test_topics_to_be_extended(wire: Wire, name: str, count: int) -> None:
    wire.create_topic(name)
    wanted = [(name, 2), *((each, 2) for each in others(count)), (name, 3)]
    topics = [CreatePartitionsTopic(name=each, count=number, assignments=None) for each, number in wanted]
    request = messages.CreatePartitionsRequest(topics=topics, timeout_ms=20_000)
    assert is_long(request, 3, count)
    results = wire.ask(request, 3, messages.CreatePartitionsResponse).results
    found = [(each.error_code, each.error_message) for each in results if each.name == name]
    assert found == [(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")]
    assert len(results) == count + 1
    assert partitions(wire, name) == 1


@pytest.mark.parametrize("count", OTHERS)
def test_topics_to_be_deleted_by_name_and_by_id(wire: Wire, name: str, count: int) -> None:
    topic_id = wire.create_topic(name).topic_id
    named = [DeleteTopicState(name=each) for each in [name, *others(count)]]
    request = messages.DeleteTopicsRequest(
        topics=[*named, DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=20_000
    )
    assert is_long(request, 6, count)
    responses = wire.ask(request, 6, messages.DeleteTopicsResponse).responses
    found = [each for each in responses if each.name == name or each.topic_id == topic_id]
    assert {each.error_code for each in found} == {ErrorCode.INVALID_REQUEST}
    assert partitions(wire, name) == 1


@pytest.mark.usefixtures("moldau_only")
@pytest.mark.parametrize("count", OTHERS)
def test_resources_to_be_configured(wire: Wire, name: str, count: int) -> None:
    wire.create_topic(name)
    wanted = [(name, "1"), *((each, "1") for each in others(count)), (name, "2")]
    resources = [AlterConfigsResource(TOPIC, each, [AlterableConfig("retention.ms", value)]) for each, value in wanted]
    request = messages.AlterConfigsRequest(resources=resources)
    assert is_long(request, 2, count)
    responses = wire.ask(request, 2, messages.AlterConfigsResponse).responses
    found = {(each.error_code, each.error_message) for each in responses if each.resource_name == name}
    assert found == {(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")}


@pytest.mark.parametrize("count", OTHERS)
def test_resources_to_be_configured_incrementally(wire: Wire, name: str, count: int) -> None:
    wire.create_topic(name)
    wanted = [(name, "1"), *((each, "1") for each in others(count)), (name, "2")]
    resources = [
        IncrementalResource(TOPIC, each, [IncrementalConfig("retention.ms", 0, value)]) for each, value in wanted
    ]
    request = messages.IncrementalAlterConfigsRequest(resources=resources)
    assert is_long(request, 1, count)
    responses = wire.ask(request, 1, messages.IncrementalAlterConfigsResponse).responses
    found = {(each.error_code, each.error_message) for each in responses if each.resource_name == name}
    assert found == {(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")}

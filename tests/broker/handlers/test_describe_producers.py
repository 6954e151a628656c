from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from moldau.wire.messages.describe_producers import PartitionResponse, ProducerState, TopicRequest
from tests.broker.handlers.wire import RECORD_TIME_MS, Wire


def describe(wire: Wire, name: str, partition: int = 0) -> PartitionResponse:
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[partition])])
    (topic,) = wire.ask(request, 0, DescribeProducersResponse).topics
    (found,) = topic.partitions
    assert (topic.name, found.partition_index) == (name, partition)
    return found


def test_an_idempotent_producer_is_remembered(wire: Wire, name: str) -> None:
    wire.create_topic(name)
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    producer_id = wire.ask(request, 4, InitProducerIdResponse).producer_id
    wire.produce(name, 0, *"abc", producer_id=producer_id, producer_epoch=0, base_sequence=0)
    found = describe(wire, name)
    assert found.active_producers == [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=0,
            last_sequence=2,
            last_timestamp=RECORD_TIME_MS,
            coordinator_epoch=-1,
            current_txn_start_offset=-1,
        )
    ]


def test_a_plain_producer_is_not(wire: Wire, name: str) -> None:
    wire.create_topic(name)
    wire.produce(name, 0, "a")
    found = describe(wire, name)
    assert (found.error_code, found.error_message, found.active_producers) == (ErrorCode.NONE, None, [])


@pytest.mark.parametrize("partition", [9, -1])
def test_a_partition_that_is_not_there(wire: Wire, name: str, partition: int) -> None:
    wire.create_topic(name)
    found = describe(wire, name, partition)
    assert (found.error_code, found.error_message) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "there-is-no-such-topic",
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '..' is not allowed"),
    ],
)
def test_a_topic_that_is_not_there(wire: Wire, name: str, error: ErrorCode, message: str) -> None:
    found = describe(wire, name)
    assert (found.error_code, found.error_message) == (error, message)


def test_answers_follow_the_questions(wire: Wire, name: str) -> None:
    wire.create_topic(name, 2)
    asked = [("there-is-no-such-topic", [0]), (name, [1, 0, 0]), (name, [])]
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=each, partition_indexes=indexes) for each, indexes in asked]
    )
    response = wire.ask(request, 0, DescribeProducersResponse)
    assert [(topic.name, [each.partition_index for each in topic.partitions]) for topic in response.topics] == asked


@pytest.mark.usefixtures("moldau_only")
def test_a_small_request_gets_no_enormous_answer(wire: Wire, name: str) -> None:
    wire.create_topic(name)
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[0] * 100_000)])
    with pytest.raises(ConnectionError):
        wire.ask(request, 0, DescribeProducersResponse)

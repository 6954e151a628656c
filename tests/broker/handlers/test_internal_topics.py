"""The coordinators' topics are written by the coordinators alone."""

from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire import messages
from moldau.wire.batch import build_batch
from moldau.wire.messages import FindCoordinatorRequest
from moldau.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.records import Record
from tests.broker.handlers.test_find_coordinator import until_available
from tests.broker.handlers.wire import RECORD_TIME_MS, Wire

TOPICS = ["__consumer_offsets", "__transaction_state"]


@pytest.fixture(params=TOPICS)
def internal(request: pytest.FixtureRequest, wire: Wire) -> str:
    name: str = request.param
    until_available(wire, FindCoordinatorRequest(key="anybody", key_type=TOPICS.index(name)), 2)
    wire.await_topic(name, 1)
    return name


@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("version", range(3, 13))
def test_a_client_can_not_write_to_them(wire: Wire, internal: str, version: int, acks: int) -> None:
    records = build_batch([Record(0, RECORD_TIME_MS, b"key", b"value")])
    data = TopicProduceData(name=internal, partition_data=[PartitionProduceData(index=0, records=records)])
    request = messages.ProduceRequest(acks=acks, timeout_ms=20_000, topic_data=[data])
    (result,) = wire.ask(request, version, messages.ProduceResponse).responses[0].partition_responses
    assert (result.error_code, result.base_offset) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)


def test_a_client_can_not_delete_their_records(wire: Wire, internal: str) -> None:
    partitions = [DeleteRecordsPartition(partition_index=index, offset=0) for index in (0, 99)]
    request = messages.DeleteRecordsRequest(topics=[DeleteRecordsTopic(internal, partitions)], timeout_ms=20_000)
    (result,) = wire.ask(request, 2, messages.DeleteRecordsResponse).topics
    errors = {each.partition_index: each.error_code for each in result.partitions}
    assert errors == {0: ErrorCode.INVALID_TOPIC_EXCEPTION, 99: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

"""One Produce to very many partitions: stored whole and in order, while other clients' bytes come and go."""

from __future__ import annotations

import threading

import pytest

from moldau.broker.handlers.produce import own_records
from moldau.core.errors import ErrorCode
from moldau.wire.batch import Record, build_batch, records
from moldau.wire.codec import decode, encode
from moldau.wire.messages import FetchRequest, FetchResponse
from moldau.wire.messages import ProduceRequest as Request
from moldau.wire.messages import ProduceResponse as Response
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.broker.handlers.wire import RECORD_TIME_MS, Wire

PARTITIONS = 600  # in fewer bytes than one packet on loopback has, so that they lie in the shared buffer


def produce(name: str, *, value_bytes: int, acks: int = -1) -> Request:
    data = [
        PartitionProduceData(index, build_batch([Record(0, RECORD_TIME_MS, b"%d" % index, bytes(value_bytes))]))
        for index in range(PARTITIONS)
    ]
    return Request(acks=acks, timeout_ms=20_000, topic_data=[TopicProduceData(name=name, partition_data=data)])


def test_records_that_are_stored_later_are_no_view_of_the_shared_buffer() -> None:
    frame = bytearray(encode(produce("t", value_bytes=10), 9))
    request, _ = decode(Request, 9, frame)
    before = [bytes(data.records or b"") for data in request.topic_data[0].partition_data]
    own_records(request)
    frame[:] = bytes(len(frame))
    assert [bytes(data.records or b"") for data in request.topic_data[0].partition_data] == before


def stored_keys(wire: Wire, name: str, partition: int) -> list[bytes]:
    wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(max_bytes=1 << 20, topics=[FetchTopic(topic=name, partitions=[wanted])])
    answer = wire.ask(request, 10, FetchResponse).responses[0].partitions[0].records
    assert isinstance(answer, memoryview)
    return [bytes(record.key or b"") for record in records(answer, decompressed_bytes_max=1 << 20)]


@pytest.mark.parametrize("value_bytes", [10, 1_000], ids=["in the shared buffer", "in a buffer of its own"])
def test_each_partition_gets_its_own_records(wire: Wire, bootstrap: str, name: str, value_bytes: int) -> None:
    wire.create_topic(name, PARTITIONS)
    wire.create_topic(f"{name}-other")
    stop = threading.Event()

    def write() -> None:
        """Frames as long as the whole request, which come to lie where it lay."""
        other = Wire(bootstrap)
        batch = build_batch([Record(0, RECORD_TIME_MS, b"other", bytes(300_000))])
        rows = [TopicProduceData(name=f"{name}-other", partition_data=[PartitionProduceData(0, batch)])]
        while not stop.is_set():
            other.ask(Request(acks=-1, timeout_ms=20_000, topic_data=rows), 9, Response)
        other.close()

    noise = threading.Thread(target=write)
    noise.start()
    try:
        answer = wire.ask(produce(name, value_bytes=value_bytes), 9, Response)
    finally:
        stop.set()
        noise.join()
    (row,) = answer.responses
    assert [each.index for each in row.partition_responses] == [*range(PARTITIONS)]
    assert {(each.error_code, each.base_offset) for each in row.partition_responses} == {(0, 0)}
    for index in range(0, PARTITIONS, 97):
        assert stored_keys(wire, name, index) == [b"%d" % index]


def test_a_partition_that_is_not_there_hurts_no_other(wire: Wire, name: str) -> None:
    wire.create_topic(name, PARTITIONS - 1)
    (row,) = wire.ask(produce(name, value_bytes=10), 9, Response).responses
    codes = [each.error_code for each in row.partition_responses]
    assert codes == [ErrorCode.NONE] * (PARTITIONS - 1) + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

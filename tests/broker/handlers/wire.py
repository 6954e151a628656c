"""One connection to the broker under test: a request as a message class, its answer as another."""

from __future__ import annotations

import socket
from itertools import count
from time import monotonic
from typing import Any, TypeVar

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.wire import messages
from moldau.wire.batch import build_batch
from moldau.wire.codec import decode, encode_parts, is_flexible
from moldau.wire.frame import RequestHeader, read_response_header, request_parts
from moldau.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
)
from moldau.wire.messages.offset_for_leader_epoch import OffsetForLeaderPartition, OffsetForLeaderTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.records import Record
from moldau.wire.schema import Message

ANSWER_WAIT_S = 20.0
RECORD_TIME_MS = 1_700_000_000_000
Response = TypeVar("Response", bound=Message)


class Wire:
    def __init__(self, bootstrap: str, client_id: str = "tests") -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), ANSWER_WAIT_S)
        self._correlation_ids = count(1)
        self._client_id = client_id

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Message, version: int, answer: type[Response]) -> Response:
        header = RequestHeader(request.API_KEY, version, next(self._correlation_ids), self._client_id)
        parts = request_parts(header, encode_parts(request, version), is_flexible=is_flexible(type(request), version))
        self._socket.sendall(b"".join(parts))
        frame = memoryview(self._exactly(int.from_bytes(self._exactly(4), "big")))
        correlation_id, at = read_response_header(frame, answer, version)
        assert correlation_id == header.correlation_id
        response, end = decode(answer, version, frame, at)
        assert end == len(frame), "the answer has bytes that its version has no place for"
        return response

    def _exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            more = self._socket.recv(size - len(received))
            if not more:
                raise ConnectionError("the broker closed the connection")
            received += more
        return bytes(received)

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> CreatableTopicResult:
        """Configs are written with underscores for the dots of their keys."""
        settings = {key.replace("_", "."): text for key, text in configs.items()}
        created = self.create(topic(name, partitions, configs=settings))
        assert created.error_code == ErrorCode.NONE, created
        self.await_topic(name, partitions)
        return created

    def await_topic(self, name: str, partitions: int) -> None:
        """Apache Kafka says that a topic was created some time before it leads its partitions."""
        wanted = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in range(partitions)]
        request = messages.OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[OffsetForLeaderTopic(topic=name, partitions=wanted)]
        )
        deadline_s = monotonic() + ANSWER_WAIT_S
        while True:
            (found,) = self.ask(request, 4, messages.OffsetForLeaderEpochResponse).topics
            if all(each.error_code == ErrorCode.NONE for each in found.partitions):
                return
            assert monotonic() < deadline_s, f"{name} was created and has no leader: {found}"

    def create(self, wanted: CreatableTopic, *, version: int = 7, validate_only: bool = False) -> CreatableTopicResult:
        request = messages.CreateTopicsRequest(topics=[wanted], timeout_ms=20_000, validate_only=validate_only)
        (result,) = self.ask(request, version, messages.CreateTopicsResponse).topics
        return result

    def produce(self, name: str, partition: int, *keys: str, **of_batch: int) -> Offset:
        """Append a record for each key, in one batch; the base offset."""
        records = [Record(offset, RECORD_TIME_MS, key.encode(), b"value") for offset, key in enumerate(keys)]
        data = PartitionProduceData(index=partition, records=build_batch(records, **of_batch))  # type: ignore[arg-type]
        request = messages.ProduceRequest(
            acks=-1, timeout_ms=20_000, topic_data=[TopicProduceData(name=name, partition_data=[data])]
        )
        (result,) = self.ask(request, 9, messages.ProduceResponse).responses[0].partition_responses
        assert result.error_code == 0, result
        return Offset(result.base_offset)


def topic(
    name: str,
    partitions: int = 1,
    *,
    replication_factor: int = 1,
    assignments: dict[int, list[int]] | None = None,
    configs: dict[str, Any] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignments or {}).items()
        ],
        configs=[CreatableTopicConfig(name=key, value=text) for key, text in (configs or {}).items()],
    )

"""Quotas of a broker that runs: what clients with other ids than the tests' usual one get from it.

The tests hold for Apache Kafka too: `--broker apache` shows it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic

import pytest

import moldau
from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.wire import messages
from moldau.wire.batch import build_batch
from moldau.wire.messages.alter_client_quotas import EntityData, EntryData, OpData
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.describe_client_quotas import ComponentData
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.records import Record
from tests.broker.handlers.wire import RECORD_TIME_MS, Wire

BATCH_BYTES = 100_000
PRODUCE_VERSION, FETCH_VERSION = 9, 12
SEEN_S_MAX = 20.0


class Limited:
    """A client id with quotas, connections that use it, and another one that does what must not be limited."""

    def __init__(self, bootstrap: str, client_id: str) -> None:
        self.client_id = client_id
        self.topic = f"topic-of-{client_id}"
        self.admin = Wire(bootstrap)
        self.wire = Wire(bootstrap, client_id)
        self.keys: set[str] = set()

    def alter(self, **values: float | None) -> None:
        ops = [OpData(key, value or 0.0, value is None) for key, value in values.items()]
        entry = EntryData([EntityData("client-id", self.client_id)], ops)
        request = messages.AlterClientQuotasRequest(entries=[entry])
        (altered,) = self.admin.ask(request, 1, messages.AlterClientQuotasResponse).entries
        assert altered.error_code == ErrorCode.NONE, altered
        self.keys |= values.keys()
        wanted = {key: value for key, value in values.items() if value is not None}
        deadline_s = monotonic() + SEEN_S_MAX
        while self.quotas() != wanted:
            assert monotonic() < deadline_s, "the quotas were never seen"

    def quotas(self) -> dict[str, float]:
        request = messages.DescribeClientQuotasRequest(components=[ComponentData("client-id", 0, self.client_id)])
        found = self.admin.ask(request, 1, messages.DescribeClientQuotasResponse).entries
        return {value.key: value.value for entry in found or [] for value in entry.values}

    def produce(self, batches: int, *, wire: Wire | None = None) -> int:
        """The throttle time of one request with so many batches, each to a partition of its own."""
        records = build_batch([Record(0, RECORD_TIME_MS, None, b"x" * BATCH_BYTES)])
        data = [PartitionProduceData(index=index, records=memoryview(bytearray(records))) for index in range(batches)]
        request = messages.ProduceRequest(
            acks=-1, timeout_ms=20_000, topic_data=[TopicProduceData(name=self.topic, partition_data=data)]
        )
        response = (wire or self.wire).ask(request, PRODUCE_VERSION, messages.ProduceResponse)
        assert {row.error_code for row in response.responses[0].partition_responses} == {ErrorCode.NONE}
        return response.throttle_time_ms

    def fetch(self, partitions: int) -> tuple[int, int]:
        """The bytes of records that come, and the throttle time."""
        wanted = [
            FetchPartition(partition=index, fetch_offset=Offset(0), partition_max_bytes=1 << 20)
            for index in range(partitions)
        ]
        request = messages.FetchRequest(
            max_wait_ms=0, min_bytes=1, max_bytes=1 << 30, topics=[FetchTopic(topic=self.topic, partitions=wanted)]
        )
        response = self.wire.ask(request, FETCH_VERSION, messages.FetchResponse)
        assert response.error_code == ErrorCode.NONE
        sizes = [len(data.records or b"") for topic in response.responses for data in topic.partitions]
        return sum(sizes), response.throttle_time_ms

    def answered_after_s(self) -> float:
        """How long the next request of the client takes."""
        began_s = monotonic()
        self.wire.ask(messages.ApiVersionsRequest(), 2, messages.ApiVersionsResponse)
        return monotonic() - began_s


@contextmanager
def connected(bootstrap: str, client_id: str) -> Iterator[Limited]:
    client = Limited(bootstrap, client_id)
    with closing(client.admin), closing(client.wire):
        yield client


@pytest.fixture
def client_id() -> str:
    return f"limited-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def limited(bootstrap: str, client_id: str) -> Iterator[Limited]:
    with connected(bootstrap, client_id) as client:
        yield client
        client.alter(**dict.fromkeys(client.keys))


def test_a_producer_above_its_quota_is_told_to_pause_and_then_not_heard(limited: Limited) -> None:
    limited.admin.create_topic(limited.topic, 12)
    limited.alter(producer_byte_rate=BATCH_BYTES)
    assert limited.produce(9) == 0
    began_s = monotonic()
    throttle_ms = limited.produce(2)
    told_s = monotonic() - began_s
    assert 500 < throttle_ms < 1_200  # eleven batches in ten seconds are a tenth too much
    assert told_s < throttle_ms / 1_000 / 2, "the answer comes at once"
    assert limited.produce(1, wire=limited.admin) == 0, "other clients are not limited"
    assert limited.answered_after_s() > 0.5 * throttle_ms / 1_000
    limited.alter(producer_byte_rate=None)
    assert limited.produce(12) == 0


def test_a_consumer_above_its_quota_gets_nothing_but_the_time_to_pause(limited: Limited) -> None:
    limited.admin.create_topic(limited.topic, 12)
    limited.produce(12)
    limited.alter(consumer_byte_rate=BATCH_BYTES)
    size_bytes, throttle_ms = limited.fetch(12)
    assert 9 * BATCH_BYTES <= size_bytes <= 11 * BATCH_BYTES, "no more than all windows allow"
    assert throttle_ms == 0
    size_bytes, throttle_ms = limited.fetch(2)
    assert size_bytes == 0
    assert throttle_ms > 0
    assert limited.answered_after_s() > 0.5 * throttle_ms / 1_000


def test_time_of_requests_above_its_quota_is_paused_for(limited: Limited) -> None:
    limited.alter(request_percentage=1e-6)
    limited.answered_after_s()
    assert limited.answered_after_s() > 0.5  # a window, which is the most
    limited.alter(request_percentage=None)


def created(limited: Limited, version: int, *partitions: int) -> tuple[list[ErrorCode], int]:
    topics = [
        CreatableTopic(name=f"{limited.topic}-{version}-{number}", num_partitions=count, replication_factor=1)
        for number, count in enumerate(partitions)
    ]
    request = messages.CreateTopicsRequest(topics=topics, timeout_ms=20_000, validate_only=True)
    response = limited.wire.ask(request, version, messages.CreateTopicsResponse)
    return [ErrorCode(topic.error_code) for topic in response.topics], response.throttle_time_ms


def test_partitions_above_the_quota_are_refused_or_throttled_by_version(limited: Limited) -> None:
    limited.alter(controller_mutation_rate=2.0)
    errors, throttle_ms = created(limited, 5, 23)
    assert errors == [ErrorCode.NONE]
    assert throttle_ms > 0, "a bucket of 22 is overdrawn by one"
    errors, throttle_ms = created(limited, 6, 30)
    assert errors == [ErrorCode.NONE], "the pause has filled it"
    assert throttle_ms == 0
    errors, throttle_ms = created(limited, 6, 1)
    assert errors == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert throttle_ms > 10_000


def alter_address(limited: Limited, address: str, rate: float | None) -> None:
    op = OpData("connection_creation_rate", rate or 0.0, rate is None)
    request = messages.AlterClientQuotasRequest(entries=[EntryData([EntityData("ip", address)], [op])])
    (altered,) = limited.admin.ask(request, 1, messages.AlterClientQuotasResponse).entries
    assert altered.error_code == ErrorCode.NONE, altered


def is_served(bootstrap: str) -> bool:
    with closing(Wire(bootstrap)) as wire:
        try:
            wire.ask(messages.ApiVersionsRequest(), 2, messages.ApiVersionsResponse)
        except ConnectionError:
            return False
        return True


def test_an_address_that_connects_too_fast_is_hung_up_on(bootstrap: str, limited: Limited) -> None:
    alter_address(limited, "127.0.0.1", 1.0)
    try:
        deadline_s = monotonic() + SEEN_S_MAX
        while is_served(bootstrap):  # a burst of ten is fine
            assert monotonic() < deadline_s, "all were served"
    finally:
        alter_address(limited, "127.0.0.1", None)
    while not is_served(bootstrap):
        assert monotonic() < deadline_s, "none is served any more"


def test_quotas_outlive_the_broker(tmp_path: Path, client_id: str, broker_kind: str) -> None:
    if broker_kind != "moldau":
        pytest.skip("restarts a broker of its own")
    with moldau.run(data_dir=tmp_path) as broker, connected(broker.bootstrap_servers, client_id) as client:
        client.alter(producer_byte_rate=1000.0)
    with moldau.run(data_dir=tmp_path) as broker, connected(broker.bootstrap_servers, client_id) as client:
        assert client.quotas() == {"producer_byte_rate": 1000.0}
        client.admin.create_topic(client.topic, 1)
        assert client.produce(1) > 0

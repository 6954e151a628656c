from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import DeleteRecordsRequest, DeleteRecordsResponse, ListOffsetsRequest, ListOffsetsResponse
from moldau.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from tests.broker.handlers.wire import Wire

HIGH_WATERMARK = -1
EARLIEST = -2


def ask(wire: Wire, *topics: tuple[str, list[tuple[int, int]]], version: int = 2) -> DeleteRecordsResponse:
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in partitions
                ],
            )
            for name, partitions in topics
        ],
        timeout_ms=20_000,
    )
    return wire.ask(request, version, DeleteRecordsResponse)


def delete(wire: Wire, name: str, offset: int, *, partition: int = 0, version: int = 2) -> tuple[int, int]:
    """The error and the low watermark."""
    (result,) = ask(wire, (name, [(partition, offset)]), version=version).topics[0].partitions
    return result.error_code, result.low_watermark


def earliest(wire: Wire, name: str) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[partition])])
    return wire.ask(request, 5, ListOffsetsResponse).topics[0].partitions[0].offset


@pytest.fixture
def ten(wire: Wire, name: str) -> str:
    """A topic with ten records."""
    wire.create_topic(name)
    wire.produce(name, 0, *"abcdefghij")
    return name


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_log_begins_at_the_offset(wire: Wire, ten: str, version: int) -> None:
    assert delete(wire, ten, 3, version=version) == (ErrorCode.NONE, 3)
    assert earliest(wire, ten) == 3


def test_a_log_never_grows_at_its_start(wire: Wire, ten: str) -> None:
    delete(wire, ten, 5)
    assert delete(wire, ten, 1) == (ErrorCode.NONE, 5)


def test_everything_up_to_the_high_watermark(wire: Wire, ten: str) -> None:
    assert delete(wire, ten, HIGH_WATERMARK) == (ErrorCode.NONE, 10)
    assert wire.produce(ten, 0, "k") == 10


@pytest.mark.parametrize("offset", [11, -2])
def test_only_what_is_there(wire: Wire, ten: str, offset: int) -> None:
    assert delete(wire, ten, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert earliest(wire, ten) == 0


def test_an_empty_partition_has_nothing_to_delete(wire: Wire, name: str) -> None:
    wire.create_topic(name)
    assert delete(wire, name, HIGH_WATERMARK) == (ErrorCode.NONE, 0)
    assert delete(wire, name, 1) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_a_compacted_log_keeps_its_head(wire: Wire, name: str) -> None:
    wire.create_topic(name, cleanup_policy="compact")
    wire.produce(name, 0, "a", "b")
    assert delete(wire, name, 1) == (ErrorCode.POLICY_VIOLATION, -1)


def test_a_log_that_is_compacted_and_deleted_may_be_cut(wire: Wire, name: str) -> None:
    wire.create_topic(name, cleanup_policy="compact,delete")
    wire.produce(name, 0, "a", "b")
    assert delete(wire, name, 1) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize("partition", [7, -1])
def test_a_partition_that_is_not_there(wire: Wire, ten: str, partition: int) -> None:
    assert delete(wire, ten, 0, partition=partition) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize("topic", ["there-is-no-such-topic", "a/b", ""])
def test_a_topic_that_is_not_there(wire: Wire, topic: str) -> None:
    assert delete(wire, topic, 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_one_bad_partition_does_not_hurt_another(wire: Wire, ten: str) -> None:
    response = ask(wire, ("there-is-no-such-topic", [(0, 1)]), (ten, [(0, 4), (9, 0)]))
    found = {
        (topic.name, each.partition_index): (each.error_code, each.low_watermark)
        for topic in response.topics
        for each in topic.partitions
    }
    assert found == {
        ("there-is-no-such-topic", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (ten, 0): (ErrorCode.NONE, 4),
        (ten, 9): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    }


def test_a_partition_that_is_named_twice_is_answered_once(wire: Wire, ten: str) -> None:
    response = ask(wire, (ten, [(0, 2), (0, 2)]), (ten, [(0, 2)]))
    assert [(topic.name, len(topic.partitions)) for topic in response.topics] == [(ten, 1)]


def test_nothing_asked_nothing_answered(wire: Wire, ten: str) -> None:
    assert ask(wire).topics == []
    assert ask(wire, (ten, [])).topics == []

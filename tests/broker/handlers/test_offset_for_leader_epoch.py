from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from moldau.wire.messages.offset_for_leader_epoch import OffsetForLeaderPartition, OffsetForLeaderTopic
from tests.broker.handlers.wire import Wire

NONE_KNOWN = -1
Answer = tuple[int, int, int]


def ask(wire: Wire, *topics: OffsetForLeaderTopic, version: int = 4) -> OffsetForLeaderEpochResponse:
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=list(topics))
    return wire.ask(request, version, OffsetForLeaderEpochResponse)


def epoch_end(
    wire: Wire, name: str, epoch: int, *, current: int = NONE_KNOWN, partition: int = 0, version: int = 4
) -> Answer:
    """The error, the epoch that was found and its end."""
    wanted = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    response = ask(wire, OffsetForLeaderTopic(topic=name, partitions=[wanted]), version=version)
    (found,) = response.topics[0].partitions
    assert (response.topics[0].topic, found.partition) == (name, partition)
    return found.error_code, found.leader_epoch, found.end_offset


@pytest.fixture
def three(wire: Wire, name: str) -> str:
    """A topic with three records."""
    wire.create_topic(name)
    wire.produce(name, 0, *"abc")
    return name


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("current", [NONE_KNOWN, 0])
def test_the_current_epoch_ends_where_the_log_does(wire: Wire, three: str, version: int, current: int) -> None:
    assert epoch_end(wire, three, 0, current=current, version=version) == (ErrorCode.NONE, 0, 3)


def test_an_epoch_without_records_has_begun_too(wire: Wire, name: str) -> None:
    wire.create_topic(name)
    assert epoch_end(wire, name, 0) == (ErrorCode.NONE, 0, 0)


@pytest.mark.parametrize("epoch", [5, -1])
def test_an_epoch_that_never_was(wire: Wire, three: str, epoch: int) -> None:
    assert epoch_end(wire, three, epoch, current=0) == (ErrorCode.NONE, -1, -1)


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize(
    ("current", "error"), [(5, ErrorCode.UNKNOWN_LEADER_EPOCH), (-5, ErrorCode.FENCED_LEADER_EPOCH)]
)
def test_who_believes_in_another_leader_is_told(
    wire: Wire, three: str, version: int, current: int, error: ErrorCode
) -> None:
    assert epoch_end(wire, three, 0, current=current, version=version) == (error, -1, -1)


@pytest.mark.parametrize("partition", [9, -1])
def test_a_partition_that_is_not_there(wire: Wire, three: str, partition: int) -> None:
    assert epoch_end(wire, three, 0, partition=partition) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


@pytest.mark.parametrize("topic", ["there-is-no-such-topic", "a/b"])
def test_a_topic_that_is_not_there(wire: Wire, topic: str) -> None:
    assert epoch_end(wire, topic, 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


def test_answers_follow_the_questions(wire: Wire, three: str) -> None:
    again = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    missing = OffsetForLeaderPartition(partition=4, leader_epoch=0)
    response = ask(
        wire,
        OffsetForLeaderTopic(topic=three, partitions=[missing, again, again]),
        OffsetForLeaderTopic(topic=three, partitions=[]),
        OffsetForLeaderTopic(topic=three, partitions=[again]),
    )
    assert [[each.partition for each in topic.partitions] for topic in response.topics] == [[4, 0, 0], [], [0]]
    assert ask(wire).topics == []

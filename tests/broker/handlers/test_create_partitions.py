from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from moldau.wire.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from moldau.wire.messages.describe_topic_partitions import TopicRequest
from tests.broker.handlers.wire import Wire


def wanted(name: str, count: int, assignments: list[list[int]] | None = None) -> CreatePartitionsTopic:
    by_hand = None
    if assignments is not None:
        by_hand = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=by_hand)


def create(
    wire: Wire, *topics: CreatePartitionsTopic, version: int = 3, validate_only: bool = False
) -> dict[str, tuple[int, str | None]]:
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=20_000, validate_only=validate_only)
    results = wire.ask(request, version, CreatePartitionsResponse).results
    return {each.name: (each.error_code, each.error_message) for each in results}


def partitions(wire: Wire, name: str) -> int:
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)])
    return len(wire.ask(request, 0, DescribeTopicPartitionsResponse).topics[0].partitions)


@pytest.fixture
def two(wire: Wire, name: str) -> str:
    """A topic of two partitions."""
    wire.create_topic(name, 2)
    return name


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added(wire: Wire, two: str, version: int) -> None:
    assert create(wire, wanted(two, 4), version=version) == {two: (ErrorCode.NONE, None)}
    wire.await_topic(two, 4)
    assert wire.produce(two, 3, "a") == 0


def test_a_dry_run_adds_none(wire: Wire, two: str) -> None:
    assert create(wire, wanted(two, 4), validate_only=True) == {two: (ErrorCode.NONE, None)}
    assert partitions(wire, two) == 2


@pytest.mark.parametrize("version", [0, 3])
def test_as_many_as_there_are(wire: Wire, two: str, version: int) -> None:
    expected = (ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s).")
    assert create(wire, wanted(two, 2), version=version) == {two: expected}


@pytest.mark.parametrize("count", [1, 0, -1])
def test_partitions_only_grow(wire: Wire, two: str, count: int) -> None:
    message = f"The topic {two} currently has 2 partition(s); {count} would not be an increase."
    assert create(wire, wanted(two, count)) == {two: (ErrorCode.INVALID_PARTITIONS, message)}


@pytest.mark.parametrize("name", ["there-is-no-such-topic", ""])
def test_a_topic_that_is_not_there(wire: Wire, name: str) -> None:
    assert create(wire, wanted(name, 4)) == {name: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)}


def test_an_assignment_by_hand(wire: Wire, two: str, broker_id: int) -> None:
    assert create(wire, wanted(two, 4, [[broker_id], [broker_id]])) == {two: (ErrorCode.NONE, None)}
    wire.await_topic(two, 4)


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ([], "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified."),
        ([[0], [0]], "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified."),
        ([[77]], "The manual partition assignment includes broker 77, but no such broker is registered."),
        ([[]], "The manual partition assignment includes an empty replica list."),
        ([[0, 0]], "The manual partition assignment includes the broker {} more than once."),
    ],
)
def test_assignments_that_make_no_sense(
    wire: Wire, two: str, broker_id: int, assignments: list[list[int]], message: str
) -> None:
    ours = [[each or broker_id for each in brokers] for brokers in assignments]
    expected = (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message.format(broker_id))
    assert create(wire, wanted(two, 3, ours)) == {two: expected}


def test_one_bad_topic_does_not_hurt_another(wire: Wire, two: str) -> None:
    assert create(wire, wanted("there-is-no-such-topic", 3), wanted(two, 3)) == {
        "there-is-no-such-topic": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        two: (ErrorCode.NONE, None),
    }


def test_a_topic_that_is_named_twice_stays_as_it_is(wire: Wire, two: str) -> None:
    expected = (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    assert create(wire, wanted(two, 3), wanted(two, 4)) == {two: expected}
    assert partitions(wire, two) == 2


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_who_does_not_wait_gets_nothing(wire: Wire, two: str, timeout_ms: int) -> None:
    request = CreatePartitionsRequest(topics=[wanted(two, 4)], timeout_ms=timeout_ms)
    (result,) = wire.ask(request, 3, CreatePartitionsResponse).results
    assert (result.error_code, result.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
    assert partitions(wire, two) == 2


@pytest.mark.usefixtures("moldau_only")
def test_a_request_has_a_limit_of_partitions(wire: Wire, two: str) -> None:
    error, _ = create(wire, wanted(two, 1_000_000))[two]
    assert error == ErrorCode.POLICY_VIOLATION
    assert partitions(wire, two) == 2


def test_nothing_asked_nothing_answered(wire: Wire) -> None:
    assert create(wire) == {}

from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID
from moldau.wire.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
from moldau.wire.messages.describe_topic_partitions import Cursor, TopicRequest
from tests.broker.handlers.wire import Wire


def describe(
    wire: Wire, *names: str, limit: int = 2000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=each) for each in names], response_partition_limit=limit, cursor=cursor
    )
    return wire.ask(request, 0, DescribeTopicPartitionsResponse)


def page(response: DescribeTopicPartitionsResponse) -> dict[str | None, list[int]]:
    return {topic.name: [each.partition_index for each in topic.partitions] for topic in response.topics}


def at(cursor: Cursor | None) -> tuple[str, int] | None:
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


@pytest.fixture
def three_and_two(wire: Wire, name: str) -> tuple[str, str]:
    """Two topics, in the order of their names."""
    three, two = f"{name}-a", f"{name}-b"
    wire.create_topic(three, 3)
    wire.create_topic(two, 2)
    return three, two


def test_a_topic_with_all_that_is_known(wire: Wire, name: str, broker_id: int) -> None:
    created = wire.create_topic(name)
    response = describe(wire, name)
    (topic,) = response.topics
    (partition,) = topic.partitions
    assert (topic.error_code, topic.topic_id, topic.is_internal) == (ErrorCode.NONE, created.topic_id, False)
    assert topic.topic_authorized_operations == 3576
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (ErrorCode.NONE, broker_id, 0)
    assert partition.replica_nodes == partition.isr_nodes == [broker_id]
    assert (partition.eligible_leader_replicas, partition.last_known_elr, partition.offline_replicas) == ([], [], [])
    assert response.next_cursor is None


def test_topics_come_once_and_in_the_order_of_their_names(wire: Wire, three_and_two: tuple[str, str]) -> None:
    three, two = three_and_two
    response = describe(wire, two, three, two)
    assert list(page(response).items()) == [(three, [0, 1, 2]), (two, [0, 1])]


@pytest.mark.parametrize(
    ("limit", "three_has", "two_has", "next_at"),
    [
        (-1, [0], None, ("a", 1)),
        (0, [0], None, ("a", 1)),
        (1, [0], None, ("a", 1)),
        (3, [0, 1, 2], None, ("b", 0)),
        (4, [0, 1, 2], [0], ("b", 1)),
        (5, [0, 1, 2], [0, 1], None),
        (2**31 - 1, [0, 1, 2], [0, 1], None),
    ],
)
def test_a_page_ends_at_its_limit(
    wire: Wire,
    three_and_two: tuple[str, str],
    limit: int,
    three_has: list[int],
    two_has: list[int] | None,
    next_at: tuple[str, int] | None,
) -> None:
    three, two = three_and_two
    response = describe(wire, three, two, limit=limit)
    assert page(response) == {three: three_has} | ({} if two_has is None else {two: two_has})
    expected = None if next_at is None else ({"a": three, "b": two}[next_at[0]], next_at[1])
    assert at(response.next_cursor) == expected


def test_pages_cover_everything_once(wire: Wire, three_and_two: tuple[str, str]) -> None:
    seen: list[tuple[str | None, int]] = []
    cursor: Cursor | None = None
    while True:
        response = describe(wire, *three_and_two, limit=2, cursor=cursor)
        seen += [(topic.name, each.partition_index) for topic in response.topics for each in topic.partitions]
        cursor = response.next_cursor
        if cursor is None:
            break
    three, two = three_and_two
    assert seen == [(three, 0), (three, 1), (three, 2), (two, 0), (two, 1)]


def test_all_topics_from_the_cursor_on(wire: Wire, three_and_two: tuple[str, str]) -> None:
    three, two = three_and_two
    response = describe(wire, limit=3, cursor=Cursor(topic_name=three, partition_index=1))
    assert page(response) == {three: [1, 2], two: [0]}
    assert at(response.next_cursor) == (two, 1)


def test_a_cursor_beyond_the_last_partition_finds_none(wire: Wire, three_and_two: tuple[str, str]) -> None:
    three, two = three_and_two
    response = describe(wire, three, two, cursor=Cursor(topic_name=three, partition_index=9))
    assert page(response) == {three: [], two: [0, 1]}
    assert response.next_cursor is None


def test_a_topic_that_went_away_between_two_pages_is_unknown(wire: Wire, three_and_two: tuple[str, str]) -> None:
    three, _ = three_and_two
    gone = f"{three}-gone"
    response = describe(wire, three, gone, cursor=Cursor(topic_name=gone, partition_index=1))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        (gone, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    ]


@pytest.mark.parametrize("partition_index", [-1, 0])
def test_a_cursor_that_was_made_up_is_a_mistake(
    wire: Wire, three_and_two: tuple[str, str], partition_index: int
) -> None:
    three, two = three_and_two
    cursor = Cursor(topic_name=three if partition_index < 0 else f"{two}-else", partition_index=partition_index)
    response = describe(wire, three, two, cursor=cursor)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        (three, ErrorCode.INVALID_REQUEST),
        (two, ErrorCode.INVALID_REQUEST),
    ]
    assert response.next_cursor is None


def test_unknown_and_impossible_topics(wire: Wire, name: str) -> None:
    response = describe(wire, name, "a/b")
    assert [(topic.name, topic.error_code, topic.topic_id) for topic in response.topics] == [
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION, ZERO_UUID),
        (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ZERO_UUID),
    ]

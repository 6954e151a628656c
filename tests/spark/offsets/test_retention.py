"""How long a reader that stands still has, and the hold that gives it more."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from moldau.core.ids import TopicPartition as Place
from moldau.spark.offsets.retention import Margin, Position, TopicRetention, duration_text, margin
from moldau.spark.offsets.retention_guard import NOTES_GROUP, RetentionGuard
from tests.spark.topics import ANSWER_S_MAX, Topics

HOUR_MS = 3_600_000
NOW_MS = 1_700_000_000_000
PLACE = Place("orders", 0)


def position(offset: int, *, age_ms: int | None = 0) -> Position:
    first_ms = None if age_ms is None else NOW_MS - age_ms
    return Position(PLACE, offset, earliest=10, latest=110, first_unread_ms=first_ms)


@pytest.mark.parametrize(
    ("at", "retention", "left_ms", "is_short"),
    [
        (position(20, age_ms=HOUR_MS), TopicRetention(3 * HOUR_MS, -1), 2 * HOUR_MS, False),
        (position(20, age_ms=HOUR_MS), TopicRetention(HOUR_MS + 1, -1), 1, True),
        (position(20, age_ms=5 * HOUR_MS), TopicRetention(HOUR_MS, -1), 0, True),
        (position(20, age_ms=5 * HOUR_MS), TopicRetention(-1, -1), None, False),
        (position(20, age_ms=5 * HOUR_MS), TopicRetention(HOUR_MS, -1, "compact"), None, False),
        (position(20, age_ms=5 * HOUR_MS), TopicRetention(HOUR_MS, -1, "compact,delete"), 0, True),
        (position(110, age_ms=None), TopicRetention(1, -1), None, False),  # nothing is unread
        (position(5), TopicRetention(-1, -1), None, True),  # lost already
        (position(20), TopicRetention(-1, 1000), None, True),  # 90 of 100 by size
        (position(70), TopicRetention(-1, 1000), None, False),
    ],
)
def test_what_is_left(at: Position, retention: TopicRetention, left_ms: int | None, is_short: bool) -> None:
    found = margin(at, retention, now_ms=NOW_MS)
    assert (found.left_ms, found.is_short(HOUR_MS)) == (left_ms, is_short)


def test_it_is_told_in_words() -> None:
    assert str(Margin(position(20), 90_000)) == "orders-0: 90 unread, the first may go in 1 min 30 s"
    assert str(Margin(position(20), 0, 0.9)) == (
        "orders-0: 90 unread, the first may go at any moment and 90% of a log that is limited by size is unread"
    )
    assert str(Margin(position(5), None)) == "orders-0: up to 5 records were removed before they were read"
    assert duration_text(100_000_000) == "1 d 3 h"


def retention_of(topics: Topics, topic: str) -> tuple[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    told = topics.admin.describe_configs([resource])[resource].result(ANSWER_S_MAX)
    return told["retention.ms"].value, told["retention.bytes"].value


def test_a_hold_lasts_as_long_as_somebody_is_behind(topics: Topics) -> None:
    config = {"retention.ms": str(2 * HOUR_MS), "retention.bytes": "1000000"}
    topic, now_ms = topics.create("held", config=config), int(time.time() * 1000)
    topics.produce(topic, [b"x"] * 4, timestamp=now_ms - HOUR_MS)
    one, two = topics.name("group"), topics.name("group")
    topics.commit(one, topic, 3)
    topics.commit(two, topic, 3)
    guard = RetentionGuard([("bootstrap.servers", topics.bootstrap)])

    def looked(group: str) -> tuple[list[bool], list[str]]:
        margins = guard.margins(group, now_ms=now_ms)
        done = guard.hold(group, margins, within_ms=3 * HOUR_MS, now_ms=now_ms)
        return [each.is_short(3 * HOUR_MS) for each in margins], done

    found = guard.margins(one, now_ms=now_ms)
    assert [(each.left_ms, each.position.unread) for each in found] == [(HOUR_MS, 1)]
    assert looked(one) == (
        [True],
        [
            f"{topic}: retention.ms is {7 * HOUR_MS} instead of {2 * HOUR_MS}",
            f"{topic}: retention.bytes is -1 instead of 1000000",
        ],
    )
    assert retention_of(topics, topic) == (str(7 * HOUR_MS), "-1")
    # What is told is what will be without the hold, so that it is not dropped while somebody needs it.
    assert looked(one) == ([True], [f"{topic}: still held"])
    assert looked(two) == ([True], [f"{topic}: still held"])
    topics.commit(one, topic, 4)
    assert looked(one) == ([False], [f"{topic}: no longer held for {one}; still for {two}"])
    assert retention_of(topics, topic) == (str(7 * HOUR_MS), "-1")
    topics.commit(two, topic, 4)
    assert looked(two)[1] == [f"{topic}: released; retention.ms is {2 * HOUR_MS}, retention.bytes is 1000000"]
    assert retention_of(topics, topic) == (str(2 * HOUR_MS), "1000000")
    assert looked(two) == ([False], [])
    assert NOTES_GROUP + topic not in topics.groups()


def test_a_topic_without_a_retention_of_its_own_gets_back_the_default(topics: Topics) -> None:
    topic, group, now_ms = topics.create("defaults"), topics.name("group"), int(time.time() * 1000)
    guard = RetentionGuard([("bootstrap.servers", topics.bootstrap)])
    guard._alter(topic, {"retention.ms": None})
    default_ms = int(retention_of(topics, topic)[0])
    topics.produce(topic, [b"x"], timestamp=now_ms - default_ms + HOUR_MS)
    topics.commit(group, topic, 0)
    for _ in range(2):
        margins = guard.margins(group, now_ms=now_ms)
        assert [each.left_ms for each in margins] == [HOUR_MS]
        guard.hold(group, margins, within_ms=2 * HOUR_MS, now_ms=now_ms)
    assert int(retention_of(topics, topic)[0]) == default_ms + 3 * HOUR_MS
    topics.commit(group, topic, 1)
    done = guard.hold(group, guard.margins(group, now_ms=now_ms), within_ms=2 * HOUR_MS, now_ms=now_ms)
    assert done == [f"{topic}: released; retention.ms is the default"]
    assert int(retention_of(topics, topic)[0]) == default_ms

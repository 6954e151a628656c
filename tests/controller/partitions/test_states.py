"""Codes and messages are what Apache Kafka 4.3.1 answered to the same requests."""

from __future__ import annotations

import pytest

from moldau.controller.machine import apply
from moldau.controller.partitions.states import (
    ExtendedTopic,
    MorePartitions,
    decide_create_partitions,
    decide_undo_partitions,
)
from moldau.controller.records import PartitionsAdded, PartitionsRemoved
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from tests.controller.clusters import cluster, partition, topic, topic_id

IMAGE = cluster(topic("orders", 3), brokers=1)


def test_partitions_are_added_and_the_old_ones_stay() -> None:
    decision = decide_create_partitions(IMAGE, [MorePartitions("orders", 5)])
    assert decision == Decision(
        (PartitionsAdded(topic_id(100), (partition(1), partition(1))),),
        [ExtendedTopic("orders", topic_id=topic_id(100), added=range(3, 5))],
    )
    image = apply(IMAGE, decision.records)
    assert (len(image.topics["orders"].partitions), len(IMAGE.topics["orders"].partitions)) == (5, 3)


def test_assignments_are_followed() -> None:
    image = cluster(topic("orders"), brokers=3)
    decision = decide_create_partitions(image, [MorePartitions("orders", 3, [[2], [3]])])
    assert decision.records == (PartitionsAdded(topic_id(100), (partition(2), partition(3))),)


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (MorePartitions("nope", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (MorePartitions("orders", 3), ErrorCode.INVALID_PARTITIONS, "Topic already has 3 partition(s)."),
        (
            MorePartitions("orders", -1),
            ErrorCode.INVALID_PARTITIONS,
            "The topic orders currently has 3 partition(s); -1 would not be an increase.",
        ),
        (
            MorePartitions("orders", 5, [[1]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            MorePartitions("orders", 4, [[2]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 2, but no such broker is registered.",
        ),
        (
            MorePartitions("orders", 100_000),
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
    ],
)
def test_what_can_not_be_added_is_refused(wanted: MorePartitions, error: ErrorCode, message: str | None) -> None:
    expected = Decision.reply_only([ExtendedTopic(wanted.name, error, message)])
    assert decide_create_partitions(IMAGE, [wanted]) == expected


def test_a_name_that_is_given_twice_is_refused_once() -> None:
    decision = decide_create_partitions(IMAGE, [MorePartitions("orders", 4), MorePartitions("orders", 5)])
    assert decision == Decision.reply_only(
        [ExtendedTopic("orders", ErrorCode.INVALID_REQUEST, "Duplicate topic name.")]
    )


def test_validation_alone_changes_nothing() -> None:
    decision = decide_create_partitions(IMAGE, [MorePartitions("orders", 4)], validate_only=True)
    assert decision == Decision.reply_only([ExtendedTopic("orders", topic_id=topic_id(100), added=range(3, 4))])


def test_partitions_that_could_not_be_made_are_taken_back_once() -> None:
    added = apply(IMAGE, decide_create_partitions(IMAGE, [MorePartitions("orders", 5)]).records)
    decision = decide_undo_partitions(added, topic_id(100), 3)
    assert decision == Decision((PartitionsRemoved(topic_id(100), 3),), None)
    image = apply(added, decision.records)
    assert image.topics == IMAGE.topics
    assert decide_undo_partitions(image, topic_id(100), 3) == Decision.reply_only(None)
    assert decide_undo_partitions(image, topic_id(404), 3) == Decision.reply_only(None)

"""Codes and messages are what Apache Kafka 4.3.1 answered to the same requests."""

from __future__ import annotations

import pytest

from moldau.controller.image import ClusterImage, TopicImage
from moldau.controller.machine import apply
from moldau.controller.records import TopicCreated, TopicDeleted
from moldau.controller.topics import (
    CreatedTopic,
    DeletedTopic,
    NewTopic,
    TopicReference,
    decide_create_topics,
    decide_delete_topics,
)
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigSource
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID
from tests.controller.clusters import cluster, counting_ids, partition, topic, topic_id

CONFIG = BrokerConfig.of({"node.id": "1", "num.partitions": "2"})


def create(image: ClusterImage, *topics: NewTopic, validate_only: bool = False) -> Decision[list[CreatedTopic]]:
    return decide_create_topics(image, topics, config=CONFIG, validate_only=validate_only, new_id=counting_ids())


def refusal(image: ClusterImage, wanted: NewTopic) -> tuple[ErrorCode, str | None]:
    decision = create(image, wanted)
    assert decision.records == ()
    assert [reply.name for reply in decision.reply] == [wanted.name]
    return decision.reply[0].error, decision.reply[0].message


def test_a_topic_is_created() -> None:
    decision = create(cluster(), NewTopic("orders", partitions=3, replication_factor=1))
    assert decision.records == (TopicCreated(TopicImage("orders", topic_id(1), (partition(1),) * 3)),)
    reply = decision.reply[0]
    assert (reply.error, reply.topic_id, reply.partitions, reply.replication_factor) == (0, topic_id(1), 3, 1)


def test_numbers_that_are_left_out_come_from_the_configuration() -> None:
    assert create(cluster(), NewTopic("orders")).reply[0].partitions == 2


def test_the_reply_has_all_configs_in_order_with_their_sources() -> None:
    reply = create(cluster(), NewTopic("orders", configs=[("retention.ms", "1000")])).reply[0]
    names = [entry.name for entry in reply.configs]
    assert (len(names), names) == (33, sorted(names))
    sources = {entry.name: (entry.value, entry.source) for entry in reply.configs}
    assert sources["retention.ms"] == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert sources["segment.ms"] == ("604800000", ConfigSource.DEFAULT_CONFIG)


def test_validation_alone_changes_nothing() -> None:
    decision = create(cluster(), NewTopic("orders"), validate_only=True)
    assert (decision.records, decision.reply[0].error) == ((), ErrorCode.NONE)


def test_one_refused_topic_does_not_hold_up_another() -> None:
    decision = create(cluster(), NewTopic("a/b"), NewTopic("ok", partitions=1))
    assert [reply.error for reply in decision.reply] == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE]
    assert len(decision.records) == 1


def test_a_name_that_is_given_twice_is_refused_once() -> None:
    decision = create(cluster(), NewTopic("dup"), NewTopic("dup"), NewTopic("ok"))
    assert [(reply.name, reply.error, reply.message) for reply in decision.reply] == [
        ("dup", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        ("ok", ErrorCode.NONE, None),
    ]


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("t.a", ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't.a' already exists."),
        ("t_a", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic 't_a' collides with existing topic: t.a"),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
        (
            "__cluster_metadata",
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    ],
)
def test_names_are_checked(name: str, error: ErrorCode, message: str) -> None:
    assert refusal(cluster(topic("t.a")), NewTopic(name)) == (error, message)


def test_a_deleted_topic_no_longer_collides() -> None:
    image = apply(cluster(topic("t.a")), [TopicDeleted(topic_id(100))])
    assert create(image, NewTopic("t_a")).reply[0].error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("partitions", "factor", "error", "message"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."),
        (-2, 1, ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."),
        (
            0,
            0,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            1,
            3,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because "
            "only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (10_001, 1, ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."),
        (2**31 - 1, 1, ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."),
    ],
)
def test_numbers_are_checked(partitions: int, factor: int, error: ErrorCode, message: str) -> None:
    wanted = NewTopic("orders", partitions=partitions, replication_factor=factor)
    assert refusal(cluster(), wanted) == (error, message)


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ([(0, [1]), (0, [1])], "Found multiple manual partition assignments for partition 0"),
        ([(0, [1]), (2, [1])], "partitions should be a consecutive 0-based integer sequence"),
        ([(1, [1])], "partitions should be a consecutive 0-based integer sequence"),
        ([(0, [1, 1])], "The manual partition assignment includes the broker 1 more than once."),
        ([(0, [7])], "The manual partition assignment includes broker 7, but no such broker is registered."),
        ([(0, [])], "The manual partition assignment includes an empty replica list."),
        (
            [(0, [1, 2]), (1, [1])],
            "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with "
            "previous partitions, which have 2 replica(s).",
        ),
    ],
)
def test_assignments_are_checked(assignments: list[tuple[int, list[int]]], message: str) -> None:
    wanted = NewTopic("orders", assignments=assignments)
    assert refusal(cluster(brokers=2), wanted) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def test_an_assignment_excludes_the_numbers() -> None:
    message = "A manual partition assignment was specified, but numPartitions was not set to -1."
    wanted = NewTopic("orders", partitions=1, assignments=[(0, [1])])
    assert refusal(cluster(), wanted) == (ErrorCode.INVALID_REQUEST, message)


def test_an_assignment_is_followed() -> None:
    decision = create(cluster(brokers=3), NewTopic("orders", assignments=[(1, [3, 1]), (0, [2, 3])]))
    assert decision.records == (TopicCreated(TopicImage("orders", topic_id(1), (partition(2, 3), partition(3, 1)))),)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ([("foo", "1"), ("retention.ms", "x")], "Unknown topic config name: foo"),
        ([("retention.ms", None), ("foo", None)], "Null value not supported for topic configs: retention.ms,foo"),
        ([("retention.ms", "x")], "Invalid value x for configuration retention.ms: Not a number of type LONG"),
    ],
)
def test_configs_are_checked_before_the_numbers(configs: list[tuple[str, str | None]], message: str) -> None:
    wanted = NewTopic("orders", partitions=0, configs=configs)
    assert refusal(cluster(), wanted) == (ErrorCode.INVALID_CONFIG, message)


def delete(image: ClusterImage, *topics: TopicReference) -> Decision[list[DeletedTopic]]:
    return decide_delete_topics(image, topics, config=CONFIG)


@pytest.mark.parametrize("reference", [TopicReference("orders"), TopicReference(None, topic_id(100))])
def test_a_topic_is_deleted_by_name_or_id(reference: TopicReference) -> None:
    decision = delete(cluster(topic("orders")), reference)
    assert decision == Decision((TopicDeleted(topic_id(100)),), [DeletedTopic("orders", topic_id(100))])


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        (
            TopicReference("nope"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
        (
            TopicReference(None, topic_id(7)),
            ErrorCode.UNKNOWN_TOPIC_ID,
            "This server does not host this topic ID.",
        ),
        (TopicReference(None), ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."),
        (
            TopicReference("orders", topic_id(100)),
            ErrorCode.INVALID_REQUEST,
            "You may not specify both topic name and topic id.",
        ),
    ],
)
def test_references_are_checked(reference: TopicReference, error: ErrorCode, message: str) -> None:
    expected = DeletedTopic(reference.name, reference.topic_id, error, message)
    assert delete(cluster(topic("orders")), reference) == Decision.reply_only([expected])


def test_a_topic_that_is_named_twice_is_kept() -> None:
    image = cluster(topic("orders"))
    twice = delete(image, TopicReference("orders"), TopicReference("orders"))
    message = "Duplicate topic name."
    assert twice == Decision.reply_only([DeletedTopic("orders", ZERO_UUID, ErrorCode.INVALID_REQUEST, message)])
    both = delete(image, TopicReference("orders"), TopicReference(None, topic_id(100)))
    assert both.records == ()
    assert {reply.error for reply in both.reply} == {ErrorCode.INVALID_REQUEST}


def test_deletion_can_be_switched_off() -> None:
    config = BrokerConfig.of({"delete.topic.enable": "false"})
    decision = decide_delete_topics(cluster(topic("orders")), [TopicReference("orders")], config=config)
    assert decision.records == ()
    assert decision.reply[0].error is ErrorCode.TOPIC_DELETION_DISABLED

"""What only the controller can do, asked of another broker."""

from __future__ import annotations

from uuid import uuid4

import pytest

import moldau
from moldau.broker.handlers import TABLE
from moldau.core.errors import ErrorCode
from moldau.security.principals import ANONYMOUS, serialized
from moldau.wire.api import ApiKey
from moldau.wire.codec import encode_parts
from moldau.wire.frame import SIZE_BYTES, RequestHeader, request_parts
from moldau.wire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    EnvelopeRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    MetadataRequest,
)
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.delete_topics import DeleteTopicState
from moldau.wire.messages.describe_configs import DescribeConfigsResource
from moldau.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.schema import Message
from tests.cluster.asking import TIMEOUT_MS, ask, until

CREATE_TOPICS, DELETE_TOPICS, ALTER, DESCRIBE, METADATA, FIND, INIT = 7, 6, 1, 4, 12, 4, 5
TOPIC, BROKER_LOGGER = 2, 8
NOBODY = InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
LOCALHOST = bytes((127, 0, 0, 1))

# What Apache Kafka 4.3.1 forwards, of what is answered here.
FORWARDED = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.UPDATE_FEATURES,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
}


def others(cluster: moldau.EmbeddedCluster) -> list[moldau.EmbeddedBroker]:
    """The brokers that do not control."""
    return [broker for broker_id, broker in cluster.brokers.items() if broker_id != cluster.controller]


def named(prefix: str) -> str:
    return f"{prefix}-{uuid4().hex[:8]}"


def test_the_same_apis_are_forwarded_as_by_apache_kafka() -> None:
    assert {row.key for row in TABLE if row.forwarded} == FORWARDED


def test_any_broker_creates_and_deletes_topics(cluster: moldau.EmbeddedCluster) -> None:
    first, second = others(cluster)
    name = named("created")
    request = CreateTopicsRequest(topics=[CreatableTopic(name, 3, 3)], timeout_ms=TIMEOUT_MS)
    (created,) = ask(first, request, CREATE_TOPICS).topics
    assert (created.error_code, created.num_partitions, created.replication_factor) == (ErrorCode.NONE, 3, 3)
    (again,) = ask(second, request, CREATE_TOPICS).topics
    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert again.error_message == f"Topic '{name}' already exists."
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=TIMEOUT_MS)
    (deleted,) = ask(second, gone, DELETE_TOPICS).responses
    assert deleted.error_code == ErrorCode.NONE


def test_a_request_that_is_long_is_forwarded(cluster: moldau.EmbeddedCluster) -> None:
    """It is read in a thread, at both ends."""
    names = [named("long") + "x" * 200 for _ in range(300)]
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name, 1, 1) for name in names], timeout_ms=TIMEOUT_MS, validate_only=True
    )
    created = ask(others(cluster)[0], request, CREATE_TOPICS).topics
    assert [(each.name, each.error_code) for each in created] == [(name, ErrorCode.NONE) for name in names]


def test_configurations_go_to_the_controller_and_levels_of_loggers_stay(cluster: moldau.EmbeddedCluster) -> None:
    broker = others(cluster)[0]
    broker_id = next(each for each, one in cluster.brokers.items() if one is broker)
    name = named("configured")
    cluster.create_topic(name)
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(BROKER_LOGGER, str(broker_id), [AlterableConfig("moldau.node.command", 0, "DEBUG")]),
            AlterConfigsResource(TOPIC, name, [AlterableConfig("retention.ms", 0, "1234567")]),
            AlterConfigsResource(TOPIC, named("unknown"), [AlterableConfig("retention.ms", 0, "1")]),
        ]
    )
    answers = ask(broker, request, ALTER).responses
    assert [(each.resource_type, each.error_code) for each in answers] == [
        (BROKER_LOGGER, ErrorCode.NONE),
        (TOPIC, ErrorCode.NONE),
        (TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    asked = DescribeConfigsRequest(resources=[DescribeConfigsResource(TOPIC, name, ["retention.ms"])])
    until(
        lambda: (
            {ask(each, asked, DESCRIBE).results[0].configs[0].value for each in cluster.brokers.values()} == {"1234567"}
        )
    )


def test_a_topic_that_somebody_asks_for_is_created_and_in_the_answer(cluster: moldau.EmbeddedCluster) -> None:
    name = named("asked")
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    (topic,) = ask(others(cluster)[0], request, METADATA).topics
    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 1)


def test_every_broker_names_the_same_coordinator(cluster: moldau.EmbeddedCluster) -> None:
    """The topic of groups is created by the first question, with three replicas."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[f"group-{number}" for number in range(50)])
    found = [ask(broker, request, FIND).coordinators for broker in (*others(cluster), *cluster.brokers.values())]
    assert {each.error_code for answer in found for each in answer} == {ErrorCode.NONE}
    assert len({tuple(each.node_id for each in answer) for answer in found}) == 1
    assert {each.node_id for each in found[0]} == {0, 1, 2}
    assert {len(replicas) for replicas in cluster.seen("__consumer_offsets").in_sync.values()} == {3}


def test_no_producer_id_is_given_out_twice(cluster: moldau.EmbeddedCluster) -> None:
    given = [ask(broker, NOBODY, INIT) for broker in [*cluster.brokers.values()] * 3]
    assert {each.error_code for each in given} == {ErrorCode.NONE}
    assert len({each.producer_id for each in given}) == len(given)


def test_who_may_not_be_forwarded_is_refused(cluster: moldau.EmbeddedCluster) -> None:
    controller = cluster.brokers[cluster.controller]
    inner = frame(ApiVersionsRequest(), 3)
    request = EnvelopeRequest(inner, serialized(ANONYMOUS), LOCALHOST)
    assert ask(controller, request, 0).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_what_is_too_short_for_a_request_is_refused_without_ado(cluster: moldau.EmbeddedCluster, size: int) -> None:
    controller = cluster.brokers[cluster.controller]
    request = EnvelopeRequest(frame(CreateTopicsRequest(), CREATE_TOPICS)[:size], serialized(ANONYMOUS), LOCALHOST)
    assert ask(controller, request, 0).error_code == ErrorCode.INVALID_REQUEST
    assert "could not be answered" not in controller.output()


@pytest.mark.parametrize(
    ("principal", "host", "error"),
    [
        (b"", LOCALHOST, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (b"\0\7", LOCALHOST, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (serialized(ANONYMOUS), b"\1\2\3", ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_envelope_has_a_principal_and_an_address(
    cluster: moldau.EmbeddedCluster, principal: bytes, host: bytes, error: ErrorCode
) -> None:
    request = EnvelopeRequest(frame(CreateTopicsRequest(), CREATE_TOPICS), principal, host)
    assert ask(cluster.brokers[cluster.controller], request, 0).error_code == error


def test_a_version_that_the_controller_does_not_know_is_told_apart(cluster: moldau.EmbeddedCluster) -> None:
    inner = bytearray(frame(CreateTopicsRequest(), CREATE_TOPICS))
    inner[2:4] = (99).to_bytes(2, "big")
    request = EnvelopeRequest(bytes(inner), serialized(ANONYMOUS), LOCALHOST)
    assert ask(cluster.brokers[cluster.controller], request, 0).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_only_the_controller_opens_an_envelope(cluster: moldau.EmbeddedCluster) -> None:
    request = EnvelopeRequest(frame(CreateTopicsRequest(), CREATE_TOPICS), serialized(ANONYMOUS), LOCALHOST)
    assert ask(others(cluster)[0], request, 0).error_code == ErrorCode.NOT_CONTROLLER


def frame(request: Message, version: int) -> bytes:
    header = RequestHeader(request.API_KEY, version, 0, "test")
    return b"".join(request_parts(header, encode_parts(request, version), is_flexible=True))[SIZE_BYTES:]

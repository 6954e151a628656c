"""The table of what APIs need is whole, and right where others were wrong."""

from __future__ import annotations

import pytest

from moldau.broker.api import Api
from moldau.broker.handlers.between_brokers import BETWEEN_BROKERS
from moldau.broker.handlers.table import TABLE
from moldau.core.errors import ErrorCode
from moldau.security.acls.requirements import REQUIREMENTS, Scope, needed_of_the_cluster
from moldau.security.acls.vocabulary import SUPPORTED_OPERATIONS, AclOperation, ResourceType
from moldau.wire.api import ApiKey

GONE = {ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN}
ALL = [each for requirements in REQUIREMENTS.values() for each in requirements]


def test_every_handler_has_its_requirements() -> None:
    assert not {row.key.name for row in (*TABLE, *BETWEEN_BROKERS) if row.key not in REQUIREMENTS}


def test_every_api_of_kafka_has_its_requirements() -> None:
    assert set(REQUIREMENTS) == set(ApiKey) - GONE


def test_only_what_comes_before_a_login_or_tells_nothing_needs_nothing() -> None:
    assert {key for key, requirements in REQUIREMENTS.items() if not requirements} == {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
    }


def test_resources_know_the_operations() -> None:
    """But for the cluster's DELETE, which Kafka asks for and an ACL for ALL gives."""
    for each in [*ALL, *(other for needed in ALL for other in needed.unless)]:
        known = SUPPORTED_OPERATIONS[each.resource_type]
        is_odd = (each.operation, each.resource_type) == (AclOperation.DELETE, ResourceType.CLUSTER)
        assert each.operation in known or is_odd, each


@pytest.mark.parametrize("row", BETWEEN_BROKERS, ids=lambda row: row.key.name)
def test_what_brokers_ask_each_other_needs_cluster_action(row: Api) -> None:
    needed = needed_of_the_cluster(row.key, 0)
    assert needed is not None
    assert needed.operation is AclOperation.CLUSTER_ACTION


def test_a_fetch_with_a_replica_id_needs_cluster_action() -> None:
    """CVE-2018-1288."""
    of_replica, of_consumer = REQUIREMENTS[ApiKey.FETCH]
    assert (of_replica.operation, of_replica.error) == (
        AclOperation.CLUSTER_ACTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )
    assert (of_consumer.operation, of_consumer.scope) == (AclOperation.READ, Scope.EACH)


@pytest.mark.parametrize(
    "key",
    [
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.STREAMS_GROUP_DESCRIBE,
    ],
)
def test_describing_a_group_needs_describe_on_it(key: ApiKey) -> None:
    """CVE-2026-41115."""
    first = REQUIREMENTS[key][0]
    assert (first.operation, first.resource_type, first.when) == (AclOperation.DESCRIBE, ResourceType.GROUP, "")


@pytest.mark.parametrize(
    ("key", "version", "operation"),
    [
        (ApiKey.CREATE_ACLS, 3, AclOperation.ALTER),
        (ApiKey.DESCRIBE_ACLS, 3, AclOperation.DESCRIBE),
        (ApiKey.WRITE_TXN_MARKERS, 1, AclOperation.CLUSTER_ACTION),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 3, None),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 4, AclOperation.CLUSTER_ACTION),
        (ApiKey.PRODUCE, 9, None),
        (ApiKey.FETCH, 12, None),
        (ApiKey.FIND_COORDINATOR, 6, None),
        (ApiKey.DESCRIBE_CLUSTER, 0, None),
        (ApiKey.DESCRIBE_CONFIGS, 4, None),
        (ApiKey.API_VERSIONS, 3, None),
    ],
)
def test_some_requests_can_be_refused_unread(key: ApiKey, version: int, operation: AclOperation | None) -> None:
    needed = needed_of_the_cluster(key, version)
    assert (None if needed is None else needed.operation) is operation

"""A session may grow while one of its requests waits: what that one gives was asked for by it, and judged for it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import moldau
from moldau.core.errors import ErrorCode
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from moldau.wire.messages import FetchRequest, FetchResponse
from moldau.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from tests.broker.handlers.wire import Wire

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
VERSION = 12
WAIT_MS = 1_500


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with moldau.run(overrides=PROPERTIES) as broker:
        yield broker.bootstrap_servers


def hide(wire: Wire, name: str) -> None:
    acl = AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal="User:ANONYMOUS",
        host="*",
        operation=AclOperation.READ,
        permission_type=PermissionType.DENY,
    )
    (result,) = wire.ask(CreateAclsRequest(creations=[acl]), 3, CreateAclsResponse).results
    assert result.error_code == ErrorCode.NONE


def fetched(wire: Wire, session_id: int, epoch: int, *topics: str, wait_ms: int = 0) -> FetchResponse:
    beginning = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    wanted = [FetchTopic(topic=name, partitions=[beginning]) for name in topics]
    request = FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20, session_id=session_id, session_epoch=epoch, topics=wanted
    )
    return wire.ask(request, VERSION, FetchResponse)


def test_a_request_that_waits_is_not_given_what_another_of_its_session_was_denied(bootstrap: str) -> None:
    waiting, other = Wire(bootstrap), Wire(bootstrap)
    try:
        waiting.create_topic("open")
        waiting.create_topic("secret")
        waiting.produce("secret", 0, "a")
        hide(waiting, "secret")
        session_id = fetched(waiting, 0, 0, "open").session_id
        with ThreadPoolExecutor(1) as thread:
            late = thread.submit(fetched, waiting, session_id, 1, wait_ms=WAIT_MS)
            answer = fetched(other, session_id, 2, "secret")
            while answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH:  # the first is not there yet
                answer = fetched(other, session_id, 2, "secret")
            errors = {(topic.topic, each.error_code) for topic in answer.responses for each in topic.partitions}
            assert errors == {("secret", ErrorCode.TOPIC_AUTHORIZATION_FAILED)}
            assert {topic.topic for topic in late.result().responses} <= {"open"}
    finally:
        waiting.close()
        other.close()

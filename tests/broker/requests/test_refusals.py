"""What needs a right on the whole cluster is refused in a shape that each version of its API can carry."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.broker.api import Api
from moldau.broker.authorization import Authorization
from moldau.broker.context import Context, Peer
from moldau.broker.handlers import TABLE
from moldau.broker.handlers.between_brokers import BETWEEN_BROKERS
from moldau.broker.handlers.write_txn_markers import write_txn_markers
from moldau.broker.requests.answers import ROWS_MAX, Encoded
from moldau.broker.requests.refusals import guarded, is_long, refusal
from moldau.core.errors import ErrorCode
from moldau.core.ids import AclId
from moldau.security.acls.authorizer import Authorizer
from moldau.security.acls.bindings import Acl
from moldau.security.acls.requirements import REQUIREMENTS, needed_of_the_cluster
from moldau.security.acls.vocabulary import CLUSTER_NAME, AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.principals import ANONYMOUS, Principal
from moldau.wire.api import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from moldau.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

HOST = "10.0.0.1"
ANSWERED = object()
NEEDING = [
    (api, version)
    for api in TABLE + BETWEEN_BROKERS
    for version in range(api.versions[0], api.versions[1] + 1)
    if needed_of_the_cluster(api.key, version) is not None
]


def allowed(*operations: AclOperation) -> Authorization:
    authorizer = Authorizer()
    authorizer.follow(
        {
            AclId(bytes([number])): Acl(
                ResourceType.CLUSTER,
                CLUSTER_NAME,
                PatternType.LITERAL,
                "User:ANONYMOUS",
                "*",
                each,
                PermissionType.ALLOW,
            )
            for number, each in enumerate(operations)
        }
    )
    return Authorization(authorizer)


def context(authorization: Authorization, key: ApiKey, version: int) -> Context:
    header: Any = SimpleNamespace(api_key=int(key), api_version=version)
    services: Any = SimpleNamespace(authorization=authorization, metering=None)
    return Context(services, header, Peer("PLAINTEXT", HOST, 1, ANONYMOUS))


def asked(key: ApiKey, request: Any, version: int, *operations: AclOperation) -> Any:
    authorization = allowed(*operations)
    api = Api(key, type(request), (version, version), lambda *_: ANSWERED, waits=False)
    (guarded_api,) = guarded([api], authorization)
    return guarded_api.call(request, context(authorization, key, version))


@pytest.mark.parametrize(("api", "version"), NEEDING, ids=[f"{api.key.name} v{version}" for api, version in NEEDING])
def test_every_such_api_has_a_refusal_for_every_version(api: Api, version: int) -> None:
    refused: Any = refusal(api.key, api.request(), version)
    encode(refused, version)
    errors = {getattr(refused, "error_code", ErrorCode.CLUSTER_AUTHORIZATION_FAILED)}
    assert errors <= {ErrorCode.CLUSTER_AUTHORIZATION_FAILED} or version == 0


@pytest.mark.parametrize("api", TABLE + BETWEEN_BROKERS, ids=lambda api: api.key.name)
def test_no_api_is_answered_of_which_nobody_says_what_it_needs(api: Api) -> None:
    assert api.key in REQUIREMENTS


def test_a_client_with_the_right_gets_to_the_handler() -> None:
    quorum = DescribeQuorumRequest()
    assert asked(ApiKey.DESCRIBE_QUORUM, quorum, 0, AclOperation.DESCRIBE) is ANSWERED
    refused = asked(ApiKey.DESCRIBE_QUORUM, quorum, 0, AclOperation.CREATE)
    assert cast(DescribeQuorumResponse, refused).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_one_of_two_rights_is_enough_for_markers() -> None:
    markers = WriteTxnMarkersRequest()
    assert asked(ApiKey.WRITE_TXN_MARKERS, markers, 1, AclOperation.ALTER) is ANSWERED
    assert asked(ApiKey.WRITE_TXN_MARKERS, markers, 1, AclOperation.CLUSTER_ACTION) is ANSWERED
    assert asked(ApiKey.WRITE_TXN_MARKERS, markers, 1, AclOperation.DESCRIBE) == WriteTxnMarkersResponse()


def markers_of(partitions: int) -> WriteTxnMarkersRequest:
    topic = WritableTxnMarkerTopic("t", list(range(partitions)))
    return WriteTxnMarkersRequest(markers=[WritableTxnMarker(1, 0, topics=[topic])])


def test_a_long_refusal_is_made_by_a_thread() -> None:
    partitions = 10 * ROWS_MAX

    async def refused() -> Any:
        made_by: list[int] = []

        class Noting(ThreadPoolExecutor):
            def submit(self, work: Any, /, *args: Any, **named: Any) -> Any:
                def noted() -> Any:
                    made_by.append(get_ident())
                    return work(*args, **named)

                return super().submit(noted)

        with Noting(1) as computing:
            asking = context(allowed(), ApiKey.WRITE_TXN_MARKERS, 1)
            asking.services.computing = computing
            (api,) = guarded([write_txn_markers], allowed())
            refusing: Any = api.call(markers_of(partitions), asking)
            answer = await refusing
        assert made_by
        assert get_ident() not in made_by
        return answer

    answer = asyncio.run(refused())
    assert isinstance(answer, Encoded)
    body = memoryview(b"".join(answer.body))
    told = decode(WriteTxnMarkersResponse, 1, body, 0)[0].markers[0].topics[0].partitions
    assert {each.error_code for each in told} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert [each.partition_index for each in told] == list(range(partitions))


def test_what_is_long_is_known_without_looking_at_all_of_it() -> None:
    assert is_long(markers_of(2 * ROWS_MAX))
    assert not is_long(markers_of(ROWS_MAX // 2))
    assert not is_long(DescribeQuorumRequest())
    one_by_one = [WritableTxnMarker(number, 0, topics=[]) for number in range(ROWS_MAX + 1)]
    assert is_long(WriteTxnMarkersRequest(markers=one_by_one))


def test_a_denial_is_a_line_in_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="moldau.audit")
    asked(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest(), 0)
    assert caplog.messages == [
        "Principal = User:ANONYMOUS is Denied operation = DESCRIBE from host = 10.0.0.1 on resource = Cluster:LITERAL:"
        "kafka-cluster for request = DescribeQuorum with resourceRefCount = 1 based on rule DefaultDeny"
    ]


def test_names_that_are_asked_about_twice_are_judged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="moldau.audit")
    asking = context(allowed(), ApiKey.FETCH, 12)
    assert asking.denied(AclOperation.READ, ResourceType.TOPIC, ["a", "a", "b"]) == {"a", "b"}
    assert len(caplog.messages) == 2


def test_a_client_over_ipv6_is_named_as_java_names_it() -> None:
    authorization = allowed()
    acl = Acl(
        ResourceType.TOPIC,
        "a",
        PatternType.LITERAL,
        "User:x",
        "0:0:0:0:0:0:0:1",
        AclOperation.READ,
        PermissionType.ALLOW,
    )
    authorization.authorizer.follow({AclId(b"1"): acl})
    asking = context(authorization, ApiKey.FETCH, 12)
    asking.peer = Peer("PLAINTEXT", "::1", 1, Principal("User", "x"))
    assert asking.may(AclOperation.READ, ResourceType.TOPIC, "a")

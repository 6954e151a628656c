"""Requests that name very many resources are judged as short ones are, and hold up nobody meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import moldau
from moldau.broker.api import Api
from moldau.broker.authorization import Authorization
from moldau.broker.context import Context, Peer
from moldau.broker.denials import LINES_MAX
from moldau.broker.requests.judging import JUDGED_AT_ONCE, judging
from moldau.coordinator.long_work import LongWork
from moldau.core.errors import ErrorCode
from moldau.security.acls.authorizer import Authorizer
from moldau.security.acls.vocabulary import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.principals import ANONYMOUS
from moldau.wire import messages
from moldau.wire.api import ApiKey
from moldau.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from moldau.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.broker.handlers.wire import Wire

MANY = 20_000
COUNT = 2 * JUDGED_AT_ONCE  # half of which are denied


def judge(count: int) -> tuple[set[str], int]:
    """What a client without rights is denied of so many topics, and how many turns others had meanwhile."""

    async def run() -> tuple[set[str], int]:
        authorization = Authorization(Authorizer())
        names = [f"t{number}" for number in range(count)]

        def handler(_: object, context: Context) -> set[str]:
            assert not context.may(AclOperation.WRITE, ResourceType.GROUP, "unforeseen", is_audited=False)
            return {*context.denied(AclOperation.DESCRIBE, ResourceType.TOPIC, names)}

        api = judging(Api(ApiKey.LIST_OFFSETS, ListOffsetsRequest, (1, 11), handler, waits=False), authorization)
        header: Any = SimpleNamespace(api_key=int(ApiKey.LIST_OFFSETS), api_version=11)
        services: Any = SimpleNamespace(authorization=authorization, long_work=LongWork())
        context = Context(services, header, Peer("PLAINTEXT", "10.0.0.1", 1, ANONYMOUS))
        answer: Any = api.call(ListOffsetsRequest(topics=[ListOffsetsTopic(name) for name in names]), context)
        turns = 0
        if not asyncio.iscoroutine(answer):
            return answer, turns
        judged = asyncio.ensure_future(answer)
        while not judged.done():
            turns += 1
            await asyncio.sleep(0)
        return judged.result(), turns

    return asyncio.run(run())


def test_others_have_their_turn_while_many_names_are_denied(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="moldau.audit")
    denied, turns = judge(MANY)
    assert len(denied) == MANY
    assert turns >= 10, "of a hundred slices and more"
    *told, last = caplog.messages
    assert len(set(told)) == len(told) == LINES_MAX, "the first of them, once each"
    assert "more denials are counted" in last


def test_a_short_request_is_judged_by_its_handler_at_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="moldau.audit")
    assert judge(JUDGED_AT_ONCE) == ({f"t{number}" for number in range(JUDGED_AT_ONCE)}, 0)
    assert len(caplog.messages) == min(JUDGED_AT_ONCE, LINES_MAX)


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "auto.create.topics.enable": "false",
    }
    with moldau.run(overrides=properties) as broker:
        wire = Wire(broker.bootstrap_servers)
        acls = [
            AclCreation(kind, "secret", PatternType.PREFIXED, "User:ANONYMOUS", "*", operation, PermissionType.DENY)
            for kind in (ResourceType.TOPIC, ResourceType.GROUP)
            for operation in (AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE)
        ]
        created = wire.ask(CreateAclsRequest(creations=acls), 3, CreateAclsResponse)
        assert {each.error_code for each in created.results} == {ErrorCode.NONE}
        try:
            yield wire
        finally:
            wire.close()


NAMES = [f"{kind}{number}" for number in range(COUNT // 2 + 1) for kind in ("open", "secret")]


def expected(denied: ErrorCode, other: ErrorCode) -> dict[str, int]:
    return {name: denied if name.startswith("secret") else other for name in NAMES}


def test_long_requests_for_topics_are_refused_what_short_ones_are(wire: Wire) -> None:
    topics = [MetadataRequestTopic(name=name) for name in NAMES]
    metadata = wire.ask(messages.MetadataRequest(topics=topics), 9, messages.MetadataResponse)
    wanted = expected(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert {topic.name: topic.error_code for topic in metadata.topics} == wanted
    asked = [ListOffsetsTopic(name, [ListOffsetsPartition()]) for name in NAMES]
    offsets = wire.ask(ListOffsetsRequest(topics=asked), 7, messages.ListOffsetsResponse)
    assert {topic.name: topic.partitions[0].error_code for topic in offsets.topics} == wanted


def test_a_long_produce_is_refused_what_a_short_one_is(wire: Wire) -> None:
    data = [TopicProduceData(name=name, partition_data=[PartitionProduceData(0, b"")]) for name in NAMES]
    produced = wire.ask(messages.ProduceRequest(acks=1, topic_data=data), 9, messages.ProduceResponse)
    wanted = expected(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert {each.name: each.partition_responses[0].error_code for each in produced.responses} == wanted


def test_a_long_fetch_and_its_session_are_refused_what_a_short_one_is(wire: Wire) -> None:
    topics = [FetchTopic(topic=name, partitions=[FetchPartition()]) for name in NAMES]
    opened = wire.ask(messages.FetchRequest(session_epoch=0, topics=topics), 12, messages.FetchResponse)
    again = messages.FetchRequest(session_id=opened.session_id, session_epoch=1, max_wait_ms=100)
    continued = wire.ask(again, 12, messages.FetchResponse)
    wanted = expected(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for fetched in (opened, continued):
        assert {each.topic: each.partitions[0].error_code for each in fetched.responses} == wanted


def test_a_long_request_for_groups_is_refused_what_a_short_one_is(wire: Wire) -> None:
    described = wire.ask(DescribeGroupsRequest(groups=NAMES), 5, DescribeGroupsResponse)
    errors = {group.group_id: group.error_code for group in described.groups}
    assert {name for name, error in errors.items() if error == ErrorCode.GROUP_AUTHORIZATION_FAILED} == {
        name for name in NAMES if name.startswith("secret")
    }

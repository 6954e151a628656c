"""Requests about thousands of partitions that exist: in slices, and answered as short ones are."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

import moldau
from moldau.broker.handlers.fetch import MANY
from moldau.broker.handlers.leave_group import LEAVING_AT_ONCE_MAX
from moldau.broker.handlers.offset_delete import DELETED_AT_ONCE_MAX
from moldau.core.errors import ErrorCode
from moldau.core.limits import GROUP_PROTOCOLS_MAX, PRODUCE_ELEMENTS_MAX
from moldau.wire.messages import (
    CreateTopicsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from moldau.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from moldau.wire.messages.join_group import JoinGroupRequestProtocol
from moldau.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from moldau.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from moldau.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.wire.messages.offset_fetch import OffsetFetchRequestGroup
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.differential.batches import batch
from tests.hostile.attacker import CLOSED, Address, Attacker

TOPIC = "many"
PARTITIONS = MANY + 500
READ_WAIT_MS = 10_000


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with moldau.run(overrides={"group.initial.rebalance.delay.ms": 0}) as broker:
        with Attacker((broker.host, broker.port), wait_s=60) as client:
            topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
            made = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
            assert made.topics[0].error_code == ErrorCode.NONE
            for kind in (0, 1):
                client.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"]), 4)
        yield broker.host, broker.port


@pytest.fixture
def client(address: Address) -> Iterator[Attacker]:
    with Attacker(address) as peer:
        yield peer


def produce(client: Attacker, index: int) -> int:
    records = batch([b"x"], timestamp=int(time.time() * 1000))
    data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=index, records=records)])
    answer = client.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
    stored = answer.responses[0].partition_responses[0]
    assert stored.error_code == ErrorCode.NONE
    return int(stored.base_offset)


def end_offsets(client: Attacker) -> list[int]:
    asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(PARTITIONS)]
    (topic,) = client.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=asked)]), 5).topics
    assert [each.partition_index for each in topic.partitions] == list(range(PARTITIONS))
    return [each.offset for each in topic.partitions]


def fetch_all(
    offsets: list[int], *, epoch: int = -1, session_id: int = 0, wait_ms: int = 0, unknown: int = 0
) -> FetchRequest:
    rows = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in enumerate(offsets)
    ]
    rows += [FetchPartition(partition=PARTITIONS + index, partition_max_bytes=1) for index in range(unknown)]
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 24,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic=TOPIC, partitions=rows)] if rows else [],
    )


def test_a_fetch_of_many_finds_what_is_there(client: Attacker) -> None:
    ends = end_offsets(client)
    for index in (7, PARTITIONS - 1):
        assert produce(client, index) == ends[index]
    (topic,) = client.ask(fetch_all(ends), 12).responses
    assert [each.partition_index for each in topic.partitions] == list(range(PARTITIONS))
    assert [each.partition_index for each in topic.partitions if len(each.records or b"")] == [7, PARTITIONS - 1]


def test_errors_of_a_fetch_of_many_come_last_and_at_once(client: Attacker) -> None:
    (topic,) = client.ask(fetch_all(end_offsets(client), unknown=10, wait_ms=READ_WAIT_MS), 12).responses
    errors = [each.error_code for each in topic.partitions]
    assert errors == [ErrorCode.NONE] * PARTITIONS + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 10


@pytest.mark.parametrize("has_session", [False, True], ids=["without a session", "in a session"])
def test_a_fetch_of_many_is_woken(address: Address, client: Attacker, has_session: bool) -> None:
    ends = end_offsets(client)
    wanted = fetch_all(ends, wait_ms=READ_WAIT_MS)
    if has_session:
        opened = client.ask(fetch_all(ends, epoch=0), 12)
        assert opened.session_id != 0
        wanted = fetch_all([], epoch=1, session_id=opened.session_id, wait_ms=READ_WAIT_MS)
    found = []
    waiting = threading.Thread(target=lambda: found.append(client.ask(wanted, 12)))
    began = time.monotonic()
    waiting.start()
    with Attacker(address) as other:
        while not found and time.monotonic() - began < READ_WAIT_MS / 2000:
            produce(other, 42)
            time.sleep(0.05)
    waiting.join()
    assert time.monotonic() - began < READ_WAIT_MS / 1000
    (topic,) = found[0].responses
    with_records = [each for each in topic.partitions if len(each.records or b"")]
    assert [each.partition_index for each in with_records] == [42]
    assert len(topic.partitions) == (1 if has_session else PARTITIONS)


def test_a_fetch_of_many_waits_as_long_as_it_says(client: Attacker) -> None:
    wanted = fetch_all(end_offsets(client), wait_ms=300)
    began = time.monotonic()
    (topic,) = client.ask(wanted, 12).responses
    assert time.monotonic() - began >= 0.29
    assert len(topic.partitions) == PARTITIONS


def test_a_session_takes_many_changes_at_once(client: Attacker) -> None:
    ends = end_offsets(client)
    opened = client.ask(fetch_all(ends[:3], epoch=0), 12)
    assert client.ask(fetch_all(ends, epoch=1, session_id=opened.session_id), 12).error_code == ErrorCode.NONE
    assert produce(client, PARTITIONS - 1) == ends[-1]
    (topic,) = client.ask(fetch_all([], epoch=2, session_id=opened.session_id), 12).responses
    assert [each.partition_index for each in topic.partitions] == [PARTITIONS - 1]


def test_who_goes_away_while_a_fetch_of_many_waits_is_forgotten(address: Address, client: Attacker) -> None:
    ends = end_offsets(client)
    with Attacker(address) as gone:
        gone.tell(fetch_all(ends, wait_ms=READ_WAIT_MS), 12)
    assert produce(client, 1) == ends[1]
    assert produce(client, 1) == ends[1] + 1


@pytest.mark.parametrize("is_split", [False, True], ids=["in one topic", "in two of the same name"])
def test_partitions_that_are_named_twice_are_refused_however_many_there_are(client: Attacker, is_split: bool) -> None:
    once = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(PARTITIONS)]
    twice = [ListOffsetsPartition(partition_index=3, timestamp=-1)]
    rows = [once, twice] if is_split else [once + twice]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=some) for some in rows])
    answered = [each for topic in client.ask(request, 5).topics for each in topic.partitions]
    refused = {each.partition_index for each in answered if each.error_code == ErrorCode.INVALID_REQUEST}
    assert refused == {3}
    assert len(answered) == PARTITIONS + is_split


def test_many_partitions_are_added_to_a_transaction_or_none(client: Attacker) -> None:
    for _ in range(100):
        made = client.ask(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000), 4)
        if made.error_code == ErrorCode.NONE:
            break
        time.sleep(0.1)

    def add(count: int) -> set[int]:
        topic = AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(count)))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=made.producer_id,
            v3_and_below_producer_epoch=made.producer_epoch,
            v3_and_below_topics=[topic],
        )
        (told,) = client.ask(request, 3).results_by_topic_v3_and_below
        assert [each.partition_index for each in told.results_by_partition] == list(range(count))
        return {each.partition_error_code for each in told.results_by_partition}

    assert add(PARTITIONS + 1) == {ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert add(PARTITIONS) == {ErrorCode.NONE}


def test_offsets_of_many_partitions_are_deleted(client: Attacker) -> None:
    assert PARTITIONS > DELETED_AT_ONCE_MAX
    rows = [OffsetCommitRequestPartition(partition_index=index, committed_offset=5) for index in range(PARTITIONS)]
    commit = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=rows)])
    assert {each.error_code for each in client.ask(commit, 8).topics[0].partitions} == {ErrorCode.NONE}
    named = [OffsetDeleteRequestPartition(partition_index=index) for index in range(1, PARTITIONS + 1)]
    request = OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequestTopic(name=TOPIC, partitions=named)])
    deleted = client.ask(request, 0).topics[0].partitions
    assert [each.error_code for each in deleted[:-1]] == [ErrorCode.NONE] * (PARTITIONS - 1)
    assert deleted[-1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    groups = [OffsetFetchRequestGroup(group_id="g", topics=None)]
    (left,) = client.ask(OffsetFetchRequest(groups=groups), 8).groups
    assert [(each.partition_index, each.committed_offset) for each in left.topics[0].partitions] == [(0, 5)]


def test_offsets_of_a_group_that_is_not_there_are_not_deleted(client: Attacker) -> None:
    named = [OffsetDeleteRequestPartition(partition_index=index) for index in range(PARTITIONS)]
    request = OffsetDeleteRequest(group_id="none", topics=[OffsetDeleteRequestTopic(name=TOPIC, partitions=named)])
    answer = client.ask(request, 0)
    assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_many_members_leave_and_each_is_answered(client: Attacker) -> None:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    joined = client.ask(
        JoinGroupRequest(
            group_id="static",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=1_000,
            group_instance_id="one",
            protocol_type="consumer",
            protocols=protocols,
        ),
        5,
    )
    assert joined.error_code == ErrorCode.NONE
    strangers = [MemberIdentity(member_id=f"m-{index}") for index in range(LEAVING_AT_ONCE_MAX * 3)]
    leaving = [*strangers, MemberIdentity(member_id="", group_instance_id="one")]
    answered = client.ask(LeaveGroupRequest(group_id="static", members=leaving), 5)
    assert answered.error_code == ErrorCode.NONE
    assert [each.member_id for each in answered.members] == [each.member_id for each in leaving]
    codes = [each.error_code for each in answered.members]
    assert codes == [ErrorCode.UNKNOWN_MEMBER_ID] * len(strangers) + [ErrorCode.NONE]


@pytest.mark.parametrize("too_many", [False, True])
def test_how_many_protocols_a_member_may_have(client: Attacker, too_many: bool) -> None:
    count = GROUP_PROTOCOLS_MAX + too_many
    request = JoinGroupRequest(
        group_id="protocols",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=1_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=f"p-{index}", metadata=b"") for index in range(count)],
    )
    answer = client.ask(request, 5)
    assert answer == CLOSED if too_many else answer.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_how_many_partitions_a_produce_may_name(client: Attacker) -> None:
    rows = [PartitionProduceData(index=index, records=None) for index in range(PRODUCE_ELEMENTS_MAX)]
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=rows[:-1])]
    )
    assert len(client.ask(request, 9).responses[0].partition_responses) == PRODUCE_ELEMENTS_MAX - 1
    request.topic_data[0].partition_data = rows
    assert client.ask(request, 9) == CLOSED

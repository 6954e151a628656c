"""What went wrong elsewhere with rights, each with its number, against a running broker.

Not here: a request without credentials to registry, REST proxy and console (karapace, 2025-61673), for there are none.
"""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from moldau.core.errors import ErrorCode
from moldau.security.acls.vocabulary import AclOperation, ResourceType
from moldau.wire.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    ApiVersionsRequest,
    AssignReplicasToDirsRequest,
    ConsumerGroupDescribeRequest,
    DeleteAclsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
    WriteTxnMarkersRequest,
)
from moldau.wire.messages.delete_acls import DeleteAclsFilter
from moldau.wire.messages.describe_configs import DescribeConfigsResource
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from moldau.wire.messages.offset_fetch import OffsetFetchRequestGroup
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.messages.write_txn_markers import WritableTxnMarker
from tests.differential.batches import TRANSACTIONAL, batch
from tests.hostile.attacker import CLOSED, Attacker
from tests.node.securing.secured import Secured
from tests.node.test_command import start_command
from tests.security.cves.talk import acl, admin, create_acls, create_topics, logged_in

READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
CLUSTER_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
GROUP_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def records(*, attributes: int = 0, producer: tuple[int, int, int] = (-1, -1, -1)) -> bytes:
    return batch([b"x"], timestamp=int(time.time() * 1000), attributes=attributes, producer=producer)


def produce(client: Attacker, batches: dict[str, bytes], transactional_id: str | None = None) -> dict[str, int]:
    data = [
        TopicProduceData(name=name, partition_data=[PartitionProduceData(0, each)]) for name, each in batches.items()
    ]
    request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=data)
    answer = client.ask(request, 9)
    return {each.name: each.partition_responses[0].error_code for each in answer.responses}


def fetch(client: Attacker, topic: str, *, replica_id: int = -1) -> Any:
    wanted = [FetchTopic(topic, partitions=[FetchPartition(partition_max_bytes=1 << 20)])]
    answer = client.ask(FetchRequest(replica_id=replica_id, min_bytes=1, topics=wanted), 12)
    return answer.responses[0].partitions[0]


def end_offset(secured: Secured, topic: str) -> int:
    with admin(secured) as client:
        wanted = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=-1)])]
        return int(client.ask(ListOffsetsRequest(topics=wanted), 7).topics[0].partitions[0].offset)


@pytest.mark.parametrize("replica_id", [0, 1, 1_000])
def test_cve_2018_1288_a_consumer_fetches_as_if_it_were_a_replica(replica_id: int, secured: Secured) -> None:
    """Who reads a topic may not tell how far a follower has come: records would be lost that nobody has."""
    topic = f"replicated-{replica_id}"
    create_topics(secured, topic)
    create_acls(secured, acl(READ, TOPIC, topic))
    with admin(secured) as client:
        assert produce(client, {topic: records()}) == {topic: 0}
    with logged_in(secured) as client:
        assert fetch(client, topic).error_code == ErrorCode.NONE
        refused = fetch(client, topic, replica_id=replica_id)
        assert (refused.error_code, bytes(refused.records or b"")) == (TOPIC_DENIED, b"")


@pytest.mark.parametrize(
    ("request_of", "version"),
    [
        (AlterPartitionRequest(), 3),
        (AllocateProducerIdsRequest(), 0),
        (AssignReplicasToDirsRequest(), 0),
    ],
    ids=lambda each: type(each).__name__,
)
def test_cve_2018_1288_what_brokers_ask_each_other(request_of: Any, version: int, secured: Secured) -> None:
    """A broker alone does not know them at all."""
    with logged_in(secured) as client:
        answer = client.ask(request_of, version)
        assert answer == CLOSED or answer.error_code == CLUSTER_DENIED


def test_cve_2018_1288_nobody_but_brokers_writes_markers(secured: Secured) -> None:
    with logged_in(secured) as client:
        answer = client.ask(WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=1)]), 1)
        codes = [part.error_code for marker in answer.markers for topic in marker.topics for part in topic.partitions]
        assert set(codes) <= {CLUSTER_DENIED}


def test_cve_2018_17196_every_batch_of_a_request_needs_its_rights(secured: Secured) -> None:
    """The first batch is anybody's; the second belongs to a transaction, and alice has no right to any."""
    create_topics(secured, "first", "second", "third")
    create_acls(secured, acl(WRITE, TOPIC, "first"), acl(WRITE, TOPIC, "second"))
    with admin(secured) as client:
        made = client.ask(InitProducerIdRequest(transactional_id="theirs", transaction_timeout_ms=60_000), 4)
        while made.error_code:
            client.ask(FindCoordinatorRequest(key="theirs", key_type=1), 3)
            made = client.ask(InitProducerIdRequest(transactional_id="theirs", transaction_timeout_ms=60_000), 4)
    transactional = records(attributes=TRANSACTIONAL, producer=(made.producer_id, made.producer_epoch, 0))
    with logged_in(secured) as client:
        codes = produce(client, {"first": records(), "second": transactional}, "theirs")
        assert codes["second"] == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    with logged_in(secured) as client:
        before = end_offset(secured, "first")
        codes = produce(client, {"first": records() + transactional, "second": transactional})
        assert 0 not in codes.values(), "what has no transactional id is in no transaction"
        assert end_offset(secured, "first") == before
    with logged_in(secured) as client:
        assert produce(client, {"first": records(), "third": records()}) == {"first": 0, "third": TOPIC_DENIED}
    assert (end_offset(secured, "second"), end_offset(secured, "third")) == (0, 0)


def test_cve_2024_27309_one_acl_less_leaves_the_others(secured: Secured) -> None:
    create_topics(secured, "guarded")
    create_acls(
        secured, acl(READ, TOPIC, "guarded"), acl(WRITE, TOPIC, "guarded"), acl(READ, TOPIC, "guarded", user="bob")
    )

    def may_read(user: str) -> bool:
        with logged_in(secured, user) as client:
            return bool(fetch(client, "guarded").error_code == ErrorCode.NONE)

    assert (may_read("alice"), may_read("bob")) == (True, True)
    gone = DeleteAclsFilter(int(TOPIC), "guarded", 3, "User:alice", "*", int(READ), 3)
    with admin(secured) as client:
        answer = client.ask(DeleteAclsRequest(filters=[gone]), 3)
        assert [len(each.matching_acls) for each in answer.filter_results] == [1]
    assert (may_read("alice"), may_read("bob")) == (False, True)
    with logged_in(secured) as client:
        assert produce(client, {"guarded": records()}) == {"guarded": 0}


def test_cve_2026_41115_a_group_is_described_to_those_who_may_see_it(secured: Secured) -> None:
    create_topics(secured, "committed")
    create_acls(secured, acl(DESCRIBE, GROUP, "seen"))
    partition = OffsetCommitRequestPartition(0, committed_offset=7)
    with admin(secured) as client:
        for group in ("seen", "hidden"):
            request = OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=-1,
                topics=[OffsetCommitRequestTopic("committed", partitions=[partition])],
            )
            answer = client.ask(request, 8)
            while answer.topics[0].partitions[0].error_code:  # until its coordinator is there
                client.ask(FindCoordinatorRequest(key=group), 3)
                answer = client.ask(request, 8)
    with logged_in(secured) as client:
        described = client.ask(DescribeGroupsRequest(groups=["seen", "hidden", "none"]), 5).groups
        assert [each.error_code for each in described] == [ErrorCode.NONE, GROUP_DENIED, GROUP_DENIED]
        assert described[1].group_state == described[2].group_state
        modern = client.ask(ConsumerGroupDescribeRequest(group_ids=["hidden", "none"]), 0).groups
        assert [each.error_code for each in modern] == [GROUP_DENIED, GROUP_DENIED]
        assert [each.group_id for each in client.ask(ListGroupsRequest(), 4).groups] == ["seen"]
        groups = [OffsetFetchRequestGroup("hidden", topics=None), OffsetFetchRequestGroup("seen", topics=None)]
        fetched = client.ask(OffsetFetchRequest(groups=groups), 8).groups
        assert [(each.group_id, each.error_code, each.topics) for each in fetched] == [
            ("hidden", GROUP_DENIED, []),
            ("seen", ErrorCode.NONE, []),
        ]


def test_a_topic_that_one_may_not_see_looks_like_none(secured: Secured) -> None:
    create_topics(secured, "secret")
    with logged_in(secured) as client:
        names = ["secret", "no-such-topic"]
        asked = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        )
        told = {each.name: each for each in client.ask(asked, 9).topics}
        assert [told[name].error_code for name in names] == [TOPIC_DENIED, TOPIC_DENIED]
        assert told["secret"].partitions == told["no-such-topic"].partitions == []
        assert "secret" not in [each.name for each in client.ask(MetadataRequest(topics=None), 9).topics]
        assert [fetch(client, name).error_code for name in names] == [TOPIC_DENIED, TOPIC_DENIED]
        assert produce(client, {name: records() for name in names}) == dict.fromkeys(names, TOPIC_DENIED)
        configs = [DescribeConfigsResource(resource_type=2, resource_name=name) for name in names]
        results = client.ask(DescribeConfigsRequest(resources=configs), 4).results
        assert [(each.error_code, each.configs) for each in results] == [(TOPIC_DENIED, []), (TOPIC_DENIED, [])]


def test_connections_are_limited_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    """Kafka's keys have no limit by default; half of the files that the process may open is one."""
    limited = ["sh", "-c", 'ulimit -n 256 && exec "$@"', "sh", *start_command("--port", "0")]
    with subprocess.Popen(
        limited, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process, ExitStack() as held:  # fmt: skip
        assert process.stdout is not None
        try:
            listening = next(line for line in process.stdout if "listening" in line)
            port = int(listening.rsplit(":", 1)[1])
            crowd = [held.enter_context(Attacker(("127.0.0.1", port), wait_s=2)) for _ in range(200)]
            for one in crowd:
                one.tell(ApiVersionsRequest(), 0)
            assert isinstance(crowd[127].answer(), bytes)
            with pytest.raises(TimeoutError):
                crowd[128].answer()
            crowd[0].socket.close()
            assert isinstance(crowd[128].answer(), bytes), "there is room again"
        finally:
            process.kill()

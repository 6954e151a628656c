"""How long the coordinators hold up others: the longest answer to ApiVersions while they work for somebody else.

    python -m bench.coordinator_stalls                      a million offsets, 20,000 groups (about 4 minutes)
    python -m bench.coordinator_stalls --scale 0.1          a quick try
    python -m bench.coordinator_stalls --only expiry        deeds with this in their name, and what they need

The prober is a process of its own, as is the broker. `quiet` is what the machine itself adds, and `loop` is the longest
turn of the broker's loop in processor time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.prober import Prober
from bench.watched_broker import Watched, described, watched
from moldau.core.errors import ErrorCode
from moldau.wire.messages import (
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    ListTransactionsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.wire.messages.find_coordinator import FindCoordinatorRequest
from moldau.wire.messages.join_group import JoinGroupRequestProtocol
from moldau.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from moldau.wire.messages.offset_fetch import OffsetFetchRequestGroup
from tests.hostile.attacker import Address, Attacker, frame

ANSWER_S_MAX = 300.0
TOPIC = "committed"
PARTITIONS = 5_000  # of one commit: with its keys and values as much as one batch holds
NEVER = -1
PIPELINED = 200
CONSUMER_PROTOCOL = b"\0\0\0\0\0\0\xff\xff\xff\xff"

OFTEN = {
    "offsets.retention.check.interval.ms": 4_000,
    "transactional.id.expiration.ms": 8_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 2_000,
    "group.initial.rebalance.delay.ms": 0,
}


class Client:
    """The one who is busy."""

    def __init__(self, address: Address, scale: float) -> None:
        self._client = Attacker(address, wait_s=ANSWER_S_MAX)
        self._big = [f"big-{number}" for number in range(max(1, int(1_000_000 * scale / PARTITIONS)))]
        self._small = [f"small-{number}" for number in range(int(20_000 * scale))]
        self._scale = scale

    def _ask(self, request: Any, version: int) -> None:
        """Without decoding the answer: the largest would keep this process busy longer than the broker."""
        self._client.tell(request, version)
        answer = self._client.answer()
        assert isinstance(answer, bytes), answer

    def _pipeline(self, requests: Iterator[tuple[Any, int]]) -> None:
        waiting = 0
        for request, version in requests:
            self._client.send(frame(request, version))
            waiting += 1
            if waiting == PIPELINED:
                for _ in range(waiting):
                    assert isinstance(self._client.answer(), bytes)
                waiting = 0
        for _ in range(waiting):
            assert isinstance(self._client.answer(), bytes)

    def prepare(self) -> None:
        topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
        self._ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
        for kind in (0, 1):
            self._ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"]), 4)
        for _ in range(600):
            answer = self._client.ask(_commit("first", 1, NEVER), 3)
            if answer.topics[0].partitions[0].error_code == ErrorCode.NONE:
                return
            time.sleep(0.1)
        raise RuntimeError("there is no coordinator of groups")

    def commit_once(self) -> None:
        self._ask(_commit("first", PARTITIONS, NEVER), 3)

    def commit_big(self, retention_ms: int = NEVER) -> None:
        for group_id in self._big:
            answer = self._client.ask(_commit(group_id, PARTITIONS, retention_ms), 3)
            code = answer.topics[0].partitions[0].error_code
            assert code == ErrorCode.NONE, ErrorCode(code)

    def commit_small(self) -> None:
        self._pipeline((_commit(group_id, 1, NEVER), 3) for group_id in self._small)

    def fetch_one(self) -> None:
        self._fetch(self._big[:1])

    def fetch_all(self) -> None:
        self._fetch(self._big)

    def _fetch(self, group_ids: list[str]) -> None:
        groups = [OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in group_ids]
        self._ask(OffsetFetchRequest(groups=groups), 8)

    def list(self) -> None:
        self._ask(ListGroupsRequest(), 4)

    def describe(self) -> None:
        self._ask(DescribeGroupsRequest(groups=self._small), 5)

    def delete_small(self) -> None:
        self._ask(DeleteGroupsRequest(groups_names=self._small), 2)

    def delete_big(self) -> None:
        self._ask(DeleteGroupsRequest(groups_names=self._big), 2)

    def delete_topic(self) -> None:
        self._ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=60_000), 6)

    def join(self) -> None:
        protocols = [JoinGroupRequestProtocol(name="range", metadata=CONSUMER_PROTOCOL)]
        self._pipeline(
            (
                JoinGroupRequest(
                    group_id=f"member-{number}",
                    session_timeout_ms=6_000,
                    rebalance_timeout_ms=6_000,
                    protocol_type="consumer",
                    protocols=protocols,
                ),
                3,
            )
            for number in range(int(5_000 * self._scale))
        )

    def initialise(self) -> None:
        self._pipeline(
            (InitProducerIdRequest(transactional_id=f"id-{number}", transaction_timeout_ms=60_000), 4)
            for number in range(int(20_000 * self._scale))
        )

    def list_transactions(self) -> None:
        self._ask(ListTransactionsRequest(), 1)


def _commit(group_id: str, partitions: int, retention_ms: int) -> OffsetCommitRequest:
    rows = [OffsetCommitRequestPartition(partition_index=index, committed_offset=index) for index in range(partitions)]
    return OffsetCommitRequest(
        group_id=group_id,
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=rows)],
    )


Deed = tuple[str, Callable[[], None]]


def deeds(client: Client) -> Iterator[Deed]:
    """In this order: each finds what the ones before it made."""
    yield "quiet", lambda: time.sleep(1)
    yield "OffsetCommit, one request", client.commit_once
    yield "OffsetCommit, all the groups", client.commit_big
    yield "OffsetFetch, all of one group", client.fetch_one
    yield "OffsetFetch, all of all groups", client.fetch_all
    yield "OffsetCommit, many small groups", client.commit_small
    yield "ListGroups", client.list
    yield "DescribeGroups", client.describe
    yield "expiry that finds nothing, 6 s", lambda: time.sleep(6)
    yield "DeleteGroups, small ones", client.delete_small
    yield "DeleteGroups, large ones", client.delete_big
    yield "OffsetCommit, all to expire", lambda: client.commit_big(retention_ms=1)
    yield "expiry of them all, 15 s", lambda: time.sleep(15)
    yield "JoinGroup", client.join
    yield "expiry of the members, 10 s", lambda: time.sleep(10)
    yield "InitProducerId", client.initialise
    yield "ListTransactions", client.list_transactions
    yield "expiry of transactional ids, 15 s", lambda: time.sleep(15)


def report(running: Watched, prober: Prober, name: str, deed: Callable[[], None]) -> None:
    begun_s = time.monotonic()
    took_s, seen = prober.during(deed)
    hold = described(running.longest(begun_s))
    sys.stdout.write(f"| {name} | {took_s:.2f} s | {seen.longest_ms:.0f} ms of {seen.count:,} | {hold} |\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the million offsets and 20,000 groups")
    parser.add_argument("--only", default="", help="deeds with this in their name")
    options = parser.parse_args()
    sys.stdout.write(f"| deed | took | ApiVersions, longest of n | loop | longest callback |\n|{'---|' * 5}\n")
    with tempfile.TemporaryDirectory() as folder:
        with watched(folder, OFTEN) as running:
            client = Client(running.address, options.scale)
            client.prepare()
            with Prober(running.address) as prober:
                for name, deed in deeds(client):
                    if options.only in name:
                        report(running, prober, name, deed)
                client.commit_big()
        with watched(folder, OFTEN) as running, Prober(running.address) as prober:
            client = Client(running.address, options.scale)
            report(running, prober, "start with a million offsets, 20 s", lambda: time.sleep(20))
            report(running, prober, "DeleteTopics of a topic with a million offsets", client.delete_topic)


if __name__ == "__main__":
    main()

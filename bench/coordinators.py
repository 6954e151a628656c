"""Offset commits, groups that form and transactions, Moldau beside Apache Kafka in one run.

    python -m bench.coordinators                             everything, five rounds (about 4 minutes)
    python -m bench.coordinators --rounds 1 --seconds 1      a quick try

Commits and groups are driven over plain connections, with the same requests to both, so that the client's own work
doesn't hide the broker's. Transactions are librdkafka's. A ratio above 1.00 is better than Apache Kafka, whichever way
the raw figure points.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
import uuid
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.brokers import OURS, Broker, answers, two_brokers
from moldau.core.errors import ErrorCode
from moldau.wire.codec import decode, encode, is_flexible
from moldau.wire.frame import RequestHeader, read_response_header, request_parts
from moldau.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from moldau.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from moldau.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from moldau.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from moldau.wire.schema import Message

M = TypeVar("M", bound=Message)

TOPIC = "bench"
PARTITIONS = 100
HEARTBEAT_S = 0.02  # short, for a member hears of a rebalance by its heartbeat
STABLE_S_MAX = 120.0
READY_S_MAX = 60.0
LOWER_IS_BETTER = "s"
SUBSCRIBED_TO_NOTHING = b"\0\0\0\0\0\0\xff\xff\xff\xff"


class Peer:
    """One connection, one request at a time."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, broker: Broker) -> Peer:
        return cls(*await asyncio.open_connection("127.0.0.1", broker.port))

    async def ask(self, request: Message, response: type[M], version: int) -> M:
        header = RequestHeader(request.API_KEY, version, 1, "bench")
        parts = request_parts(header, [encode(request, version)], is_flexible=is_flexible(type(request), version))
        frame = memoryview(await self.ask_raw(b"".join(parts)))
        _, at = read_response_header(frame, response, version)
        return decode(response, version, frame, at)[0]

    async def ask_raw(self, frame: bytes) -> bytes:
        self._writer.write(frame)
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.close()


async def commits_a_second(broker: Broker, *, seconds: float, peers: int = 16) -> float:
    """Every connection commits for a group of its own, one commit after the other."""
    deadline = time.monotonic() + seconds

    async def commit(number: int) -> int:
        peer, done = await Peer.connect(broker), 0
        partition = OffsetCommitRequestPartition(partition_index=number % PARTITIONS, committed_offset=number)
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
        request = OffsetCommitRequest(group_id=f"commits-{number}", topics=[topic])
        while time.monotonic() < deadline:
            answer = await peer.ask(request, OffsetCommitResponse, 8)
            if answer.topics[0].partitions[0].error_code == ErrorCode.NONE:
                done += 1
        peer.close()
        return done

    begun = time.monotonic()
    return sum(await asyncio.gather(*map(commit, range(peers)))) / (time.monotonic() - begun)


async def seconds_until_stable(broker: Broker, *, size: int, group: ClassicGroup | ConsumerGroup) -> float:
    peers = [await Peer.connect(broker) for _ in range(size)]
    begun = time.monotonic()
    members = asyncio.gather(*(group.live(number, peer) for number, peer in enumerate(peers)))
    await asyncio.wait_for(members, STABLE_S_MAX)
    for peer in peers:
        peer.close()
    return group.stable_s - begun


class ClassicGroup:
    """Members that join, wait for their assignment and heartbeat, until all of them are in one generation."""

    def __init__(self, size: int) -> None:
        self.stable_s = 0.0
        self._group_id = f"classic-{uuid.uuid4().hex}"
        self._generations = [0] * size

    async def live(self, number: int, peer: Peer) -> None:
        member_id = ""
        while not self.stable_s:
            joined = await self._join(peer, member_id)
            member_id = joined.member_id
            if joined.error_code != ErrorCode.NONE:
                continue
            assignments = [SyncGroupRequestAssignment(member_id=one.member_id) for one in joined.members]
            sync = SyncGroupRequest(
                group_id=self._group_id,
                generation_id=joined.generation_id,
                member_id=member_id,
                assignments=assignments if joined.leader == member_id else [],
            )
            synced = await peer.ask(sync, SyncGroupResponse, 3)
            if synced.error_code == ErrorCode.NONE:
                self._synced(number, joined.generation_id)
                await self._beat(peer, member_id, joined.generation_id)

    async def _join(self, peer: Peer, member_id: str) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED_TO_NOTHING)],
        )
        return await peer.ask(request, JoinGroupResponse, 5)

    async def _beat(self, peer: Peer, member_id: str, generation: int) -> None:
        request = HeartbeatRequest(group_id=self._group_id, generation_id=generation, member_id=member_id)
        while not self.stable_s:
            if (await peer.ask(request, HeartbeatResponse, 3)).error_code != ErrorCode.NONE:
                return
            await asyncio.sleep(HEARTBEAT_S)

    def _synced(self, number: int, generation: int) -> None:
        self._generations[number] = generation
        if self._generations.count(generation) == len(self._generations):
            self.stable_s = time.monotonic()


class ConsumerGroup:
    """Members of the new protocol, until every partition has an owner who confirmed it, and each member owns some."""

    def __init__(self, size: int) -> None:
        self.stable_s = 0.0
        self._group_id = f"consumer-{uuid.uuid4().hex}"
        self._owned_counts = [0] * size

    async def live(self, number: int, peer: Peer) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=str(uuid.uuid4()),
            rebalance_timeout_ms=30_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        while not self.stable_s:
            answer = await peer.ask(request, ConsumerGroupHeartbeatResponse, 1)
            if answer.error_code != ErrorCode.NONE:
                raise RuntimeError(f"{ErrorCode(answer.error_code).name}: {answer.error_message}")
            if request.topic_partitions is not None:
                self._owns(number, sum(len(topic.partitions) for topic in request.topic_partitions))
            request = ConsumerGroupHeartbeatRequest(
                group_id=self._group_id, member_id=request.member_id, member_epoch=answer.member_epoch
            )
            if answer.assignment is None:
                await asyncio.sleep(HEARTBEAT_S)
            else:
                request.topic_partitions = answer.assignment.topic_partitions

    def _owns(self, number: int, count: int) -> None:
        self._owned_counts[number] = count
        if sum(self._owned_counts) == PARTITIONS and min(self._owned_counts) > 0:
            self.stable_s = time.monotonic()


def transactions_a_second(broker: Broker, *, records: int, seconds: float) -> float:
    name = uuid.uuid4().hex
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(30)
    begun, done = time.monotonic(), 0
    while time.monotonic() - begun < seconds:
        producer.begin_transaction()
        for number in range(records):
            producer.produce(TOPIC, b"x" * 100, partition=number % 2)
        producer.commit_transaction(30)
        done += 1
    return done / (time.monotonic() - begun)


def prepare(broker: Broker) -> None:
    """The topics exist and the coordinators are awake before anything is timed."""
    broker.start(answers)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1)])[TOPIC].result(60)
    transactions_a_second(broker, records=1, seconds=0.5)
    # Apache Kafka makes the topic of the groups when a client looks for a coordinator, and is not ready at once.
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "prepare"})
    deadline = time.monotonic() + READY_S_MAX
    while True:
        try:
            consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
            break
        except KafkaException as wrong:
            if time.monotonic() > deadline:
                sys.exit(f"{broker.name} takes no offset commits: {wrong}")
            time.sleep(0.1)
    consumer.close()


def figures(seconds: float, members: int) -> dict[tuple[str, str], Callable[[Broker], float]]:
    def commits(broker: Broker) -> float:
        return asyncio.run(commits_a_second(broker, seconds=seconds))

    def stable(kind: type[ClassicGroup | ConsumerGroup], broker: Broker) -> float:
        return asyncio.run(seconds_until_stable(broker, size=members, group=kind(members)))

    def transactions(records: int, broker: Broker) -> float:
        return transactions_a_second(broker, records=records, seconds=seconds)

    return {
        ("offset commits", "1/s"): commits,
        (f"{members} members stable", "s"): partial(stable, ClassicGroup),
        (f"{members} members, new protocol", "s"): partial(stable, ConsumerGroup),
        ("transactions of 1", "1/s"): partial(transactions, 1),
        ("transactions of 10", "1/s"): partial(transactions, 10),
        ("transactions of 100", "1/s"): partial(transactions, 100),
    }


def report(brokers: list[Broker], taken: dict[tuple[str, str], dict[str, list[float]]]) -> str:
    first, second = brokers
    lines = [f"{'figure':<28}{first.name:>10}{second.name:>10} {'unit':<5}{'ratio':>7}"]
    for (figure, unit), sides in taken.items():
        mine, theirs = (statistics.median(sides[broker.name]) for broker in brokers)
        ratio = theirs / mine if unit == LOWER_IS_BETTER else mine / theirs
        digits = 3 if unit == LOWER_IS_BETTER else 0
        lines.append(f"{figure:<28}{mine:>10.{digits}f}{theirs:>10.{digits}f} {unit:<5}{ratio:>7.2f}")
    return "\n".join(lines) + "\n"


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--ours", default=OURS, help="the command of the first side; {port}, {dir} and {python} are known")
    ask.add_argument("--rounds", type=int, default=5)
    ask.add_argument("--seconds", type=float, default=3.0, help="for each figure that is a rate")
    ask.add_argument("--only", default="", help="a part of the figures' names")
    ask.add_argument("--members", type=int, default=50)
    given = ask.parse_args()
    taken: dict[tuple[str, str], dict[str, list[float]]] = {}
    with two_brokers(given.ours) as brokers:
        for broker in brokers:
            prepare(broker)
        for turn in range(given.rounds):
            for figure, measure in figures(given.seconds, given.members).items():
                if given.only not in figure[0]:
                    continue
                for broker in brokers if turn % 2 else brokers[::-1]:
                    taken.setdefault(figure, {}).setdefault(broker.name, []).append(measure(broker))
            sys.stderr.write(f"round {turn + 1} of {given.rounds} done\n")
        sys.stdout.write(report(brokers, taken))


if __name__ == "__main__":
    main()

"""Many clients that send noise, one at whose every answer somebody looks: `python -m tests.hostile.fuzz --frames N`.

Every frame is answered, or its connection closed, in time. The broker says nothing of failures of its own, and the
neighbour reads what it wrote.
"""

from __future__ import annotations

import argparse
import itertools
import re
import selectors
import socket
import struct
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import moldau
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.embedded import EmbeddedBroker
from moldau.wire.api import ApiKey
from moldau.wire.codec import decode
from moldau.wire.frame import read_response_header
from moldau.wire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeConfigsResponse,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from moldau.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from moldau.wire.messages.offset_fetch import OffsetFetchRequestTopic
from moldau.wire.schema import Message
from tests.differential.batches import batch
from tests.hostile.attacker import ANSWERS, Address, Attacker, framed
from tests.hostile.noise import GROUPS, TOPICS, TRANSACTIONS, Noise
from tests.hostile.siege import fetch_request, produce_request

CLIENTS = 24
ANSWER_S_MAX = 20.0
WAITING_S_MAX = 2.0
# Produce may want no answer, Fetch waits for records, JoinGroup and SyncGroup for others, who may never come.
MAY_BE_SILENT = {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP}
SHOWN_BYTES_MAX = 4_000
REMEMBERED_FRAMES = 10_000
OWN = "neighbours-own"
FAILURE = re.compile(r"Traceback|this broker failed|Exception in|never retrieved|ERROR")


@dataclass(slots=True)
class Result:
    frames: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    closed: Counter[str] = field(default_factory=Counter)
    waited: Counter[str] = field(default_factory=Counter)
    trouble: list[str] = field(default_factory=list)
    neighbour_answers: int = 0
    took_s: float = 0.0


class Neighbour:
    """A client that produces, reads back, commits and asks, and looks at every byte of the answers."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.answers = 0
        self.trouble: list[str] = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.client = Attacker(address)

    def prepare(self) -> bytes:
        """Its topic, with every setting that noise might change for all topics; gives the topic's id."""
        settings = {"min.insync.replicas": "1", "max.message.bytes": "1000000", "retention.ms": "-1"}
        settings |= {"cleanup.policy": "delete", "compression.type": "producer", "segment.bytes": "10000000"}
        settings |= {"message.timestamp.type": "CreateTime", "retention.bytes": "-1", "flush.messages": str(2**63 - 1)}
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in settings.items()]
        topic = CreatableTopic(name=OWN, num_partitions=1, replication_factor=1, configs=configs)
        made = self.client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7)
        assert made.topics[0].error_code == 0, made
        deadline = time.monotonic() + 20
        while True:
            self.client.ask(FindCoordinatorRequest(key=OWN), 0)
            if not self.commit(0):
                return bytes(made.topics[0].topic_id)
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def commit(self, offset: int) -> int:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = [OffsetCommitRequestTopic(name=OWN, partitions=[partition])]
        answer = self.client.ask(OffsetCommitRequest(group_id=OWN, topics=topics), 7)
        return int(answer.topics[0].partitions[0].error_code)

    def run(self) -> None:
        try:
            versions = self.client.ask(ApiVersionsRequest(client_software_name="n", client_software_version="1"), 3)
            for turn in itertools.count():
                if self.stopping.is_set():
                    return
                self.check(turn, versions)
                self.answers += 6
        except Exception as wrong:
            where = traceback.extract_tb(wrong.__traceback__)[-1]
            self.trouble.append(f"the neighbour, after {self.answers} answers: {wrong!r} in {where.line}")

    def check(self, turn: int, versions: Any) -> None:
        client = self.client
        records = batch([b"record %d" % turn], timestamp=int(time.time() * 1000))
        stored = client.ask(produce_request(OWN, records), 9).responses[0].partition_responses[0]
        assert (stored.error_code, stored.base_offset) == (0, turn), stored
        wanted = fetch_request(OWN)
        wanted.topics[0].partitions[0].fetch_offset = turn
        read = client.ask(wanted, 12).responses[0].partitions[0]
        assert read.error_code == 0, read
        assert bytes(read.records)[17:] == records[17:], "not the records that were stored"
        code = self.commit(turn)
        assert code == 0, ErrorCode(code)
        topics = [OffsetFetchRequestTopic(name=OWN, partition_indexes=[0])]
        fetched = client.ask(OffsetFetchRequest(group_id=OWN, topics=topics), 5).topics[0].partitions[0]
        assert (fetched.error_code, fetched.committed_offset) == (0, turn), fetched
        asked = client.ask(ApiVersionsRequest(client_software_name="n", client_software_version="1"), 3)
        assert asked.api_keys == versions.api_keys, asked  # features come and go
        described = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=OWN)]), 12).topics[0]
        assert (described.error_code, described.name, len(described.partitions)) == (0, OWN, 1), described


@dataclass(frozen=True, slots=True)
class Asked:
    """A frame under way."""

    cls: type[Message]
    version: int
    correlation_id: int
    key: int

    @property
    def may_be_silent(self) -> bool:
        return self.key in MAY_BE_SILENT


@dataclass(slots=True)
class Client:
    """One connection with a few frames under way."""

    socket: socket.socket
    port: int
    deadline: float = 0.0
    pending: deque[Asked] = field(default_factory=deque)
    received: bytearray = field(default_factory=bytearray)

    def be_patient(self) -> None:
        """The next answer may take that long."""
        self.deadline = time.monotonic() + (WAITING_S_MAX if self.pending[0].may_be_silent else ANSWER_S_MAX)


class Fuzz:
    def __init__(self, address: Address, noise: Noise, frames: int) -> None:
        self.address, self.noise, self.frames = address, noise, frames
        self.result = Result()
        self.selector = selectors.DefaultSelector()
        self.correlation_ids = itertools.count(1)
        self.sent: dict[int, str] = {}

    def run(self) -> Result:
        began = time.monotonic()
        for _ in range(CLIENTS):
            self.next_frames(None)
        while self.selector.get_map():
            for key, _ in self.selector.select(0.1):
                self.receive(key.data)
            self.give_up_late_ones()
        self.selector.close()
        self.result.took_s = time.monotonic() - began
        return self.result

    def next_frames(self, client: Client | None) -> None:
        """Another frame, or a few at once, in one piece or in two."""
        if self.result.frames >= self.frames:
            if client is not None:
                self.drop(client)
            return
        if client is None:
            connected = socket.create_connection(self.address, ANSWER_S_MAX)
            client = Client(connected, connected.getsockname()[1])
            self.selector.register(connected, selectors.EVENT_READ, client)
        chance = self.noise.chance
        stream = b"".join(self.frame_for(client) for _ in range(chance.choice((1, 1, 1, 1, 2, 5))))
        client.be_patient()
        cut = chance.randrange(len(stream)) if chance.random() < 0.2 else len(stream)
        try:
            client.socket.sendall(stream[:cut])
            client.socket.sendall(stream[cut:])
        except OSError:
            self.ended(client)

    def frame_for(self, client: Client) -> bytes:
        self.result.frames += 1
        correlation_id = next(self.correlation_ids)
        cls, version, content = self.noise.content(correlation_id)
        client.pending.append(Asked(cls, version, correlation_id, *struct.unpack_from(">h", content)))
        self.sent[correlation_id] = f"{cls.__name__} v{version}: {content[:SHOWN_BYTES_MAX].hex()}"
        self.sent.pop(correlation_id - REMEMBERED_FRAMES, None)
        return framed(content)

    def receive(self, client: Client) -> None:
        try:
            more = client.socket.recv(1 << 20)
        except OSError:
            more = b""
        if not more:
            self.ended(client)
            return
        client.received += more
        while len(client.received) >= 4:
            (size,) = struct.unpack_from(">i", client.received)
            if len(client.received) < 4 + size:
                return
            content = bytes(client.received[4 : 4 + size])
            del client.received[: 4 + size]
            self.answered(client, content)
        if client.pending:
            client.be_patient()
        else:
            self.next_frames(client)

    def answered(self, client: Client, content: bytes) -> None:
        (correlation_id,) = struct.unpack_from(">i", content)
        while client.pending:
            asked = client.pending.popleft()
            if asked.correlation_id == correlation_id:
                self.learn(asked, content)
                return
            if asked.key != ApiKey.PRODUCE:
                self.trouble(asked, f"was passed over by the answer to {correlation_id}")
        self.result.trouble.append(f"nobody asked for {correlation_id}: {content[:100].hex()}")

    def learn(self, asked: Asked, content: bytes) -> None:
        self.result.answered[asked.cls.__name__] += 1
        kind = ANSWERS[asked.cls.API_KEY]
        try:
            _, at = read_response_header(memoryview(content), kind, asked.version)
            answer = decode(kind, asked.version, content, at)[0]
        except ProtocolViolation:
            return  # the answer to another version, for a damaged one was asked for
        if kind is not DescribeConfigsResponse:  # the broker's own settings are the neighbour's too
            self.noise.learn(answer)

    def ended(self, client: Client) -> None:
        self.result.closed.update(asked.cls.__name__ for asked in client.pending)
        self.drop(client)
        self.next_frames(None)

    def give_up_late_ones(self) -> None:
        now = time.monotonic()
        for client in [key.data for key in self.selector.get_map().values() if key.data.deadline < now]:
            self.result.waited.update(asked.cls.__name__ for asked in client.pending)
            if client.pending and not client.pending[0].may_be_silent:
                self.trouble(client.pending[0], "was not answered")
            self.drop(client)
            self.next_frames(None)

    def trouble(self, asked: Asked, what: str) -> None:
        self.result.trouble.append(f"{self.sent[asked.correlation_id]} {what}")

    def drop(self, client: Client) -> None:
        self.selector.unregister(client.socket)
        client.socket.close()


def fuzz(broker: EmbeddedBroker, *, frames: int, seed: int) -> Result:
    """Trouble, if any, is in the result."""
    address = broker.host, broker.port
    neighbour = Neighbour(address)
    own_id = neighbour.prepare()
    with Attacker(address) as client:
        topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in TOPICS]
        client.ask(CreateTopicsRequest(topics=topics, timeout_ms=20_000), 7)
        for key_type, key in [(0, key) for key in GROUPS] + [(1, key) for key in TRANSACTIONS]:
            client.ask(FindCoordinatorRequest(key=key, key_type=key_type), 2)
        known = client.ask(MetadataRequest(topics=None), 12).topics
    keep_off: set[str | bytes] = {OWN, own_id}
    for topic in known:
        if topic.is_internal:
            keep_off |= {topic.name, bytes(topic.topic_id)}
    fuzzing = Fuzz(address, Noise(seed, keep_off=frozenset(keep_off)), frames)
    neighbour.thread.start()
    result = fuzzing.run()
    neighbour.stopping.set()
    neighbour.thread.join()
    neighbour.client.socket.close()
    result.trouble += neighbour.trouble
    result.neighbour_answers = neighbour.answers
    for line in broker.output().splitlines():
        if FAILURE.search(line):
            found = re.search(r"correlation id (\d+)", line)
            result.trouble.append(f"{line}\n    {fuzzing.sent.get(int(found[1]), '') if found else ''}")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="where to keep what the broker printed")
    options = parser.parse_args(arguments)
    with moldau.run() as broker:
        result = fuzz(broker, frames=options.frames, seed=options.seed)
        if options.output is not None:
            options.output.write_text(broker.output())
    print(
        f"{result.frames} frames in {result.took_s:.0f} s, seed {options.seed}: {result.answered.total()} answered, ",
        end="",
    )
    print(
        f"{result.closed.total()} closed, {result.waited.total()} waited; {result.neighbour_answers} of the neighbour"
    )
    for line in result.trouble[:40]:
        print(line)
    return 1 if result.trouble else 0


if __name__ == "__main__":
    raise SystemExit(main())

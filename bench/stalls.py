"""How long one client holds up another: the longest answer to ApiVersions and to a Produce while somebody is busy.

    python -m bench.stalls                          every deed, 3,000 and 10,000 partitions (about 2 minutes)
    python -m bench.stalls --partitions 500         a quick try
    python -m bench.stalls --bootstrap HOST:PORT    against a broker that runs already

Two processes of their own send one request after the other, each on its own connection, and note how long each answer
took; the client that does the deed is a third one. `quiet` is the same without any deed: what the machine itself adds.
`loop` is the longest turn of the broker's loop in processor time, for which nobody else on the machine is to blame.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from tempfile import TemporaryDirectory
from typing import Any

from bench.prober import SETTLE_S, Answers, probe
from bench.watched_broker import Watched, described, watched
from moldau.wire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeLogDirsRequest,
    MetadataRequest,
    ProduceRequest,
)
from moldau.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.delete_topics import DeleteTopicState
from moldau.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.differential.batches import batch
from tests.hostile.attacker import Address, Attacker, frame

ANSWER_S_MAX = 300.0
PROBED = "probed"
BIG = "big"


class Probers:
    """Both probers; `during` is what they saw while a deed was done."""

    def __init__(self, address: Address) -> None:
        partition = PartitionProduceData(index=0, records=batch([b"x" * 100], timestamp=int(time.time() * 1000)))
        produce = ProduceRequest(
            acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=PROBED, partition_data=[partition])]
        )
        requests = [frame(ApiVersionsRequest(), 0), frame(produce, 9)]
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        for request in requests:
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.Process(target=probe, args=(address, request, theirs), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def figures(self) -> list[Answers]:
        for pipe in self._pipes:
            pipe.send(True)
        return [pipe.recv() for pipe in self._pipes]

    def during(self, deed: Callable[[], None]) -> tuple[float, list[Answers]]:
        time.sleep(SETTLE_S)
        self.figures()
        begun = time.perf_counter()
        deed()
        took_s = time.perf_counter() - begun
        time.sleep(SETTLE_S)
        return took_s, self.figures()

    def stop(self) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.send(False)
            process.join()


class Client:
    """The one who is busy."""

    def __init__(self, address: Address) -> None:
        self._client = Attacker(address, wait_s=ANSWER_S_MAX)

    def _ask(self, request: Any, version: int) -> Any:
        """Without decoding the answer: the largest would keep this process busy longer than the broker."""
        self._client.tell(request, version)
        return self._client.answer()

    def create(self, *names: str, partitions: int) -> None:
        topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
        self._ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)

    def extend(self, name: str, count: int) -> None:
        wanted = CreatePartitionsTopic(name=name, count=count, assignments=None)
        self._ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=60_000), 3)

    def delete(self, *names: str) -> None:
        topics = [DeleteTopicState(name=name) for name in names]
        self._ask(DeleteTopicsRequest(topics=topics, timeout_ms=60_000), 6)

    def metadata(self, *names: str) -> None:
        self._ask(MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names] or None), 12)

    def describe(self, name: str) -> None:
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)], response_partition_limit=2_000)
        self._ask(request, 0)

    def directories(self) -> None:
        self._ask(DescribeLogDirsRequest(topics=None), 4)

    def produce_to_each(self, name: str, partitions: int) -> None:
        """One request that writes a batch to every partition."""
        records = batch([b"x" * 100], timestamp=int(time.time() * 1000))
        data = [PartitionProduceData(index=index, records=records) for index in range(partitions)]
        request = ProduceRequest(
            acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=name, partition_data=data)]
        )
        self._ask(request, 9)


def deeds(client: Client, partitions: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """In this order: each finds what the ones before it made."""
    many = [f"small-{number}" for number in range(partitions // 10)]
    yield "quiet", lambda: time.sleep(1)
    yield f"CreateTopics, {partitions:,} partitions", lambda: client.create(BIG, partitions=partitions)
    yield f"Metadata, {partitions:,} partitions", lambda: client.metadata(BIG)
    yield "DescribeTopicPartitions, a page of 2,000", lambda: client.describe(BIG)
    yield f"DescribeLogDirs, {partitions:,} partitions", client.directories
    yield f"CreatePartitions, {partitions:,} more", lambda: client.extend(BIG, partitions * 2)
    yield f"Metadata, {2 * partitions:,} partitions", client.metadata
    yield f"CreateTopics, {len(many):,} topics", lambda: client.create(*many, partitions=1)
    yield f"Produce to {partitions:,} partitions", lambda: client.produce_to_each(BIG, partitions)
    yield "housekeeping of them all, 12 s", lambda: time.sleep(12)
    yield f"DeleteTopics, {len(many):,} topics", lambda: client.delete(*many)
    yield f"DeleteTopics, {2 * partitions:,} partitions", lambda: client.delete(BIG)


@contextmanager
def broker(bootstrap: str | None, data_dir: str | None) -> Iterator[tuple[Address, Watched | None]]:
    if bootstrap is not None:
        host, _, port = bootstrap.rpartition(":")
        yield (host, int(port)), None
        return
    often = {
        "log.retention.check.interval.ms": 2_000,
        "log.flush.offset.checkpoint.interval.ms": 3_000,
        "producer.id.expiration.check.interval.ms": 2_500,
    }
    with TemporaryDirectory(dir=data_dir) as folder, watched(folder, often) as running:
        yield running.address, running


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def measure(address: Address, running: Watched | None, partitions: int) -> None:
    client = Client(address)
    client.create(PROBED, partitions=1)
    probers = Probers(address)
    say(f"| deed | took | ApiVersions, longest of n | Produce, longest of n | loop | callback |\n|{'---|' * 6}")
    try:
        for name, deed in deeds(client, partitions):
            begun_s = time.monotonic()
            took_s, (versions, produced) = probers.during(deed)
            hold = " |" if running is None else described(running.longest(begun_s))
            say(
                f"| {name} | {took_s:.2f} s | {versions.longest_ms:.0f} ms of {versions.count:,} "
                f"| {produced.longest_ms:.0f} ms of {produced.count:,} | {hold} |"
            )
    finally:
        probers.stop()
        client.delete(PROBED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, nargs="+", default=[3_000, 10_000])
    parser.add_argument(
        "--data-dir", help="where a folder for the data is made; a tmpfs shows the broker without a disk"
    )
    parser.add_argument("--bootstrap", help="a broker that runs already, in place of one of our own")
    options = parser.parse_args()
    for partitions in options.partitions:
        with broker(options.bootstrap, options.data_dir) as (address, running):
            measure(address, running, partitions)


if __name__ == "__main__":
    main()

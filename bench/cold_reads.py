"""How long a client that reads cold data holds up others, and how fast it reads.

    python -m bench.cold_reads              2 GB, not in the page cache (about a minute)
    python -m bench.cold_reads --gb 0.5     a quick try

The data is pushed out of the page cache file by file, so that nothing else on the machine becomes slower.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import moldau
from bench.prober import Prober
from bench.stalls import say
from moldau.coordinator.long_work import chunks
from moldau.wire.messages import CreateTopicsRequest, FetchRequest, ProduceRequest
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.differential.batches import batch
from tests.hostile.attacker import Attacker

TOPIC = "cold"
TOPIC_OF_MANY = "cold-many"
PARTITIONS = 1_000
BATCHES = 30
RECORD_BYTES = 500_000
FETCH_BYTES = 8 << 20
ANSWER_S_MAX = 120.0


def fill(client: Attacker, count: int) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
    records = batch([os.urandom(RECORD_BYTES)], timestamp=int(time.time() * 1000))
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
    )
    for _ in range(count):
        client.tell(request, 9)
        client.answer()


def fill_many(client: Attacker) -> None:
    """Some records in each of many partitions."""
    topic = CreatableTopic(name=TOPIC_OF_MANY, num_partitions=PARTITIONS, replication_factor=1)
    client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
    for _ in range(BATCHES):
        for some in chunks(range(PARTITIONS), 100):
            rows = [
                PartitionProduceData(index=index, records=batch([os.urandom(3_000)], timestamp=int(time.time() * 1000)))
                for index in some
            ]
            data = TopicProduceData(name=TOPIC_OF_MANY, partition_data=rows)
            client.tell(ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[data]), 9)
            client.answer()


def read_many(client: Attacker) -> None:
    """One batch from the middle of each partition, all by one request."""
    wanted = [
        FetchPartition(partition=index, fetch_offset=BATCHES // 2, partition_max_bytes=4_000)
        for index in range(PARTITIONS)
    ]
    topic = FetchTopic(topic=TOPIC_OF_MANY, partitions=wanted)
    client.tell(FetchRequest(max_wait_ms=1_000, min_bytes=1, max_bytes=50 << 20, topics=[topic]), 11)
    answer = client.answer()
    assert isinstance(answer, bytes)
    assert len(answer) > PARTITIONS * 3_000


def forget(folder: Path) -> None:
    """Nothing of these files is in the page cache any more."""
    for path in folder.rglob(f"{TOPIC}*-*/*"):
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def read(client: Attacker, count: int) -> None:
    offset = 0
    while offset < count:
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        topic = FetchTopic(topic=TOPIC, partitions=[wanted])
        request = FetchRequest(max_wait_ms=1_000, min_bytes=1, max_bytes=FETCH_BYTES, topics=[topic])
        client.tell(request, 11)
        answer = client.answer()
        assert isinstance(answer, bytes)
        offset += max(1, len(answer) // RECORD_BYTES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=2.0)
    options = parser.parse_args()
    count = int(options.gb * 1e9 / RECORD_BYTES)
    with tempfile.TemporaryDirectory() as folder, moldau.run(data_dir=folder) as running:
        address = running.host, running.port
        client = Attacker(address, wait_s=ANSWER_S_MAX)
        fill(client, count)
        fill_many(client)
        with Prober(address) as prober:
            for name in ("warm", "cold", "cold", "warm"):
                if name == "cold":
                    forget(Path(folder))
                took_s, seen = prober.during(lambda: read(client, count))
                rate = count * RECORD_BYTES / took_s / 1e6
                say(f"| {name} | {rate:.0f} MB/s | {seen.longest_ms:.0f} ms of {seen.count:,} |")
                if name == "cold":
                    forget(Path(folder))
                took_s, seen = prober.during(lambda: read_many(client))
                say(f"| {name}, {PARTITIONS:,} partitions | {took_s * 1000:.0f} ms | {seen.longest_ms:.0f} ms |")


if __name__ == "__main__":
    main()

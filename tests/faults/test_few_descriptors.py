"""Far more partitions than descriptors: each can be written to and read, and the log says nothing of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moldau.embedded import EmbeddedBroker
from moldau.embedded.process import BrokerProcess
from moldau.wire.messages import CreateTopicsRequest, FetchRequest, ProduceRequest
from moldau.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.differential.batches import batch
from tests.hostile.attacker import Attacker

PARTITIONS = int(os.environ.get("MOLDAU_TEST_PARTITIONS", "3000"))
DESCRIPTORS = int(os.environ.get("MOLDAU_TEST_DESCRIPTORS", "256"))
START_S_MAX = 120.0
ANSWER_S_MAX = 120.0


@contextmanager
def limited_broker(folder: Path, descriptors: int) -> Iterator[EmbeddedBroker]:
    scratch = folder / "scratch"
    scratch.mkdir()
    command = ["prlimit", f"--nofile={descriptors}:{descriptors}", sys.executable, "-P", "-m", "moldau", "start"]
    command += ["--host", "127.0.0.1", "--port", "0", "--data-dir", str(folder / "data"), "--stop-with-stdin"]
    process = BrokerProcess(command, scratch=scratch)
    process.start(timeout_s=START_S_MAX)
    with EmbeddedBroker(process, data_dir=folder / "data") as broker:
        yield broker
    process.dispose()


def produce_to(indexes: range, value: bytes) -> ProduceRequest:
    data = [
        PartitionProduceData(index=index, records=batch([b"%s %d" % (value, index)], timestamp=1_700_000_000_000))
        for index in indexes
    ]
    return ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name="many", partition_data=data)])


def fetch_from(indexes: range) -> FetchRequest:
    wanted = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=-1)
        for index in indexes
    ]
    topics = [FetchTopic(topic="many", partitions=wanted)]
    return FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=50 << 20, topics=topics)


def read_all(client: Attacker, indexes: range) -> dict[int, bytes]:
    answer = client.ask(fetch_from(indexes), 11)
    return {each.partition_index: bytes(each.records or b"") for each in answer.responses[0].partitions}


def test_every_partition_is_written_and_read_with_few_descriptors(tmp_path: Path) -> None:
    every = range(PARTITIONS)
    with limited_broker(tmp_path, DESCRIPTORS) as broker:
        with Attacker((broker.host, broker.port), wait_s=ANSWER_S_MAX) as client:
            for first in range(0, PARTITIONS, 10_000):
                # A request may ask for 10,000 partitions; more of them are added to the topic.
                count = min(PARTITIONS, first + 10_000)
                assert make(client, first, count) == 0
            for value in (b"first", b"second"):
                answer = client.ask(produce_to(every, value), 9)
                assert {each.error_code for each in answer.responses[0].partition_responses} == {0}
            read = read_all(client, every)
            assert all(b"first %d" % index in read[index] and b"second %d" % index in read[index] for index in every)
            assert len(os.listdir(f"/proc/{broker.pid}/fd")) < DESCRIPTORS
        output = broker.output()
        assert "Too many open files" not in output
        assert "no descriptors left" not in output
    with limited_broker(tmp_path, DESCRIPTORS) as broker, Attacker((broker.host, broker.port)) as client:
        read = read_all(client, every)
        assert all(b"second %d" % index in read[index] for index in every), "also after a restart"


def make(client: Attacker, first: int, count: int) -> int:
    if first == 0:
        topic = CreatableTopic(name="many", num_partitions=count, replication_factor=1)
        return int(client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7).topics[0].error_code)
    wanted = CreatePartitionsTopic(name="many", count=count, assignments=None)
    answer = client.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=60_000), 3)
    return int(answer.results[0].error_code)

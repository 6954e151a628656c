"""What was decided when a broker is stopped is done when it has stopped."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import moldau
from moldau.core.errors import ErrorCode
from moldau.embedded.requests import describe
from moldau.store.sqlite import FILE_NAME
from moldau.wire.messages import ApiVersionsRequest, CreateTopicsRequest, MetadataRequest, ProduceRequest
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.delete_topics import DeleteTopicsRequest
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.cluster.asking import until
from tests.differential.batches import batch
from tests.hostile.attacker import CLOSED, Attacker

STOP_S_MAX = 60.0  # a busy machine makes a thousand folders in half of it


def is_listening(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, STOP_S_MAX):
            return True
    except ConnectionError:
        return False


def test_a_deletion_that_is_being_written_takes_its_folders_along(tmp_path: Path) -> None:
    broker = moldau.run(data_dir=tmp_path)
    address = (broker.host, broker.port)
    with (
        ThreadPoolExecutor(1) as thread,
        closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as metadata,
        Attacker(address) as deleting,
        Attacker(address) as other,
    ):
        broker.create_topic("orders", partitions=3)
        metadata.execute("BEGIN IMMEDIATE")  # a disk that takes its time
        deleting.tell(DeleteTopicsRequest(topic_names=["orders"], timeout_ms=60_000), 2)
        for _ in range(3):
            other.ask(ApiVersionsRequest(), 0)  # by then the deletion was read, too
        stopping = thread.submit(broker.stop)
        while is_listening(address):
            pass
        metadata.execute("ROLLBACK")
        stopping.result(STOP_S_MAX)
    left = sorted(path.name for path in tmp_path.glob("orders-*") if not path.name.endswith("-delete"))
    assert left == [], "no start would ever delete them"


def test_who_asked_for_much_before_the_stop_gets_the_whole_answer_and_it_is_true(tmp_path: Path) -> None:
    names = [f"orders-{number}" for number in range(1_000)]
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    broker = moldau.run(data_dir=tmp_path)
    address = (broker.host, broker.port)
    with (
        ThreadPoolExecutor(1) as thread,
        Attacker(address, wait_s=STOP_S_MAX) as creating,
        Attacker(address) as other,
    ):
        creating.tell(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
        while not any(tmp_path.glob("orders-*")):
            other.ask(ApiVersionsRequest(), 0)
        stopping = thread.submit(broker.stop)
        answer = creating.answer_to(CreateTopicsRequest, 7)
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.NONE] * len(names)
        assert creating.answer() == CLOSED
        stopping.result(STOP_S_MAX)
    broker.restart()
    try:
        with Attacker((broker.host, broker.port)) as client:
            known = {topic.name: topic.error_code for topic in client.ask(MetadataRequest(topics=None), 1).topics}
    finally:
        broker.stop()
    assert known == dict.fromkeys(names, ErrorCode.NONE)


def test_records_that_no_other_replica_takes_do_not_hold_up_a_stop() -> None:
    data = [PartitionProduceData(index=0, records=batch([b"value"], timestamp=0))]
    topics = [TopicProduceData("orders", partition_data=data)]
    with moldau.run(brokers=2) as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=2, config={"min.insync.replicas": 2})
        leader = cluster.brokers[cluster.leader_of("orders")]
        (follower,) = (broker for broker in cluster.brokers.values() if broker is not leader)
        (segment,) = leader.data_dir.glob("orders-0/*.log")
        with Attacker((leader.host, leader.port)) as producer:
            os.kill(follower.pid, signal.SIGSTOP)
            producer.tell(ProduceRequest(acks=-1, timeout_ms=120_000, topic_data=topics), 9)
            until(lambda: segment.stat().st_size > 0)
            follower.kill()
            until(lambda: len(describe(leader.address, None).broker_ids) == 1)
            stopped_s = time.monotonic()
            leader.stop()
            assert time.monotonic() - stopped_s < STOP_S_MAX / 2, "it waited for the replica"
            (row,) = producer.answer_to(ProduceRequest, 9).responses[0].partition_responses
            assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

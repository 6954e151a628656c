"""A broker and a lag monitor with clients that do what each panel shows: traffic, errors, pauses, lag."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

import moldau
from moldau.client.cluster import Cluster
from moldau.client.groups.committed import commit_offsets
from moldau.core.ids import TopicPartition as Place
from tests.cli.conftest import run_tool
from tests.cli.monitors import file_of, running

TOPIC, GROUP, STUCK = "orders", "billing", "stuck"
PAUSE_S = 0.2
QUOTA = "producer_byte_rate=2000"


@dataclass(frozen=True, slots=True)
class World:
    broker: str
    """HOST:PORT of its metrics."""
    monitor: str


@contextmanager
def world(folder: Path) -> Iterator[World]:
    with moldau.run(metrics=True) as broker:
        servers = broker.bootstrap_servers
        broker.create_topic(TOPIC, partitions=3)
        limited = ("configs", "--alter", "--entity-type", "clients", "--entity-name", "slow", "--add-config", QUOTA)
        assert run_tool(servers, *limited).returncode == 0
        _leave_a_group_behind(servers)
        config = file_of(folder, servers, f"({GROUP}|{STUCK})", "[rules]\nintervals = 2\nmin-distance = 0")
        with running(servers, "--config", config) as monitor, _traffic(servers):
            assert broker.metrics_url is not None
            yield World(broker.metrics_url.split("/")[2], monitor.url.split("/")[2])


def _leave_a_group_behind(servers: str) -> None:
    """One that committed the same offset twice and is gone: it is in trouble."""
    _send(servers, "once", 10)
    with Cluster(servers, client_id="test", timeout_s=20) as cluster:  # which waits for the coordinator
        for _ in range(2):
            assert set(commit_offsets(cluster, STUCK, {Place(TOPIC, 0): 1}).values()) == {0}


def _send(servers: str, client_id: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "client.id": client_id, "linger.ms": 0})
    for number in range(count):
        producer.produce(TOPIC, b"x" * 100, partition=number % 3)
    assert producer.flush(20) == 0


@contextmanager
def _traffic(servers: str) -> Iterator[None]:
    """Until the end: producers, one of them over its quota, transactions, a group that reads, and what is no client."""
    ended = threading.Event()
    work = (_produce, _pause, _transact, _consume, _knock)
    threads = [threading.Thread(target=each, args=(servers, ended)) for each in work]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


def _produce(servers: str, ended: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": servers, "client.id": "shop", "linger.ms": 0})
    number = 0
    while not ended.wait(PAUSE_S):
        number += 1
        producer.produce(TOPIC, b"x" * 100, partition=number % 3)
        producer.poll(0)
    producer.flush(10)


def _pause(servers: str, ended: threading.Event) -> None:
    """Far over the quota of its client id, so that the broker has it pause."""
    producer = Producer({"bootstrap.servers": servers, "client.id": "slow", "linger.ms": 0})
    while not ended.wait(PAUSE_S):
        producer.produce(TOPIC, b"x" * 4_000, partition=0)
        producer.poll(0)
    producer.purge()
    producer.flush(10)


def _transact(servers: str, ended: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": servers, "client.id": "bank", "transactional.id": "bank"})
    producer.init_transactions(20)
    while not ended.wait(PAUSE_S):
        producer.begin_transaction()
        producer.produce(TOPIC, b"y", partition=1)
        producer.commit_transaction(20)


def _knock(servers: str, ended: threading.Event) -> None:
    """Speaks another protocol, now and then."""
    host, _, port = servers.partition(":")
    while not ended.wait(PAUSE_S):
        with socket.create_connection((host, int(port)), 10) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            stranger.recv(1)


def _consume(servers: str, ended: threading.Event) -> None:
    """Reads, commits, and asks for the offsets of a partition that there is not."""
    settings = {"bootstrap.servers": servers, "client.id": "reader", "group.id": GROUP, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([TOPIC])
    try:
        while not ended.is_set():
            record = consumer.poll(PAUSE_S)
            if record is not None and record.error() is None:
                consumer.commit(record, asynchronous=False)
                try:
                    consumer.commit(offsets=[TopicPartition(TOPIC, 99, 1)], asynchronous=False)
                except KafkaException:
                    continue
    finally:
        consumer.close()

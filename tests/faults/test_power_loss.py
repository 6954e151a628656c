"""Power loss cut a log below where a consumer stands: it must hear of it, not skip what is written there next."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

import moldau
from tests.apache_kafka import free_ports
from tests.clients import toolchains
from tests.clients.drivers import LineProcess
from tests.faults.clients import create_topic, write
from tests.faults.test_damage import batch_positions, log_of

TOPIC = "t"
WAIT_S_MAX = 60.0
ABOUT_THE_CONNECTION = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


def consumer_of(bootstrap: str, reset: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "auto.offset.reset": reset,
            "enable.auto.commit": False,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    return consumer


def until(consumer: Consumer, count: int) -> list[Message]:
    """So many messages or errors that are not about the connection."""
    found: list[Message] = []
    deadline = time.monotonic() + WAIT_S_MAX
    while len(found) < count:
        assert time.monotonic() < deadline, [message.value() for message in found]
        message = consumer.poll(0.1)
        error = None if message is None else message.error()
        if message is not None and (
            error is None or error.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
        ):
            found.append(message)
    return found


def cut(data_dir: Path, batches: int) -> None:
    log = log_of(data_dir / f"{TOPIC}-0")
    os.truncate(log, batch_positions(log)[batches])


@pytest.mark.parametrize("reset", ["error", "earliest"])
def test_a_consumer_that_is_ahead_notices(tmp_path: Path, reset: str) -> None:
    (port,) = free_ports(1)
    broker = moldau.run(data_dir=tmp_path, port=port)
    try:
        create_topic(broker.bootstrap_servers, TOPIC)
        write(broker.bootstrap_servers, TOPIC, [b"old %d" % number for number in range(20)])
        consumer = consumer_of(broker.bootstrap_servers, reset)
        assert [each.value() for each in until(consumer, 20)][-1] == b"old 19"
        broker.kill()
        cut(tmp_path, 15)
        broker = moldau.run(data_dir=tmp_path, port=port)
        write(broker.bootstrap_servers, TOPIC, [b"new %d" % number for number in range(10)])
        if reset == "error":
            (told,) = until(consumer, 1)
            error = told.error()
            assert error is not None, f"skipped to {told.value()!r} at {told.offset()}"
            assert "log truncation detected at offset 20" in error.str(), error
        else:  # it goes back to where the logs part
            assert [each.value() for each in until(consumer, 10)] == [b"new %d" % number for number in range(10)]
        consumer.close()
    finally:
        broker.kill()


@pytest.mark.parametrize("reset", ["none", "earliest"])
def test_a_java_consumer_that_is_ahead_notices(tmp_path: Path, reset: str) -> None:
    (port,) = free_ports(1)
    broker = moldau.run(data_dir=tmp_path, port=port)
    address = broker.bootstrap_servers
    try:
        create_topic(address, TOPIC)
        write(address, TOPIC, [b"old %d" % number for number in range(20)])
        with LineProcess(lambda: [*toolchains.java_reader(), reset, TOPIC, address]) as consumer:
            assert consumer.ask({"count": 20})["values"] == [f"old {number}" for number in range(20)]
            broker.kill()
            cut(tmp_path, 15)
            broker = moldau.run(data_dir=tmp_path, port=port)
            write(address, TOPIC, [b"new %d" % number for number in range(10)])
            if reset == "none":
                told = consumer.ask({"count": 1})
                assert told == {"values": [], "error": "LogTruncationException", "position": 20, "divergent": 15}
            else:  # it goes back to where the logs part
                assert consumer.ask({"count": 10}) == {"values": [f"new {number}" for number in range(10)]}
    finally:
        broker.kill()


def epochs_of(data_dir: Path) -> list[str]:
    return (data_dir / f"{TOPIC}-0" / "leader-epoch-checkpoint").read_text().splitlines()[2:]


def test_a_clean_start_costs_no_epoch(tmp_path: Path) -> None:
    for number in range(2):
        with moldau.run(data_dir=tmp_path) as broker:
            if number == 0:
                create_topic(broker.bootstrap_servers, TOPIC, partitions=3)
            write(broker.bootstrap_servers, TOPIC, [b"a"])
    assert epochs_of(tmp_path) == ["0 0"]
    for _ in range(2):
        broker = moldau.run(data_dir=tmp_path)
        write(broker.bootstrap_servers, TOPIC, [b"a"])
        broker.kill()
    with moldau.run(data_dir=tmp_path) as broker:
        write(broker.bootstrap_servers, TOPIC, [b"a"])
    assert epochs_of(tmp_path) == ["0 0", "1 3", "2 4"]

"""Acknowledgements, idempotence and timestamps as each client's producer sees them."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.clients.conftest import NewTopic, unique_name
from tests.clients.drivers import CLIENTS, Drivers, Record

HOUR_AGO_MS = int(time.time() * 1_000) - 3_600_000  # recent, or retention takes the records away
CLOCK_MS_MAX = 5_000  # the broker and the test share a machine, but not a moment


def numbered(count: int, *, partition: int = 0) -> list[Record]:
    return [
        Record(b"%d" % number, key=b"k", timestamp=HOUR_AGO_MS + number, partition=partition) for number in range(count)
    ]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("writer", CLIENTS)
def test_every_acknowledgement_level_keeps_all_records_in_order(
    drivers: Drivers, new_topic: NewTopic, writer: str, acks: str
) -> None:
    topic, records = new_topic(), numbered(50)
    offsets = drivers[writer].produce(topic, records, acks=acks)
    assert offsets == ([-1] * 50 if acks == "0" else list(range(50)))
    read = drivers[writer].consume(topic, count=50)
    assert read == [replace(record, offset=number) for number, record in enumerate(records)]


@pytest.mark.parametrize("writer", CLIENTS)
def test_an_idempotent_producer_goes_on_counting(drivers: Drivers, new_topic: NewTopic, writer: str) -> None:
    topic = new_topic(partitions=2)
    driver = drivers[writer]
    for turn in range(4):
        offsets = driver.produce(topic, numbered(5) + numbered(3, partition=1), idempotent=True)
        assert offsets == [*range(5 * turn, 5 * turn + 5), *range(3 * turn, 3 * turn + 3)]
    assert driver.list_offset(topic, "latest") == 20
    assert [record.value for record in driver.consume(topic, count=20)] == [b"0", b"1", b"2", b"3", b"4"] * 4


@pytest.mark.parametrize("writer", CLIENTS)
def test_a_record_without_a_timestamp_gets_the_time_of_its_producer(
    drivers: Drivers, new_topic: NewTopic, writer: str
) -> None:
    topic, before_ms = new_topic(), time.time() * 1_000
    drivers[writer].produce(topic, [Record(b"now")])
    (record,) = drivers[writer].consume(topic, count=1)
    assert record.timestamp is not None
    assert abs(record.timestamp - before_ms) < CLOCK_MS_MAX


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("writer", CLIENTS)
def test_a_topic_may_put_the_brokers_time_on_its_records(
    drivers: Drivers, new_topic: NewTopic, writer: str, codec: str
) -> None:
    topic, before_ms = new_topic(configs={"message.timestamp.type": "LogAppendTime"}), time.time() * 1_000
    drivers[writer].produce(topic, numbered(3), codec=codec)
    for reader in CLIENTS:
        for record in drivers[reader].consume(topic, count=3):
            assert record.timestamp is not None
            assert abs(record.timestamp - before_ms) < CLOCK_MS_MAX, reader


@pytest.mark.parametrize("writer", CLIENTS)
def test_a_topic_appears_when_it_is_first_written_to(drivers: Drivers, writer: str) -> None:
    topic = unique_name()
    assert drivers[writer].produce(topic, numbered(3)) == [0, 1, 2]
    assert topic in drivers[writer].list_topics()

"""What one client writes, every client reads: keys, values, headers and timestamps, in every codec."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.clients.conftest import NewTopic
from tests.clients.drivers import CLIENTS, CODECS, Drivers, Record

pytestmark = pytest.mark.xdist_group("round-trips")  # one process starts what they share, not three

PARTITIONS = 3
FIRST_TIMESTAMP = int(time.time() * 1_000) - 3_600_000  # recent, or retention takes the records away
NOISE = random.Random(1883).randbytes(300_000)

PECULIAR = (
    Record(b"value", key=b"key"),
    Record(b"no key"),
    Record(None, key=b"tombstone"),
    Record(b"", key=b""),
    Record(bytes(range(256)), key=b"\xff\x00\xfe"),
    Record(b"v", headers=(("empty", b""), ("twice", b"1"), ("twice", b"2"), ("řeka", b"\x00\xff"))),
    Record(b"null header", headers=(("null", None),)),
)
LARGE = (Record(NOISE, key=b"incompressible"), Record(b"moldau " * 100_000, key=b"compressible"))
MANY = tuple(Record(b"record %d" % number, key=b"%d" % (number % 7)) for number in range(300))

Written = Callable[[str, str], tuple[str, list[Record]]]


def records_to_write(writer: str) -> list[Record]:
    by_partition = (PECULIAR, LARGE, MANY)
    records = [
        replace(record, partition=partition, timestamp=FIRST_TIMESTAMP + 1_000 * number)
        for partition, group in enumerate(by_partition)
        for number, record in enumerate(group)
    ]
    if "write null headers" in CLIENTS[writer].cannot:
        records = [record for record in records if all(value is not None for _, value in record.headers)]
    return records


@pytest.fixture(scope="module")
def written(drivers: Drivers, new_topic: NewTopic) -> Written:
    """The topic that a writer filled in a codec, and its records as every reader must find them; filled once."""
    done: dict[tuple[str, str], tuple[str, list[Record]]] = {}

    def write(writer: str, codec: str) -> tuple[str, list[Record]]:
        if (writer, codec) not in done:
            topic = new_topic(partitions=PARTITIONS)
            records = records_to_write(writer)
            offsets = drivers[writer].produce(topic, records, codec=codec)
            stored = [replace(record, offset=offset) for record, offset in zip(records, offsets, strict=True)]
            done[writer, codec] = topic, stored
        return done[writer, codec]

    return write


@pytest.mark.parametrize("reader", CLIENTS)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", CLIENTS)
def test_what_one_client_writes_another_reads(
    drivers: Drivers, written: Written, writer: str, codec: str, reader: str
) -> None:
    topic, records = written(writer, codec)
    for partition in range(PARTITIONS):
        expected = [record for record in records if record.partition == partition]
        assert drivers[reader].consume(topic, partition=partition, count=len(expected)) == expected


@pytest.mark.parametrize("writer", CLIENTS)
def test_offsets_count_up_from_zero_in_each_partition(written: Written, writer: str) -> None:
    _, records = written(writer, "none")
    for partition in range(PARTITIONS):
        offsets = [record.offset for record in records if record.partition == partition]
        assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("reader", CLIENTS)
def test_reading_can_start_in_the_middle_of_a_batch(
    drivers: Drivers, written: Written, reader: str, codec: str
) -> None:
    topic, records = written("java", codec)
    many = [record for record in records if record.partition == 2]
    assert drivers[reader].consume(topic, partition=2, offset=137, count=20) == many[137:157]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_record_larger_than_a_fetch_is_read_all_the_same(drivers: Drivers, new_topic: NewTopic, client: str) -> None:
    topic = new_topic(configs={"max.message.bytes": str(8 << 20)})
    records = [Record(NOISE * 10, timestamp=FIRST_TIMESTAMP), Record(b"small", timestamp=FIRST_TIMESTAMP)]
    assert drivers[client].produce(topic, records) == [0, 1]
    read = drivers[client].consume(topic, count=2)
    assert read == [replace(record, offset=number) for number, record in enumerate(records)]


@pytest.mark.parametrize("reader", CLIENTS)
def test_a_reader_at_the_end_hears_of_the_next_record(drivers: Drivers, new_topic: NewTopic, reader: str) -> None:
    topic, writer = new_topic(), "kafka-python" if reader == "confluent" else "confluent"
    drivers[writer].produce(topic, [Record(b"old")])
    drivers[reader].consume(topic, count=1)
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(drivers[reader].consume, topic, offset=1, count=1)
        drivers[writer].produce(topic, [Record(b"new")])
        assert [record.value for record in heard.result()] == [b"new"]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", CLIENTS)
def test_a_topic_may_ask_for_a_codec_of_its_own(drivers: Drivers, new_topic: NewTopic, writer: str, codec: str) -> None:
    topic = new_topic(configs={"compression.type": "uncompressed" if codec == "none" else codec})
    records = [replace(record, timestamp=FIRST_TIMESTAMP, offset=number) for number, record in enumerate(MANY[:20])]
    drivers[writer].produce(topic, records, codec="none" if codec == "gzip" else "gzip")
    assert drivers["java"].consume(topic, count=len(records)) == records

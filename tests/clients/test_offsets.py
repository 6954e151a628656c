"""Offsets by time and by name, and what is left after records are deleted, as each client asks for them."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from tests.clients.conftest import NewTopic
from tests.clients.drivers import CLIENTS, ClientError, Drivers, Record

OFFSET_OUT_OF_RANGE = 1
NO_RESET_POLICY = -140  # librdkafka's own number for "out of range, and nobody said where to go then"


@dataclass(frozen=True, slots=True)
class Timed:
    topic: str
    first_ms: int


@pytest.fixture(scope="module")
def timed(drivers: Drivers, new_topic: NewTopic) -> Timed:
    """Ten batches of three records, ten milliseconds from record to record, the newest in the middle of the topic."""
    topic, first_ms = new_topic(), int(time.time() * 1_000) - 3_600_000
    for batch in range(10):
        records = [Record(b"v", timestamp=first_ms + 10 * (3 * batch + number)) for number in range(3)]
        if batch == 6:
            records[1] = Record(b"newest", timestamp=first_ms + 100_000)
        drivers["java"].produce(topic, records, codec="none" if batch % 2 else "lz4")
    return Timed(topic, first_ms)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_ends_of_a_partition(drivers: Drivers, timed: Timed, client: str) -> None:
    assert drivers[client].list_offset(timed.topic, "earliest") == 0
    assert drivers[client].list_offset(timed.topic, "latest") == 30


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("after_first_ms", "offset"),
    [(-1, 0), (0, 0), (1, 1), (40, 4), (45, 5), (190, 19), (200, 19), (99_999, 19), (100_000, 19), (100_001, -1)],
)
def test_the_first_record_at_or_after_a_time(
    drivers: Drivers, timed: Timed, client: str, after_first_ms: int, offset: int
) -> None:
    found = drivers[client].list_offset(timed.topic, timed.first_ms + after_first_ms)
    # Two clients put the end of the partition in the place of "there is none".
    assert found == (30 if offset == -1 and client in {"kafkajs", "franz-go"} else offset)


@pytest.mark.parametrize("client", [name for name, client in CLIENTS.items() if "max_timestamp" not in client.cannot])
def test_the_record_with_the_largest_time(drivers: Drivers, timed: Timed, client: str) -> None:
    assert drivers[client].list_offset(timed.topic, "max_timestamp") == 19


@pytest.mark.parametrize("client", CLIENTS)
def test_deleted_records_are_gone_and_the_others_keep_their_offsets(
    drivers: Drivers, new_topic: NewTopic, client: str
) -> None:
    topic, driver = new_topic(), drivers[client]
    driver.produce(topic, [Record(b"%d" % number) for number in range(10)])
    assert driver.delete_records(topic, before=4) == 4
    assert driver.list_offset(topic, "earliest") == 4
    assert [(record.offset, record.value) for record in driver.consume(topic, offset=4, count=6)] == [
        (number, b"%d" % number) for number in range(4, 10)
    ]
    with pytest.raises(ClientError) as failure:
        driver.consume(topic, offset=3, count=1)
    assert is_out_of_range(failure.value)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_offset_beyond_the_end_is_out_of_range(drivers: Drivers, new_topic: NewTopic, client: str) -> None:
    topic = new_topic()
    drivers[client].produce(topic, [Record(b"only")])
    with pytest.raises(ClientError) as failure:
        drivers[client].consume(topic, offset=2, count=1)
    assert is_out_of_range(failure.value)


def is_out_of_range(failure: ClientError) -> bool:
    # Some clients have an exception of their own for it, without Kafka's number.
    return failure.code in {OFFSET_OUT_OF_RANGE, NO_RESET_POLICY} or failure.name in {
        "OffsetOutOfRangeError",
        "OffsetOutOfRangeException",
        "NoOffsetForPartitionError",
    }

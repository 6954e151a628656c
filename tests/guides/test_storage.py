"""What the guide on storage says of retention, seen on the broker that `--broker` names."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers import running_broker

WAIT_S_MAX = 60.0
INTERVAL_MS = "200"


@pytest.fixture(scope="module")
def busy_housekeeping(broker_kind: str) -> Iterator[str]:
    """A broker that looks for old segments all the time; Apache Kafka's first look is later than the others."""
    properties = {"log.retention.check.interval.ms": INTERVAL_MS}
    if broker_kind == "apache":
        properties["log.initial.task.delay.ms"] = INTERVAL_MS
    elif broker_kind != "moldau":
        pytest.skip("a broker with its own configuration")
    with running_broker(broker_kind, properties=properties) as address:
        yield address


def bounds(bootstrap: str, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S_MAX)
    finally:
        consumer.close()
    return int(low), int(high)


def test_the_active_segment_goes_too_when_its_newest_record_is_old(busy_housekeeping: str) -> None:
    bootstrap = busy_housekeeping
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"retention.ms": "3600000"}
    for created in admin.create_topics([NewTopic(each, 1, 1, config=config) for each in ("old", "mixed")]).values():
        created.result(WAIT_S_MAX)
    long_ago_ms = int(time.time() * 1_000) - 7_200_000
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("mixed", b"old", timestamp=long_ago_ms)
    producer.produce("mixed", b"new")
    producer.produce("old", b"old", timestamp=long_ago_ms)
    assert not producer.flush(WAIT_S_MAX)
    deadline_s = time.monotonic() + WAIT_S_MAX
    while bounds(bootstrap, "old") != (1, 1):
        assert time.monotonic() < deadline_s, bounds(bootstrap, "old")
        time.sleep(0.1)
    assert bounds(bootstrap, "mixed") == (0, 2), "a new record keeps its whole segment"

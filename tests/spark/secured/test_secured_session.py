"""Streams from topic to topic over SASL_SSL in a session of Spark, by the requests of `moldau.spark` itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import moldau
from moldau.spark.workers import worker_python
from tests.brokers import PROJECT

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1_000)]

HERE = Path(__file__).parent
ROWS = 2_000
RUN_S_MAX = 850.0  # two minutes, and three times that on a busy machine
PARTITIONS = 2


def produce(client: dict[str, object], topic: str) -> None:
    producer = Producer(client)
    for number in range(ROWS):
        producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def values(client: dict[str, object], topic: str) -> Counter[int]:
    """Of committed records, as many as were sent and one more if it is there."""
    consumer = Consumer({**client, "group.id": "reader", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: Counter[int] = Counter()
    try:
        while messages := consumer.consume(ROWS + 1, timeout=5 if found.total() < ROWS else 1):
            found.update(int(message.value() or b"") for message in messages)
    finally:
        consumer.close()
    return found


def copy_in_spark(copies: list[dict[str, object]], folder: Path) -> dict[str, set[str]]:
    """Which ways the tasks went, by the copies' targets."""
    seen = folder / "seen.txt"
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.secured.copying", json.dumps(copies)],
        cwd=PROJECT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE / "watching"), str(PROJECT / "src"), str(PROJECT)]),
            "PYSPARK_PYTHON": worker_python(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SEEN": str(seen),
        },
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    targets, ways = {str(copy["target"]) for copy in copies}, dict[str, set[str]]()
    for line in seen.read_text().split():
        if line in targets:
            ways[line] = set()
        else:
            ways[next(reversed(ways))].add(line)
    return ways


def test_streams_go_by_our_own_requests(tmp_path: Path) -> None:
    """By librdkafka's names of the settings and by Java's, which are translated; the last copy is the control."""
    with moldau.run(secure=True) as broker:
        admin = broker.clients.confluent
        of_librdkafka = {f"kafka.{name}": str(value) for name, value in admin.items()}
        of_java = {f"kafka.{name}": value for name, value in broker.clients.java.items()}
        by_library = {**of_librdkafka, "reader": "librdkafka", "writer": "librdkafka"}
        wanted = [
            ("exactly-once", of_librdkafka),
            ("exactly-once", of_java),
            ("at-least-once", of_librdkafka),
            ("exactly-once", by_library),
        ]
        copies: list[dict[str, object]] = [
            {
                "source": "source",
                "target": f"target-{number}",
                "checkpoint": str(tmp_path / f"checkpoint-{number}"),
                "delivery": delivery,
                "options": options,
            }
            for number, (delivery, options) in enumerate(wanted)
        ]
        for topic in ("source", *(str(copy["target"]) for copy in copies)):
            broker.create_topic(topic, partitions=PARTITIONS)
        produce(admin, "source")
        assert copy_in_spark(copies, tmp_path) == {
            "target-0": {"fetch_range", "opened_plainly"},
            "target-1": {"fetch_range", "opened_plainly"},
            "target-2": {"fetch_range", "write_plainly"},
            "target-3": {"read_by_library", "opened_by_library"},
        }
        for copy in copies:
            assert values(admin, str(copy["target"])) == Counter(range(ROWS)), copy["target"]

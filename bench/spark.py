"""Topics in Spark: ours beside Spark's own connector, and how cost grows with the number of records.

    python -m bench.spark                              beside the stock connector, then growth (about an hour)
    python -m bench.spark --part beside --scale 0.01 --rounds 1 --live-s 15       a quick try
    python -m bench.spark --part library               the same with librdkafka, the way for OAUTHBEARER
    python -m bench.spark --part secured               over SASL_SSL with SCRAM-SHA-512 (about 15 minutes)
    python -m bench.spark --part growth --scale 0.001
    python -m bench.spark --part registry              typed columns by a registry, beside plain formats (15 minutes)
    python -m bench.spark --part join                  one order against a million customers (two minutes)

One broker holds the data. Both Sparks, ours and the version that the stock connector is for, live beside each other in
local[2] and take turns. A ratio is the stock connector's median over ours, so that above 1.00 ours is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import moldau
from bench import spark_registry
from bench.brokers import java
from bench.memory import watched
from bench.table_join import table_join
from moldau.spark.workers import worker_python
from tests.brokers import running_broker
from tests.spark.stock.environment import CONNECTOR, stock_python
from tests.spark.stock.running import JobRunner, running_jobs

JOBS = Path(__file__).parent / "spark_jobs.py"
PARTITIONS = 2
BATCHES = 5
LIVE_RECORDS_PER_S = 2_000
LIVE_BYTES = 1_000
SIZES = ((1_000_000, 1_000), (5_000_000, 100))
SECURED_SIZES = ((1_000_000, 1_000), (1_000_000, 100))
GROWTH = (1_000_000, 10_000_000, 50_000_000)
GROWTH_BYTES = 100
GROWTH_BATCH = 1_000_000  # of a stream, whatever is there
# Only librdkafka follows this one, so it does the work.
BY_LIBRARY = {"kafka.socket.keepalive.enable": "true"}


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a run, and the options that both connectors understand."""

    bootstrap: str
    folder: Path
    java: dict[str, str] = field(default_factory=dict)
    """What a client of Java needs beside the address, and both connectors with it."""
    confluent: dict[str, str] = field(default_factory=dict)

    @property
    def admin_settings(self) -> dict[str, str | int]:
        return {**self.confluent, "bootstrap.servers": self.bootstrap, "log_level": 0}

    @property
    def kafka(self) -> dict[str, str]:
        return {f"kafka.{name}": value for name, value in {**self.java, "bootstrap.servers": self.bootstrap}.items()}

    def create(self) -> str:
        name = f"bench-{uuid.uuid4().hex[:8]}"
        admin = AdminClient(self.admin_settings)
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
        return name

    def delete(self, name: str) -> None:
        admin = AdminClient(self.admin_settings)
        admin.delete_topics([name])[name].result()

    def fill(self, records: int, size: int) -> str:
        name = self.create()
        words = ["--topic", name, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1"]
        settings = {**self.java, "bootstrap.servers": self.bootstrap, "linger.ms": "20", "batch.size": "200000"}
        file = self.folder / "producer.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        words += ["--command-config", str(file)]
        tool = java("org.apache.kafka.tools.ProducerPerformance", *words, jvm=["-Xmx512M"])
        subprocess.run(tool, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return name

    def source(self, topic: str, **options: str) -> dict[str, str]:
        common = {**self.kafka, "subscribe": topic, "startingOffsets": "earliest"}
        return {**common, **options}

    def sink(self, topic: str, **options: str) -> dict[str, str]:
        return {**self.kafka, "topic": topic, **options}

    def checkpoint(self) -> str:
        return str(self.folder / f"checkpoint-{uuid.uuid4().hex[:8]}")

    @contextmanager
    def target(self) -> Iterator[str]:
        name = self.create()
        try:
            yield name
        finally:
            self.delete(name)


@dataclass(frozen=True, slots=True)
class Side:
    """One connector; `delivery` is an option of ours only. `client` is for what reads and what writes."""

    name: str
    runner: JobRunner
    options: dict[str, str]
    client: dict[str, str] = field(default_factory=dict)


@contextmanager
def session(format_name: str, master: str, errors: Path) -> Iterator[JobRunner]:
    is_ours = format_name == "moldau"
    python = sys.executable if is_ours else stock_python()
    workers = worker_python() if is_ours else python
    command = [python, str(JOBS), format_name, master, "" if is_ours else CONNECTOR]
    with (
        errors.open("ab") as output,
        running_jobs(command, errors=output, environment={"PYSPARK_PYTHON": workers, "PYTHONPATH": ""}) as runner,
    ):
        yield runner


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


Job = Callable[[Side], list[float]]


def jobs(topics: Topics, filled: str, records: int, size: int) -> dict[str, Job]:
    """What is timed on a filled topic, by name."""

    def read(side: Side) -> list[float]:
        return [side.runner.call("read", source=topics.source(filled, **side.client))]

    def read_available(side: Side) -> list[float]:
        source = topics.source(filled, maxOffsetsPerTrigger=str(max(1, records // BATCHES)), **side.client)
        return [side.runner.call("read_available", source=source, checkpoint=topics.checkpoint())]

    def write(side: Side) -> list[float]:
        with topics.target() as topic:
            sink = topics.sink(topic, **side.options, **side.client)
            return [side.runner.call("write", sink=sink, records=records, size=size)]

    def copy_available(side: Side) -> list[float]:
        with topics.target() as topic:
            source = topics.source(filled, maxOffsetsPerTrigger=str(max(1, records // BATCHES)), **side.client)
            sink = topics.sink(topic, **side.options, **side.client)
            return [side.runner.call("copy_available", source=source, sink=sink, checkpoint=topics.checkpoint())]

    return {
        "read, batch": read,
        "read, AvailableNow": read_available,
        "write, batch": write,
        "read and write, AvailableNow": copy_available,
    }


@contextmanager
def feeding(bootstrap: str, topic: str) -> Iterator[None]:
    """Records at a steady pace, a tenth of a second's worth at a time."""
    over = threading.Event()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    value = os.urandom(LIVE_BYTES)

    def feed() -> None:
        while not over.wait(0.1):
            for _ in range(LIVE_RECORDS_PER_S // 10):
                producer.produce(topic, value)
            producer.poll(0)
        producer.flush(30)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def live_jobs(topics: Topics, seconds: float) -> dict[str, Job]:
    def read(side: Side) -> list[float]:
        with topics.target() as topic, feeding(topics.bootstrap, topic):
            fields = {"source": topics.source(topic, **side.client), "checkpoint": topics.checkpoint()}
            return list(side.runner.call("read_live", **fields, seconds=seconds))

    def copy(side: Side) -> list[float]:
        with topics.target() as topic, topics.target() as gone, feeding(topics.bootstrap, topic):
            source = topics.source(topic, **side.client)
            fields = {"source": source, "sink": topics.sink(gone, **side.options, **side.client)}
            return list(side.runner.call("copy_live", **fields, checkpoint=topics.checkpoint(), seconds=seconds))

    return {"read, a batch each second": read, "read and write, a batch each second": copy}


def compare(label: str, job: Job, sides: list[Side], rounds: int) -> None:
    """In turns, the order turned around each time, so that neither side always has the warmer machine."""
    found: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            found[side.name] += job(side)
    medians = {name: statistics.median(each) if each else float("nan") for name, each in found.items()}
    stock = medians["stock"]
    for name, median in medians.items():
        if name != "stock":
            spread = f"{min(found[name], default=0):.2f} to {max(found[name], default=0):.2f}"
            say(f"| {label} | {name} | {median:.2f} | {stock:.2f} | {stock / median:.2f} | {spread} |")


@contextmanager
def both(topics: Topics) -> Iterator[tuple[JobRunner, JobRunner]]:
    """A session with ours, and one with the stock connector."""
    with (
        session("moldau", "local[2]", topics.folder / "ours.txt") as ours,
        session("kafka", "local[2]", topics.folder / "stock.txt") as stock,
    ):
        say(f"Spark {ours.call('version')} with ours, {stock.call('version')} with the stock connector")
        say("| figure | ours | s | stock, s | ratio | spread of ours, s |\n|---|---|---|---|---|---|")
        yield ours, stock


def beside(topics: Topics, asked: argparse.Namespace, client: dict[str, str]) -> None:
    with both(topics) as (ours, stock):
        sides = [
            Side("at-least-once", ours, {"delivery": "at-least-once"}, client),
            Side("exactly-once", ours, {"delivery": "exactly-once"}, client),
            Side("stock", stock, {}),
        ]
        reading = [Side("ours", ours, {}, client), sides[2]]
        compare_filled(topics, asked, SIZES, {"read": reading, "write": sides})
        for label, job in live_jobs(topics, asked.live_s).items():
            compare(label, job, sides if "write" in label else reading, 1)


def secured(folder: Path, asked: argparse.Namespace) -> None:
    """Over TLS with a login, by the same settings of Java's for both connectors."""
    with moldau.run(secure=True) as broker:
        clients = broker.clients
        topics = Topics(broker.bootstrap_servers, folder, dict(clients.java), settings_of(clients.confluent))
        with both(topics) as (ours, stock):
            sides = [
                Side("at-least-once", ours, {"delivery": "at-least-once"}),
                Side("exactly-once", ours, {"delivery": "exactly-once"}),
                Side("at-least-once, librdkafka", ours, {"delivery": "at-least-once"}, BY_LIBRARY),
                Side("stock", stock, {}),
            ]
            reading = [Side("ours", ours, {}), Side("ours, librdkafka", ours, {}, BY_LIBRARY), sides[3]]
            compare_filled(topics, asked, SECURED_SIZES, {"read": reading, "write": sides})


def settings_of(client: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in client.items()}


def compare_filled(
    topics: Topics, asked: argparse.Namespace, sizes: tuple[tuple[int, int], ...], sides: dict[str, list[Side]]
) -> None:
    for number, (records, size) in enumerate(sizes):
        records = max(1000, int(records * asked.scale))
        filled = topics.fill(records, size)
        for label, job in jobs(topics, filled, records, size).items():
            takes_part = sides["write" if "write" in label else "read"]
            if number == 0:
                # Code is compiled, workers are started and caches are filled on the first call.
                for side in takes_part:
                    job(side)
            compare(f"{label}, {records:,} x {size} B", job, takes_part, asked.rounds)
        topics.delete(filled)


def growth(topics: Topics, asked: argparse.Namespace) -> None:
    counts = [max(1000, int(records * asked.scale)) for records in GROWTH]
    filled = topics.fill(counts[-1], GROWTH_BYTES)
    say("| master | job | records | s | records/s | peak MB | of the JVM | of Python |")
    say("|---|---|---|---|---|---|---|---|")
    for master in ("local[1]", "local[2]"):
        for job in ("read", "read_available", "write"):
            for records in counts:
                # A new session for each, so that what one left in memory is not counted for the next.
                with session("moldau", master, topics.folder / "ours.txt") as runner, topics.target() as target:
                    runner.call("read", **growth_fields(topics, "read", 1000, filled=filled, target=target))
                    fields = growth_fields(topics, job, records, filled=filled, target=target)
                    with watched(runner.process.pid) as peak:
                        spent_s = runner.call(job, **fields)
                say(
                    f"| {master} | {job} | {records:,} | {spent_s:.1f} | {records / spent_s:,.0f} "
                    f"| {peak.total:.0f} | {peak.java:.0f} | {peak.python:.0f} |"
                )


def shares(topics: Topics, filled: str, records: int) -> tuple[dict[str, int], dict[str, int]]:
    """The ends of the partitions, and how many of the records each contributes by its part of the whole."""
    consumer = Consumer({"bootstrap.servers": topics.bootstrap, "group.id": "unused"})
    places = [TopicPartition(filled, partition) for partition in range(PARTITIONS)]
    ends = {str(place.partition): int(consumer.get_watermark_offsets(place)[1]) for place in places}
    consumer.close()
    total = sum(ends.values())
    return ends, {partition: end * records // total for partition, end in ends.items()}


def growth_fields(topics: Topics, job: str, records: int, *, filled: str, target: str) -> dict[str, Any]:
    if job == "write":
        return {"sink": topics.sink(target), "records": records, "size": GROWTH_BYTES}
    ends, parts = shares(topics, filled, records)
    if job == "read":
        return {"source": topics.source(filled, endingOffsets=json.dumps({filled: parts}))}
    # A stream has no end of its own, so it starts where that many records are left.
    starts = {partition: ends[partition] - part for partition, part in parts.items()}
    limits = {"startingOffsets": json.dumps({filled: starts}), "maxOffsetsPerTrigger": str(GROWTH_BATCH)}
    return {"source": topics.source(filled, **limits), "checkpoint": topics.checkpoint()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--part", choices=("beside", "library", "secured", "growth", "join", "registry", "all"), default="all"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--live-s", type=float, default=60.0, help="how long a query with a batch each second runs")
    parser.add_argument("--broker", default="moldau", help="moldau or apache")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as folder, running_broker(asked.broker) as bootstrap:
        topics = Topics(bootstrap, Path(folder))
        begun = time.monotonic()
        if asked.part in ("beside", "all"):
            beside(topics, asked, {})
        if asked.part in ("library", "all"):
            beside(topics, asked, BY_LIBRARY)
        if asked.part in ("secured", "all"):
            secured(topics.folder, asked)
        if asked.part in ("growth", "all"):
            growth(topics, asked)
        if asked.part in ("registry", "all"):
            with session("moldau", "local[2]", topics.folder / "ours.txt") as ours:
                for line in spark_registry.compare(ours, topics, bootstrap, scale=asked.scale, rounds=asked.rounds):
                    say(line)
        if asked.part in ("join", "all"):
            for line in table_join(bootstrap, topics.folder, asked.scale):
                say(line)
        say(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()

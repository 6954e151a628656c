"""Three brokers of Moldau beside three of Apache Kafka (KRaft) on this machine, the same steps on either.

    python -m bench.cluster                                   everything (about 13 minutes on two cores)
    python -m bench.cluster --rounds 1 --records 20000 --move-mb 50 --kills 1       a quick try (about 3 minutes)
    python -m bench.cluster --only move,rolling

Topics have three replicas and min.insync.replicas=2, producers acks=all. Records are sent by Apache Kafka's
ProducerPerformance, after a first run that warms the brokers up; the records around a killed leader by librdkafka with
its defaults. One side runs at a time, and each as often as there are rounds. A ratio is one of medians, and above 1.00
is better than Apache Kafka, whichever way the raw figure points. Memory is that of all brokers after the load.

The last table is about Moldau alone: records of one replica, on clusters of one, two and three brokers.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.brokers import java
from bench.clusters import Side, kafka, ours, partitions
from moldau.wire.messages import AlterPartitionReassignmentsRequest
from moldau.wire.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from tests.cluster.asking import ask_address

CLIENT_JVM = ["-Xmx512M", "-XX:+UseSerialGC"]
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
SUMMARY = re.compile(
    r"records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\), ([\d.]+) ms avg latency, [\d.]+ ms max latency, "
    r"(\d+) ms 50th, \d+ ms 95th, (\d+) ms 99th"
)
PARTITIONS = 6
LARGE_BYTES, SMALL_BYTES = 1_000, 100
MIB = 1 << 20
PACED_PER_S = 2_000
PACED_S = 10
MOVED_PARTITIONS = 8
RUN_S_MAX = 600
REASSIGN_VERSION = 0


class Sent(NamedTuple):
    records_per_s: float
    mb_per_s: float
    average_ms: float
    median_ms: float
    p99_ms: float


def produce(side: Side, topic: str, records: int, size: int, *, per_s: int = -1) -> Sent:
    words = ["--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", str(per_s)]
    settings = ["--bootstrap-server", side.bootstrap, "--command-property", "acks=all"]
    command = java(PERFORMANCE, *words, *settings, jvm=CLIENT_JVM)
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S_MAX, check=False)
    found = SUMMARY.findall(done.stdout)
    if not found:
        sys.exit(f"{side.name}: ProducerPerformance told nothing: {done.stdout[-500:]}{done.stderr[-2000:]}")
    return Sent(*map(float, found[-1]))


def create_topic(side: Side, name: str, *, partitions: int = PARTITIONS, replicas: int = 3) -> None:
    admin = AdminClient({"bootstrap.servers": side.bootstrap})
    admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=replicas)])[name].result(60)
    side.until(lambda seen: any(topic.name == name for topic in seen.topics))
    side.until_in_sync()


def note(side: Side, **figures: float) -> None:
    for name, value in figures.items():
        side.figures.setdefault(name, []).append(value)


def measure_produce(side: Side, options: argparse.Namespace) -> None:
    create_topic(side, "load")
    produce(side, "load", options.records // 2, LARGE_BYTES)
    produce(side, "load", options.records, SMALL_BYTES)
    before_s = side.cpu_s()
    large = produce(side, "load", options.records, LARGE_BYTES)
    cpu_s = side.cpu_s() - before_s
    small = produce(side, "load", options.records * 5, SMALL_BYTES)
    note(side, large_mb_per_s=large.mb_per_s, small_records_per_s=small.records_per_s)
    note(side, cpu_ms_per_mb=cpu_s * 1_000 * MIB / (options.records * LARGE_BYTES))


def measure_latency(side: Side, options: argparse.Namespace) -> None:
    create_topic(side, "paced")
    produce(side, "paced", PACED_PER_S * 2, LARGE_BYTES, per_s=PACED_PER_S)
    paced = produce(side, "paced", PACED_PER_S * options.paced_s, LARGE_BYTES, per_s=PACED_PER_S)
    note(side, average_ms=paced.average_ms, median_ms=paced.median_ms, p99_ms=paced.p99_ms)


def measure_memory(side: Side, _: argparse.Namespace) -> None:
    note(side, pss_mb=side.memory_mb("Pss"), rss_mb=side.memory_mb("Rss"))


class Stream:
    """Records to one partition, some hundred a second, and when each was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0})
        self._topic = topic
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send)
        self.failures: list[KafkaError] = []
        self.acknowledged: list[tuple[float, float]] = []
        """When each record was sent and acknowledged."""

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _send(self) -> None:
        while not self._is_over.is_set():
            sent_s = time.monotonic()

            def delivered(wrong: KafkaError | None, _: Message, sent_s: float = sent_s) -> None:
                if wrong is None:
                    self.acknowledged.append((sent_s, time.monotonic()))
                else:
                    self.failures.append(wrong)

            self._producer.produce(self._topic, b"v" * SMALL_BYTES, partition=0, on_delivery=delivered)
            self._producer.poll(0.005)
        self._producer.flush(60)

    def next_after(self, moment_s: float) -> float:
        """How long after that moment a record was acknowledged that was sent after it."""
        deadline_s = moment_s + RUN_S_MAX
        while True:
            found = [done_s for sent_s, done_s in self.acknowledged if sent_s > moment_s]
            if found:
                return min(found) - moment_s
            assert time.monotonic() < deadline_s, "no record was acknowledged"
            time.sleep(0.005)


def measure_failover(side: Side, options: argparse.Namespace) -> None:
    create_topic(side, "mortal", partitions=1)
    for _ in range(options.kills):
        with Stream(side.bootstrap, "mortal") as stream:
            stream.next_after(time.monotonic())
            victim = side.leader_of("mortal")
            killed_s = time.monotonic()
            side.running.kill(victim)
            note(side, failover_s=stream.next_after(killed_s))
        assert not stream.failures, stream.failures
        side.restart(victim)
        side.until_in_sync()


def measure_move(side: Side, options: argparse.Namespace) -> None:
    """All from the first broker to the second, in one request."""
    source, target, _ = side.broker_ids
    admin = AdminClient({"bootstrap.servers": side.bootstrap})
    topic = NewTopic(
        "moved",
        num_partitions=MOVED_PARTITIONS,
        replica_assignment=[[source]] * MOVED_PARTITIONS,
        config={"min.insync.replicas": "1"},
    )
    admin.create_topics([topic])["moved"].result(60)
    side.until(lambda seen: len(partitions(seen, "moved")) == MOVED_PARTITIONS)
    produce(side, "moved", options.move_mb * MIB // LARGE_BYTES, LARGE_BYTES)
    wanted = [ReassignablePartition(partition_index=each, replicas=[target]) for each in range(MOVED_PARTITIONS)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="moved", partitions=wanted)])
    before_s, begun_s = side.cpu_s(), time.monotonic()
    answer = ask_address(side.addresses[0], request, REASSIGN_VERSION)
    assert answer.error_code == 0, answer
    side.until(lambda seen: all(each.replica_nodes == [target] for each in partitions(seen, "moved")))
    note(side, move_s=time.monotonic() - begun_s, move_cpu_s=side.cpu_s() - before_s)


def measure_rolling_restart(side: Side, _: argparse.Namespace) -> None:
    """One after the other; the next when all replicas are in sync again."""
    side.until_in_sync()
    begun_s = time.monotonic()
    for broker_id in side.broker_ids:
        side.restart(broker_id)
        side.until_in_sync()
    note(side, rolling_s=time.monotonic() - begun_s)


Measure = Callable[[Side, argparse.Namespace], None]
MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "produce": measure_produce,
        "latency": measure_latency,
        "memory": measure_memory,
        "move": measure_move,
        "failover": measure_failover,
        "rolling": measure_rolling_restart,
    }
)


class Row(NamedTuple):
    title: str
    figure: str
    is_more_better: bool = False
    form: str = "{:,.1f}"


ROWS = (
    Row("start of the cluster, s", "start_s", form="{:.2f}"),
    Row("produce, 1 kB records, MB/s", "large_mb_per_s", True),
    Row("produce, 100 B records, records/s", "small_records_per_s", True, "{:,.0f}"),
    Row("CPU of the brokers, ms for each MB produced", "cpu_ms_per_mb"),
    Row("latency at 2,000 records/s, mean, ms", "average_ms", form="{:.2f}"),
    Row("latency at 2,000 records/s, median, ms", "median_ms", form="{:.0f}"),
    Row("latency at 2,000 records/s, 99th percentile, ms", "p99_ms", form="{:.0f}"),
    Row("memory of all brokers, shared pages counted once (PSS), MB", "pss_mb", form="{:,.0f}"),
    Row("memory of all brokers, RSS, MB", "rss_mb", form="{:,.0f}"),
    Row("move of replicas, s", "move_s", form="{:.2f}"),
    Row("CPU of the brokers for that move, s", "move_cpu_s", form="{:.2f}"),
    Row("kill -9 of a leader to the next acknowledged record, s", "failover_s", form="{:.2f}"),
    Row("rolling restart, s", "rolling_s", form="{:.2f}"),
)


def table(figures: Mapping[str, Mapping[str, list[float]]]) -> str:
    lines = ["| | ours | Apache Kafka | ratio | all of ours | all of Apache Kafka |", "|---|---|---|---|---|---|"]
    for row in ROWS:
        both = [figures[name].get(row.figure, []) for name in ("ours", "kafka")]
        if not all(both):
            continue
        us, them = (statistics.median(values) for values in both)
        ratio = us / them if row.is_more_better else them / us
        every = [", ".join(row.form.format(value) for value in values) for values in both]
        cells = [row.title, row.form.format(us), row.form.format(them), f"{ratio:.2f}", *every]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def scale(options: argparse.Namespace) -> str:
    """One replica for each partition, so that every broker has its share and nothing else."""
    lines = ["| brokers of ours | 1 kB records, MB/s | 100 B records, records/s | PSS, MB |", "|---|---|---|---|"]
    for count in (1, 2, 3):
        with ours(count) as side:
            create_topic(side, "load", replicas=1)
            produce(side, "load", options.records // 2, LARGE_BYTES)
            large = produce(side, "load", options.records, LARGE_BYTES)
            small = produce(side, "load", options.records * 5, SMALL_BYTES)
            memory_mb = side.memory_mb("Pss")
        lines.append(f"| {count} | {large.mb_per_s:.1f} | {small.records_per_s:,.0f} | {memory_mb:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--records", type=int, default=200_000, help="of 1 kB in a run; five times as many of 100 B")
    parser.add_argument("--paced-s", type=int, default=PACED_S)
    parser.add_argument("--move-mb", type=int, default=1_024)
    parser.add_argument("--kills", type=int, default=3, help="of leaders in each round")
    parser.add_argument("--only", default=",".join([*MEASURES, "scale"]), help="some of %(default)s")
    parser.add_argument("--sides", default="ours,kafka")
    options = parser.parse_args()
    wanted = options.only.split(",")
    sides: Mapping[str, Callable[[], AbstractContextManager[Side]]] = {"ours": ours, "kafka": kafka}
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in sides}
    for number in range(options.rounds):
        for name in options.sides.split(","):
            with sides[name]() as side:
                side.figures = figures[name]
                note(side, start_s=side.start_s)
                for title, measure in MEASURES.items():
                    if title in wanted:
                        begun_s = time.monotonic()
                        measure(side, options)
                        took_s = time.monotonic() - begun_s
                        sys.stderr.write(f"round {number + 1}, {name}: {title} in {took_s:.0f} s\n")
    sys.stdout.write(f"{table(figures)}\n{os.cpu_count()} cores\n")
    if "scale" in wanted:
        sys.stdout.write(f"{scale(options)}\n")


if __name__ == "__main__":
    main()

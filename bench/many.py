"""Many partitions and many connections on one broker, Moldau beside Apache Kafka in one run.

    python -m bench.many                                     2,000 partitions, 1,000 connections (about 6 minutes)
    python -m bench.many --topics 4 --partitions 25 --connections 50 --records 20000     a quick try

Both brokers live side by side. Each holds the same topics and idle connections; Apache Kafka's ProducerPerformance
writes to every topic of one and of the other in turn; then both are stopped cleanly and started again. A ratio above
1.00 is better than Apache Kafka, whichever way the raw figure points.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import resource
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from confluent_kafka.admin import AdminClient, NewTopic

from bench.brokers import API_VERSIONS_V0, OURS, Broker, answers, java, two_brokers

RECORD_BYTES = 1_000
METADATA_V1_NO_TOPICS = struct.pack(">ihhihi", 14, 3, 1, 2, -1, 0)


def every_partition_is_led(partitions: int) -> Callable[[Broker], bool]:
    """Ready when all partitions have leaders; asked over one connection, for a new client a time would be slow."""
    clients: dict[str, AdminClient] = {}

    def ready(broker: Broker) -> bool:
        if not answers(broker):
            return False
        client = clients.setdefault(broker.name, AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}))
        try:
            topics = client.list_topics(timeout=10).topics.values()
        except Exception:
            return False
        led = sum(one.leader >= 0 for topic in topics for one in topic.partitions.values())
        return bool(led >= partitions)

    return ready


def create_topics(broker: Broker, names: list[str], partitions: int) -> float:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    begun = time.monotonic()
    for name in names:
        made = admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1)])
        made[name].result(120)
    return time.monotonic() - begun


def produce(broker: Broker, topic: str, records: int) -> tuple[float, float]:
    """Megabytes, and seconds by the tool's own clock."""
    words = ["--topic", topic, "--num-records", str(records), "--record-size", str(RECORD_BYTES), "--throughput", "-1"]
    words += ["--producer-props", f"bootstrap.servers={broker.bootstrap}"]
    command = java("org.apache.kafka.tools.ProducerPerformance", *words, jvm=["-Xmx512M"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    rates = re.findall(r"([\d.]+) records/sec", done.stdout)
    if done.returncode or not rates:
        sys.exit(f"ProducerPerformance on {broker.name} failed: {done.stdout[-500:]}{done.stderr[-500:]}")
    return records * RECORD_BYTES / 1e6, records / float(rates[-1])


async def open_connections(port: int, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Clients that said hello and asked for the brokers, as any real one does, and then are idle."""
    opened = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(API_VERSIONS_V0 + METADATA_V1_NO_TOPICS)
        for _ in range(2):
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            await reader.readexactly(size)
        opened.append((reader, writer))
    return opened


@contextmanager
def connections(brokers: list[Broker], count: int) -> Iterator[None]:
    loop = asyncio.new_event_loop()
    held = [loop.run_until_complete(open_connections(broker.port, count)) for broker in brokers]
    try:
        yield
    finally:
        for _, writer in (one for crowd in held for one in crowd):
            with suppress(OSError):
                writer.close()
        loop.run_until_complete(asyncio.sleep(0.1))
        loop.close()


def measure(brokers: list[Broker], given: argparse.Namespace) -> None:
    names = [f"many-{number:02}" for number in range(given.topics)]
    total = given.topics * given.partitions
    for broker in brokers:
        broker.start(answers)
        broker.figures["create"] = create_topics(broker, names, given.partitions)
    with connections(brokers, given.connections):
        time.sleep(2)
        for broker in brokers:
            broker.figures["memory"] = broker.memory_mb()
        sums = {broker.name: [0.0, 0.0] for broker in brokers}
        for turn, name in enumerate(names):
            for broker in brokers if turn % 2 else brokers[::-1]:
                megabytes, seconds = produce(broker, name, given.records)
                sums[broker.name][0] += megabytes
                sums[broker.name][1] += seconds
        for broker in brokers:
            broker.figures["produce"] = sums[broker.name][0] / sums[broker.name][1]
            broker.figures["loaded-memory"] = broker.memory_mb()
    for broker in brokers:
        begun = time.monotonic()
        broker.stop()
        broker.figures["stop"] = time.monotonic() - begun
    for _ in range(given.starts):
        for broker in brokers:
            seconds = broker.start(every_partition_is_led(total))
            broker.figures["start"] = min(seconds, broker.figures.get("start", seconds))
            time.sleep(1)
            broker.figures["memory-after-start"] = broker.memory_mb()
            broker.stop()


def report(brokers: list[Broker], given: argparse.Namespace) -> str:
    first, second = brokers
    units = {"produce": "MB/s", "create": "s", "stop": "s", "start": "s"}
    lines = [
        f"{given.topics} topics of {given.partitions} partitions, {given.connections} connections, "
        f"{given.records} records of {RECORD_BYTES} bytes a topic",
        f"{'figure':<20}{first.name:>10}{second.name:>10} {'unit':<6}{'ratio':>7}",
    ]
    for figure, mine in first.figures.items():
        theirs = second.figures[figure]
        ratio = mine / theirs if figure == "produce" else theirs / mine
        lines.append(f"{figure:<20}{mine:>10.2f}{theirs:>10.2f} {units.get(figure, 'MB'):<6}{ratio:>7.2f}")
    return "\n".join(lines) + "\n"


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--ours", default=OURS, help="the command of the first side; {port}, {dir} and {python} are known")
    ask.add_argument("--topics", type=int, default=20)
    ask.add_argument("--partitions", type=int, default=100, help="of each topic")
    ask.add_argument("--connections", type=int, default=1_000)
    ask.add_argument("--records", type=int, default=50_000, help="of each topic")
    ask.add_argument("--starts", type=int, default=3, help="after the clean stop; the best counts")
    ask.add_argument("--twice-kafka", action="store_true", help="Apache Kafka on both sides, to see the noise")
    given = ask.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with two_brokers(given.ours, twice_kafka=given.twice_kafka) as brokers:
        measure(brokers, given)
    sys.stdout.write(report(brokers, given) + f"{os.cpu_count()} cores\n")


if __name__ == "__main__":
    main()

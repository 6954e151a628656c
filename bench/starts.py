"""How long a start takes with thousands of partitions, after a clean stop and after kill -9, and what they cost idle.

    python -m bench.starts                                       20,000 partitions, 1,024 descriptors (about 3 minutes)
    python -m bench.starts --partitions 2000 --threads 1 2       a quick try

Every partition gets two batches, so that a crash leaves something to recover in each; `--bytes` makes them large.
Memory is what the process has resident: fresh, with every partition made, after all were written to, and restarted.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench.stalls import say
from moldau.embedded.process import BrokerProcess, reachable
from moldau.wire.messages import CreateTopicsRequest, ProduceRequest
from moldau.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.differential.batches import batch
from tests.hostile.attacker import Attacker

PARTITIONS_PER_REQUEST_MAX = 10_000
PRODUCED_AT_ONCE = 500
PRODUCED_BYTES_MAX = 32 << 20
START_S_MAX = 600.0
ANSWER_S_MAX = 300.0


def start(folder: Path, *, descriptors: int, threads: int) -> tuple[BrokerProcess, float]:
    """The broker, and the seconds until it answered."""
    command = ["prlimit", f"--nofile={descriptors}:{descriptors}", sys.executable, "-P", "-m", "moldau", "start"]
    command += ["--host", "127.0.0.1", "--port", "0", "--data-dir", str(folder / "data"), "--stop-with-stdin"]
    command += ["--override", f"num.recovery.threads.per.data.dir={threads}"]
    broker = BrokerProcess(command, scratch=Path(tempfile.mkdtemp(dir=folder)))
    begun = time.monotonic()
    broker.start(timeout_s=START_S_MAX)
    return broker, time.monotonic() - begun


def memory_mb(broker: BrokerProcess) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{broker.pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def descriptors_of(broker: BrokerProcess) -> int:
    return len(os.listdir(f"/proc/{broker.pid}/fd"))


def create(client: Attacker, partitions: int) -> None:
    first = min(partitions, PARTITIONS_PER_REQUEST_MAX)
    topic = CreatableTopic(name="many", num_partitions=first, replication_factor=1)
    made = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=300_000), 7)
    assert made.topics[0].error_code == 0, made
    for count in range(2 * first, partitions + 1, first):
        wanted = CreatePartitionsTopic(name="many", count=count, assignments=None)
        more = client.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=300_000), 3)
        assert more.results[0].error_code == 0, more


def produce(client: Attacker, partitions: int, size_bytes: int) -> None:
    records = batch([b"x" * size_bytes], timestamp=int(time.time() * 1000))
    at_once = max(1, min(PRODUCED_AT_ONCE, PRODUCED_BYTES_MAX // size_bytes))
    for _ in range(2):
        for first in range(0, partitions, at_once):
            indexes = range(first, min(partitions, first + at_once))
            data = [PartitionProduceData(index=index, records=records) for index in indexes]
            topics = [TopicProduceData(name="many", partition_data=data)]
            answer = client.ask(ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=topics), 9)
            assert {each.error_code for each in answer.responses[0].partition_responses} == {0}


def summary(broker: BrokerProcess) -> str:
    lines = [line for line in broker.output().splitlines() if " logs in " in line]
    return lines[-1].partition("opened ")[2] if lines else ""


def end(broker: BrokerProcess, how: signal.Signals) -> float:
    begun = time.monotonic()
    broker.end(how)
    return time.monotonic() - begun


def measure(folder: Path, options: argparse.Namespace) -> None:
    limits = {"descriptors": options.descriptors, "threads": options.threads[0]}
    broker, took_s = start(folder, **limits)
    say(f"| fresh start | {took_s:.2f} s | {memory_mb(broker):.0f} MB | |")
    address = reachable(next(iter(broker.listeners.values())))
    with Attacker((address.host, address.port), wait_s=ANSWER_S_MAX) as client:
        begun = time.monotonic()
        create(client, options.partitions)
        took_s = time.monotonic() - begun
        say(f"| {options.partitions:,} partitions made | {took_s:.2f} s | {memory_mb(broker):.0f} MB | |")
        begun = time.monotonic()
        produce(client, options.partitions, options.bytes)
        took_s = time.monotonic() - begun
        open_files = f"{descriptors_of(broker)} descriptors of {options.descriptors}"
        say(f"| each written to twice | {took_s:.2f} s | {memory_mb(broker):.0f} MB | {open_files} |")
    for how, name in ((signal.SIGTERM, "a clean stop"), (signal.SIGKILL, "kill -9")):
        for threads in options.threads:
            stopped_s = end(broker, how)
            broker, took_s = start(folder, descriptors=options.descriptors, threads=threads)
            what = f"start after {name} ({stopped_s:.1f} s), {threads} threads"
            say(f"| {what} | {took_s:.2f} s | {memory_mb(broker):.0f} MB | {summary(broker)} |")
    end(broker, signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=20_000)
    parser.add_argument("--descriptors", type=int, default=1_024)
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--bytes", type=int, default=100, help="the size of each record")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="moldau-starts-"))
    say("| | took | memory | |\n|---|---|---|---|")
    try:
        measure(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

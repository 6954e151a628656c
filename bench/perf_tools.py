"""How many records a second producer-perf and consumer-perf reach beside Apache Kafka's own, on one broker of ours.

    python -m bench.perf_tools                      three rounds of each row (about four minutes on a quiet machine)
    python -m bench.perf_tools --rounds 1 --scale 0.1

Each tool as a user runs it, with the defaults of each, in turns; the figure is the one that the tool prints of itself,
which leaves the start of a JVM out, for a consumer without its time to join (fetch.nMsg.sec). Printed are medians,
their ratio, and the least ratio of a round. What is consumed was produced by Java's tool (16 KiB batches) or by ours.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence

import moldau
from bench.stalls import say
from moldau.cli.shell_scripts import CLASSES
from tests.apache_kafka import java_command

HEAP = ("-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
RUN_S_MAX = 900.0
OURS, APACHES = "ours", "Apache Kafka's"


def run(tool: str, whose: str, servers: str, words: Sequence[str]) -> float:
    """The records a second that it says of itself."""
    line = ["--bootstrap-server", servers, *words]
    own = [sys.executable, "-m", "moldau", tool, *line]
    command = own if whose == OURS else java_command(CLASSES[tool][0], *line, jvm=HEAP)
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S_MAX, check=True)
    told = done.stdout.strip().splitlines()[-1]
    if tool == "consumer-perf":
        return float(told.rsplit(",", 1)[1])
    return float(told.split(" records/sec", maxsplit=1)[0].rsplit(" ", 1)[1])


def produce(topic: str, records: int, size: int, *more: str) -> list[str]:
    return ["--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1", *more]


def rows(servers: str, scale: float) -> Iterator[tuple[str, str, list[str]]]:
    """What is measured, the tool and its words; what a consumer reads is produced before."""
    small, large = int(3_000_000 * scale), int(500_000 * scale)
    same = ("--command-property", "batch.size=16384")
    yield f"produce {small:,} of 100 bytes", "producer-perf", produce("small", small, 100)
    yield "the same, batches of 16 KiB", "producer-perf", produce("small", small, 100, *same)
    yield f"produce {large:,} of 1,000 bytes", "producer-perf", produce("large", large, 1_000)
    yield "the same, batches of 16 KiB", "producer-perf", produce("large", large, 1_000, *same)
    for size, count, whose in ((100, int(8_000_000 * scale), OURS), (100, small, APACHES), (1_000, large, APACHES)):
        topic = f"of-{size}-{count}"
        run("producer-perf", whose, servers, produce(topic, count, size))
        words = ["--topic", topic, "--num-records", str(count)]
        yield f"consume {count:,} of {size:,} bytes, batches {whose}", "consumer-perf", words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    options = parser.parse_args()
    with moldau.run() as broker:
        say(f"{'':<52} {'Kafka /s':>10} {'ours /s':>10} {'ratio':>6} {'least':>6}")
        for name, tool, words in rows(broker.bootstrap_servers, options.scale):
            pairs = [
                tuple(run(tool, whose, broker.bootstrap_servers, words) for whose in (APACHES, OURS))
                for _ in range(options.rounds)
            ]
            theirs, ours = (statistics.median(each) for each in zip(*pairs, strict=True))
            least = min(own / other for other, own in pairs)
            say(f"{name:<52} {theirs:>10,.0f} {ours:>10,.0f} {ours / theirs:>6.2f} {least:>6.2f}")


if __name__ == "__main__":
    main()

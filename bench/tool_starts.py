"""How long each tool takes from its start to its end beside Apache Kafka's own, for --help and for one daily question.

    python -m bench.tool_starts                          every tool that Apache Kafka has, five rounds (about 6 minutes)
    python -m bench.tool_starts --rounds 1 topics acls   a quick look at two
    python -m bench.tool_starts --kafka-home ~/kafka     theirs as their scripts start them

Both run in turns on the same broker of ours. Without --kafka-home, which names an unpacked Apache Kafka, Java is run by
itself: what its scripts do before that, and the JMX that they switch on, is left out. Printed are the medians of the
time that passed and of the processor's, and their ratios; on a busy machine the second means more. A tool that has no
question but work is given the least of it: one record.

What else is installed beside Moldau counts: where there is typing_extensions, which tests and extras need, msgspec
loads it, for a fifth of a start. So let --program name the command of an environment with `pip install moldau` alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import starmap
from pathlib import Path
from typing import NamedTuple

import moldau
from bench.stalls import say
from moldau.cli.shell_scripts import CLASSES
from tests.apache_kafka import java_command

HEAP = ("-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
RUN_S_MAX = 120.0
TOPIC = "orders"
SERVERS, FILE = "SERVERS", "FILE"
# One line each that Apache Kafka's tool takes as well.
QUESTIONS = {
    "topics": "--bootstrap-server SERVERS --describe --topic orders",
    "consumer-groups": "--bootstrap-server SERVERS --list",
    "groups": "--bootstrap-server SERVERS --list",
    "configs": "--bootstrap-server SERVERS --describe --topic orders",
    "acls": "--bootstrap-server SERVERS --list",
    "broker-api-versions": "--bootstrap-server SERVERS",
    "cluster": "cluster-id --bootstrap-server SERVERS",
    "features": "--bootstrap-server SERVERS describe",
    "get-offsets": "--bootstrap-server SERVERS --topic orders",
    "leader-election": "--bootstrap-server SERVERS --election-type preferred --all-topic-partitions",
    "log-dirs": "--bootstrap-server SERVERS --describe",
    "metadata-quorum": "--bootstrap-server SERVERS describe --status",
    "reassign-partitions": "--bootstrap-server SERVERS --list",
    "transactions": "--bootstrap-server SERVERS list",
    "client-metrics": "--bootstrap-server SERVERS --list",
    "delete-records": "--bootstrap-server SERVERS --offset-json-file FILE",
    "console-consumer": "--bootstrap-server SERVERS --topic orders --from-beginning --max-messages 1",
    "console-producer": "--bootstrap-server SERVERS --topic orders",
    "producer-perf": "--bootstrap-server SERVERS --topic orders --num-records 1 --record-size 10 --throughput -1",
    "consumer-perf": "--bootstrap-server SERVERS --topic orders --num-records 1",
    "e2e-latency": "--bootstrap-server SERVERS --topic orders --num-records 1 --producer-acks all --record-size 10",
    "verifiable-producer": "--bootstrap-server SERVERS --topic orders --max-messages 1",
    "verifiable-consumer": "--bootstrap-server SERVERS --topic orders --group-id all --max-messages 1",
    "streams-application-reset": "--bootstrap-server SERVERS --application-id none",
}


class Taken(NamedTuple):
    passed_s: float
    cpu_s: float


def taken(command: Sequence[str]) -> Taken:
    begun, before = time.perf_counter(), os.times()
    subprocess.run(command, input=b"one\n", capture_output=True, timeout=RUN_S_MAX, check=False)
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Taken(time.perf_counter() - begun, cpu_s)


def median(times: Sequence[Taken]) -> Taken:
    return Taken(*map(statistics.median, zip(*times, strict=True)))


def command_of_theirs(name: str, kafka_home: Path | None) -> list[str]:
    if kafka_home is None:
        return java_command(CLASSES[name][0], jvm=HEAP)
    return [str(kafka_home / "bin" / "kafka-run-class.sh"), CLASSES[name][0]]  # which is all that each script runs


def compared(name: str, line: str, options: argparse.Namespace) -> tuple[Taken, Taken]:
    """The medians of theirs and ours, in turns."""
    theirs = [*command_of_theirs(name, options.kafka_home), *line.split()]
    ours = [options.program, name, *line.split()]
    times = [(taken(theirs), taken(ours)) for _ in range(options.rounds)]
    return median([each for each, _ in times]), median([each for _, each in times])


def row(theirs_s: float, ours_s: float) -> str:
    return f"{theirs_s:>8.2f} {ours_s:>8.3f} {theirs_s / max(ours_s, 0.001):>6.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default=str(Path(sys.executable).with_name("moldau")), help="the command of ours")
    parser.add_argument("--kafka-home", type=Path, metavar="DIR", help="run DIR/bin/kafka-run-class.sh instead of Java")
    parser.add_argument("tools", nargs="*", metavar="TOOL", help="of these alone")
    options = parser.parse_args()
    names = options.tools or sorted(CLASSES)
    with moldau.run() as broker, tempfile.TemporaryDirectory() as folder:
        broker.create_topic(TOPIC)
        path = Path(folder) / "offsets.json"
        path.write_text(json.dumps({"partitions": [{"topic": TOPIC, "partition": 0, "offset": 0}], "version": 1}))
        subprocess.run([options.program, "produce", TOPIC, "-b", broker.bootstrap_servers], input=b"one\n", check=True)
        say(f"{'':<35} {'passed':^24} {'processor':^24}")
        say(f"{'tool':<26} {'what':<8} " + " ".join([f"{'Kafka s':>8} {'ours s':>8} {'ratio':>6}"] * 2))
        for name in names:
            for what, line in (("--help", "--help"), ("question", QUESTIONS.get(name))):
                if line is None:
                    continue
                line = line.replace(SERVERS, broker.bootstrap_servers).replace(FILE, str(path))
                theirs, own = compared(name, line, options)
                say(f"{name:<26} {what:<8} " + " ".join(starmap(row, zip(theirs, own, strict=True))))


if __name__ == "__main__":
    main()

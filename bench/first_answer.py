"""How long `moldau sql` takes to its first answer: a new Spark for each, with and without the archive of its classes.

    python -m bench.first_answer                  three of each kind (about two minutes on a quiet machine)
    python -m bench.first_answer --rounds 1

Seconds are those of the command from its start to its first row; CPU seconds are those of all its processes (the
command, the JVM and Spark's Python workers) until the last of them has ended.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import moldau
from bench.stalls import say

BECOME_THE_PARENT_OF_ORPHANS = 36  # prctl's PR_SET_CHILD_SUBREAPER: the JVM outlives the command
RECORDS = 1_000
QUESTION = "select customer, sum(amount) from orders group by customer"


class Answer(NamedTuple):
    first_row_s: float
    cpu_s: float


@contextmanager
def orders() -> Iterator[str]:
    """A broker with a topic of JSON in two partitions."""
    with moldau.run() as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result()
        producer = Producer({"bootstrap.servers": servers, "log_level": 0})
        for number in range(RECORDS):
            producer.produce("orders", json.dumps({"id": number, "customer": f"c{number % 7}", "amount": number * 1.5}))
        producer.flush()
        yield servers


def asked(servers: str, scratch: Path, *options: str) -> Answer:
    environment = {
        **os.environ,
        "MOLDAU_BOOTSTRAP_SERVERS": servers,
        "MOLDAU_HOME": str(scratch / "home"),
        "XDG_CACHE_HOME": str(scratch / "cache"),
    }
    command = [sys.executable, "-m", "moldau", "sql", "--master", "local[2]", "-o", "json", *options, QUESTION]
    before, begun_s = cpu_s(), time.monotonic()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        first_row_s = time.monotonic() - begun_s
        process.stdout.read()
    assert json.loads(first)["customer"].startswith("c"), first
    wait_for_orphans()
    answer = Answer(first_row_s, cpu_s() - before)
    say(f"{' '.join(options) or 'plain'}: {answer.first_row_s:.1f} s, CPU {answer.cpu_s:.1f} s")
    return answer


def cpu_s() -> float:
    """Of the children that have ended and were waited for."""
    used = os.times()
    return used.children_user + used.children_system


def wait_for_orphans() -> None:
    """All but the broker, which is the only child that does not end by itself."""
    while len(children()) > 1:
        os.waitpid(-1, 0)


def children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    ctypes.CDLL(None).prctl(BECOME_THE_PARENT_OF_ORPHANS, 1, 0, 0, 0)
    with orders() as servers, tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        without = [asked(servers, scratch) for _ in range(rounds)]
        leaves = asked(servers, scratch, "--keep-classes")
        with_archive = [asked(servers, scratch) for _ in range(rounds)]
    for name, answers in (
        ("without", without),
        ("without, and the archive made after it", [leaves]),
        ("with", with_archive),
    ):
        seconds, cpu = [one.first_row_s for one in answers], [one.cpu_s for one in answers]
        say(f"{name}: first row {median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}), "
            f"CPU {median(cpu):.1f} s ({min(cpu):.1f} to {max(cpu):.1f})")  # fmt: skip
    say(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

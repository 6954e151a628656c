"""ConsumerGroupCommand in its breadth: what an operator asks and is told, before, while and after a group lives.

`transcripts/` holds what Apache Kafka's broker makes the tool print. `python -m tests.suites.group_commands PROTOCOL`
prints it anew, from a fresh broker of Apache Kafka.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.brokers import running_broker
from tests.clients.drivers import LineProcess
from tests.clients.toolchains import tool_host
from tests.faults.clients import create_topic
from tests.suites.tools import Printed, Tools

SETTLE_S = 30.0
FIRST_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z, and a record each second after it, to either partition in turn

NOBODY = """
--list
--list --state --type
--describe --group nobody
--describe --group nobody --members
--describe --group nobody --state
--describe --all-groups
--delete --group nobody
--delete-offsets --group nobody --topic orders
--reset-offsets --group made --topic orders:1 --to-latest --dry-run
--describe --group made
--reset-offsets --group made --topic orders:1 --to-latest --execute
--describe --group made
--describe --group made --offsets --verbose
--describe --group made --members
--describe --group made --members --verbose
--describe --group made --state
--describe --group made --state --verbose
"""
LIVING = """
--list
--list --state
--list --state stable
--list --state stable,empty --type
--list --type
--list --type classic
--list --type consumer
--list --type classic --state empty
--list --state dead
--describe --group living
--describe --group living --offsets --verbose
--describe --group living --members
--describe --group living --members --verbose
--describe --group living --state
--describe --group living --state --verbose
--describe --group living --group made --offsets
--describe --all-groups --state
--describe --all-groups --members
--delete --group living
--delete --group living --group nobody
--delete-offsets --group living --topic orders
--delete-offsets --group living --topic other
--reset-offsets --group living --topic orders --to-earliest --execute
--reset-offsets --all-groups --topic orders:0 --to-earliest --dry-run
"""
LEFT = """
--describe --group living
--reset-offsets --group living --topic orders --to-earliest
--reset-offsets --group living --topic orders --to-earliest --dry-run
--reset-offsets --group living --topic orders --to-latest --dry-run
--reset-offsets --group living --topic orders --to-offset 4 --dry-run
--reset-offsets --group living --topic orders --to-offset 99 --dry-run
--reset-offsets --group living --topic orders:0 --shift-by -2 --dry-run
--reset-offsets --group living --topic orders:0 --shift-by 1 --dry-run
--reset-offsets --group living --topic orders:0 --shift-by -99 --dry-run
--reset-offsets --group living --topic orders:0 --shift-by 99 --dry-run
--reset-offsets --group living --topic orders:1 --shift-by 1 --dry-run
--reset-offsets --group living --topic orders --to-current --dry-run
--reset-offsets --group living --topic orders --by-duration PT1M --dry-run
--reset-offsets --group living --topic orders --by-duration P9000D --dry-run
--reset-offsets --group living --topic orders --to-datetime 2023-11-14T22:13:25.000+00:00 --dry-run
--reset-offsets --group living --topic orders --to-datetime 2023-11-14T22:13:25.000+01:00 --dry-run
--reset-offsets --group living --topic orders:0 --to-offset 4 --dry-run --export
--reset-offsets --group living --group made --topic orders:0,1 --to-offset 4 --dry-run --export
--reset-offsets --group living --all-topics --to-offset 2 --dry-run
--reset-offsets --all-groups --all-topics --to-latest --dry-run
--reset-offsets --group living --topic orders --topic other --to-earliest --dry-run
--reset-offsets --group living --topic missing --to-earliest --dry-run
--reset-offsets --group living --topic orders:9 --to-earliest --dry-run
--reset-offsets --group living --from-file PLAN --dry-run
--describe --group living
--reset-offsets --group living --from-file PLAN --execute
--describe --group living
--reset-offsets --group living --topic orders:0 --shift-by 3 --execute
--reset-offsets --group living --topic orders:1 --to-datetime 2023-11-14T22:13:25.000+00:00 --execute
--describe --group living
--reset-offsets --all-groups --all-topics --to-current --execute
--describe --all-groups
--delete-offsets --group living --topic orders:1
--describe --group living
--delete-offsets --group living --topic orders
--delete-offsets --group living --topic orders:7
--delete-offsets --group living --topic missing
--describe --group living
--delete --group living --group nobody --group made
--list
--reset-offsets --group made --topic orders --to-earliest --execute
--delete --all-groups
--list
--validate-regex ^orders-[0-9]+$
--validate-regex orders(
"""
PLAN = "orders,0,1\norders,1,99\n"


class GroupTools(Protocol):
    """Apache Kafka's, or ours."""

    @property
    def bootstrap(self) -> str: ...

    def groups(self, *args: str) -> Printed: ...


def transcript(tools: GroupTools, *, protocol: str, scratch: Path) -> str:
    """Everything the commands print on a fresh broker, in a form that is the same each time."""
    for topic in ("orders", "other"):
        create_topic(tools.bootstrap, topic, partitions=2)
    _produce(tools.bootstrap)
    (scratch / "plan.csv").write_text(PLAN)
    told = _tell(tools, NOBODY, scratch)
    with _member(tools.bootstrap, protocol):
        told += _tell(tools, LIVING, scratch)
    return told + _tell(tools, LEFT, scratch)


def _produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce("orders", b"v", partition=number % 2, timestamp=FIRST_MS + number * 1_000)
    assert producer.flush(SETTLE_S) == 0


@contextmanager
def _member(bootstrap: str, protocol: str) -> Iterator[None]:
    """A member of `living` that has both partitions and has committed offset 3 of the first."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "clerk",
            "group.id": "living",
            "group.protocol": protocol,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe(["orders"])
        deadline_s = time.monotonic() + SETTLE_S
        while len(consumer.assignment()) < 2:
            assert time.monotonic() < deadline_s, "the member was assigned nothing"
            consumer.poll(0.1)
        consumer.commit(offsets=[TopicPartition("orders", 0, 3)], asynchronous=False)
        yield
    finally:
        consumer.close()


def _tell(tools: GroupTools, commands: str, scratch: Path) -> str:
    told = ""
    for line in commands.split("\n")[1:-1]:
        arguments = [str(scratch / "plan.csv") if each == "PLAN" else each for each in line.split()]
        told += f"$ {line}\n" + _normalised(tools.groups(*arguments), line)
    return told


def _normalised(printed: Printed, command: str) -> str:
    # A tool that ends with 1 has printed its whole usage; what it has to say comes last.
    errors = [line for line in printed.err.splitlines() if not re.match(r"SLF4J|\s+at |Caused by|\s*$", line)]
    lines = printed.lines + (errors[-1:] if printed.exit_code else errors)
    if command.startswith("--list"):
        lines.sort()  # a broker may list its groups in any order
    text = "".join(" ".join(line.split()) + "\n" for line in lines)
    text = re.sub(r"clerk-[0-9a-f-]{36}|[\w+/-]{22}(?= /127)", "MEMBER", text)
    text = re.sub(r"127\.0\.0\.1:\d+ \(\d+\)", "HOST (ID)", text)
    return text + (f"exit {printed.exit_code}\n" if printed.exit_code else "")


def main() -> None:
    import tempfile

    with (
        running_broker("apache") as bootstrap,
        LineProcess(tool_host) as host,
        tempfile.TemporaryDirectory() as scratch,
    ):
        print(transcript(Tools(host, bootstrap), protocol=sys.argv[1], scratch=Path(scratch)), end="")


if __name__ == "__main__":
    main()

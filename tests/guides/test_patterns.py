"""The programs of the guide on patterns, run as a reader runs them, against the broker that `--broker` names."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer

from tests.brokers import PROJECT

PROGRAMS = PROJECT / "examples" / "patterns"
GUIDE = PROJECT / "docs" / "guides" / "patterns.md"
RUN_S_MAX = 120.0
WAIT_S_MAX = 30.0

EXPECTED = {
    "retry_topics.py": [
        "handled fine at attempt 1",
        "handled flaky at attempt 3",
        "handled good at attempt 1",
        "gave up on broken after 3 attempts: it is in TOPIC.dead-letters",
    ],
    "long_work.py": [
        "worked 8 s on first",
        "worked 8 s on second",
        "partitions were assigned 1 time: the group saw no member leave",
    ],
    "change_log.py": ["1001 changes, 9 rows, the same as written: True"],
    "activity_tracking.py": [
        "sent 10000, lost 0, counted 10000: {'/': 3334, '/cart': 3333, '/coffee': 3333}",
    ],
    "request_reply.py": ["3 euros for coffee", "3 euros for tea", "3 euros for water"],
}


def command(program: str, *arguments: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / program), *arguments]


def a_topic() -> str:
    return f"pattern-{uuid4().hex[:8]}"


def values(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """At least that many committed records of a topic, and all that follow within a second."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": a_topic(),
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    found = consumer.consume(count, timeout=WAIT_S_MAX) + consumer.consume(count, timeout=1)
    consumer.close()
    return [message.value() for message in found]


@pytest.mark.parametrize("program", EXPECTED)
def test_a_program_does_what_the_guide_says(program: str, bootstrap: str) -> None:
    topic = a_topic()
    finished = subprocess.run(
        command(program, bootstrap, topic), capture_output=True, text=True, timeout=RUN_S_MAX, check=False
    )
    assert finished.returncode == 0, finished.stderr
    # Records of different partitions are handled in any order.
    assert sorted(finished.stdout.replace(topic, "TOPIC").splitlines()) == sorted(EXPECTED[program])


def test_a_record_that_always_fails_is_in_the_topic_of_dead_letters(bootstrap: str) -> None:
    topic = a_topic()
    subprocess.run(command("retry_topics.py", bootstrap, topic), timeout=RUN_S_MAX, check=True)
    assert values(bootstrap, f"{topic}.dead-letters", 1) == [b"broken"]


def test_results_are_there_exactly_once_although_the_program_is_killed(bootstrap: str) -> None:
    source, target = a_topic(), a_topic()
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(2_000):
        producer.produce(source, f"order {number}")
    assert not producer.flush(WAIT_S_MAX)
    program = command("exactly_once.py", bootstrap, source, target, "one")
    for commits in (2, 5):
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            for _ in range(commits):
                assert running.stdout.readline().startswith("committed ")
            running.send_signal(signal.SIGKILL)
    subprocess.run(program, timeout=RUN_S_MAX, check=True)
    found = Counter(values(bootstrap, target, 2_000))
    assert found == Counter(f"ORDER {number}".encode() for number in range(2_000))


def test_every_program_is_in_the_guide() -> None:
    guide = GUIDE.read_text()
    assert not [path.name for path in PROGRAMS.glob("*.py") if f"patterns/{path.name}" not in guide]

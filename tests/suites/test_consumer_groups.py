"""`moldau consumer-groups` beside Apache Kafka's ConsumerGroupCommand: the same lines, and the same effects."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.brokers import running_broker
from tests.suites.conftest import NewTopic
from tests.suites.group_commands import transcript
from tests.suites.own_tools import OwnTools
from tests.suites.tools import TRANSCRIPTS, Tools

# A stack trace's first line, and what ends with 1 instead of 0, or 1 instead of a whole usage.
ONLY_THEIRS = re.compile(r"java\.util\.concurrent\.|org\.apache\.kafka\.common\.errors\.|exit \d")
ONLY_OURS = re.compile(r"WARN New offset|exit \d")  # Apache Kafka's goes to a log


def by_command(text: str, *, without: re.Pattern[str]) -> list[tuple[str, list[str]]]:
    """Rows may come in any order, which is that of a HashMap in Java."""
    told: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            told.append((line, []))
        elif not without.match(line):
            told[-1][1].append(line.removeprefix("moldau consumer-groups: "))
    return [(command, sorted(lines)) for command, lines in told]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_command_prints_what_apache_kafkas_tool_prints(broker_kind: str, protocol: str, tmp_path: Path) -> None:
    """In one sequence, so that what each command did shows in what the next ones print."""
    with running_broker(broker_kind) as bootstrap:
        told = transcript(OwnTools(bootstrap), protocol=protocol, scratch=tmp_path)
    wanted = (TRANSCRIPTS / f"groups-{protocol}.txt").read_text()
    assert by_command(told, without=ONLY_OURS) == by_command(wanted, without=ONLY_THEIRS)


JOIN_S_MAX = 30.0
SIDE_BY_SIDE = """
--describe --group GROUP
--describe --group GROUP --offsets --verbose
--describe --group GROUP --members
--describe --group GROUP --members --verbose
--describe --group GROUP --state
--describe --group GROUP --state --verbose
"""
AFTERWARDS = """
--describe --group GROUP
--describe --group GROUP --members --verbose
--reset-offsets --group GROUP --topic TOPIC --to-earliest --dry-run
--reset-offsets --group GROUP --topic TOPIC:1 --shift-by -1 --dry-run --export
--reset-offsets --group GROUP --group a,b --topic TOPIC:1 --to-latest --dry-run --export
--reset-offsets --group GROUP --all-topics --by-duration PT1M --dry-run
--reset-offsets --group GROUP --to-offset 9 --topic TOPIC --dry-run
"""


@contextmanager
def members(bootstrap: str, group: str, topic: str, protocol: str) -> Iterator[None]:
    """Two, one of which is static, and both have something."""
    with ExitStack() as stack:
        consumers = []
        for instance in ({}, {"group.instance.id": "the-one-that-stays"}):
            settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, **instance}
            consumers.append(Consumer({**settings, "client.id": "clerk", "enable.auto.commit": False}))
            stack.callback(consumers[-1].close)
            consumers[-1].subscribe([topic])
        deadline_s = time.monotonic() + JOIN_S_MAX
        while [len(each.assignment()) for each in consumers] not in ([1, 2], [2, 1]):
            assert time.monotonic() < deadline_s, "the members did not come to share the topic"
            for each in consumers:
                each.poll(0.05)
        consumers[0].commit(offsets=[TopicPartition(topic, 1, 1)], asynchronous=False)
        yield


def same(tools: Tools, own: OwnTools, commands: str, names: dict[str, str]) -> None:
    """To the last space, on standard output."""
    for line in commands.split("\n")[1:-1]:
        arguments = [re.sub("GROUP|TOPIC", lambda found: names[found[0]], each) for each in line.split()]
        ours, theirs = own.groups(*arguments).out.splitlines(), tools.groups(*arguments).out.splitlines()
        # A plan is in the order of a HashMap there.
        assert ours == theirs if "--describe" in line else sorted(ours) == sorted(theirs), line


@pytest.mark.parametrize("protocol", ["classic", pytest.param("consumer", marks=pytest.mark.long)])
def test_both_tools_print_the_same_to_the_last_space(
    tools: Tools, bootstrap: str, new_topic: NewTopic, group_id: str, protocol: str
) -> None:
    """With names that are wider than their columns."""
    names = {"GROUP": f"{group_id}-of-a-name-that-is-wide", "TOPIC": f"{new_topic(3)}"}
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(6):
        producer.produce(names["TOPIC"], b"v", partition=number % 3)
    assert producer.flush(JOIN_S_MAX) == 0
    own = OwnTools(bootstrap)
    with members(bootstrap, names["GROUP"], names["TOPIC"], protocol):
        same(tools, own, SIDE_BY_SIDE, names)
    same(tools, own, AFTERWARDS, names)

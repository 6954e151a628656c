"""`moldau streams-application-reset` beside Apache Kafka's StreamsResetter: the same lines, and the same effects."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer

from moldau.client.cluster import Cluster
from moldau.client.groups.asking import only
from moldau.client.groups.committed import commit_offsets, committed_offsets
from moldau.core.ids import TopicPartition
from tests.faults.clients import create_topic
from tests.suites.own_tools import OwnTools
from tests.suites.tools import Tools

STREAMS_RESETTER = "org.apache.kafka.tools.StreamsResetter"
FLUSH_S_MAX = 30.0
FIRST_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z, and a record each second after it, to either partition in turn
TOPICS = ("input", "between")
INTERNAL = (
    "store-changelog", "x-repartition", "y-subscription-registration-topic",
    "z-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000007-topic",
)  # fmt: skip
KEPT = ("output", "z-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-x-topic")


@dataclass(frozen=True, slots=True)
class Application:
    """Its topics begin with its id, so that those of two are told apart by nothing else."""

    id: str

    def topic(self, name: str) -> str:
        return f"{self.id}-{name}"

    def arguments(self, options: str, plan: Path) -> list[str]:
        words = [re.sub(r"\bof-(\w+)", rf"{self.id}-\1", each) for each in options.split()]
        return ["--application-id", self.id, *(str(plan) if each == "PLAN" else each for each in words)]


@pytest.fixture
def applications(bootstrap: str) -> tuple[Application, Application]:
    """Alike in all but their ids: one for Apache Kafka's tool, and one for ours."""
    mark = uuid.uuid4().hex[:8]
    both = Application(f"app-a{mark}"), Application(f"app-b{mark}")
    producer = Producer({"bootstrap.servers": bootstrap})
    for each in both:
        for name in TOPICS:
            create_topic(bootstrap, each.topic(name), partitions=2)
            for number in range(10):
                at_ms = FIRST_MS + number * 1_000
                producer.produce(each.topic(name), b"v", partition=number % 2, timestamp=at_ms)
        for name in (*INTERNAL, *KEPT):
            create_topic(bootstrap, each.topic(name))
    assert producer.flush(FLUSH_S_MAX) == 0
    return both


def told(text: str, application: Application) -> list[str]:
    """Topics and partitions come in the order of a HashSet there."""
    lines = (line.replace(application.id, "APP") for line in text.splitlines())
    return sorted(re.sub(r"\[(.*)\]", lambda found: str(sorted(found[1].split(", "))), line) for line in lines)


DRY = [
    "--input-topics of-input --dry-run",
    "--input-topics of-input,of-nothing --intermediate-topics of-between --dry-run",
    "--input-topics of-nothing --dry-run",
    "--dry-run",
    "--input-topics of-input --to-offset 4 --dry-run",
    "--input-topics of-input --to-offset 99 --dry-run",
    "--input-topics of-input --to-latest --dry-run",
    "--input-topics of-input --shift-by -3 --dry-run",
    "--input-topics of-input --to-datetime 2023-11-14T22:13:25.000 --dry-run",
    "--input-topics of-input --by-duration PT1M --dry-run",
    "--input-topics of-input --from-file PLAN --dry-run",
    "--internal-topics of-store-changelog,of-nothing --dry-run",
    "--internal-topics of-store-changelog --dry-run",
]
DONE = "--input-topics of-input --intermediate-topics of-between --shift-by -2"
USAGE = 2  # Apache Kafka's ends with 1, after it has begun


def test_both_do_and_print_the_same(
    tools: Tools, bootstrap: str, applications: tuple[Application, Application], tmp_path: Path
) -> None:
    own = OwnTools(bootstrap)
    theirs, ours = applications
    with Cluster(bootstrap, client_id="test", timeout_s=10.0) as cluster:
        for each in applications:
            commit_offsets(cluster, each.id, {TopicPartition(each.topic("input"), 1): 4})
            plan = "".join(f"{each.topic('input')},{number},{4 - number}\n" for number in range(2))
            (tmp_path / each.id).write_text(plan)
        for options in [*DRY, DONE]:
            they = tools.run(STREAMS_RESETTER, *theirs.arguments(options, tmp_path / theirs.id))
            we = own.run("streams-application-reset", *ours.arguments(options, tmp_path / ours.id))
            if we.exit_code == USAGE:
                assert they.exit_code == 1, options
            else:
                same = (we.exit_code, told(we.out, ours)) == (they.exit_code, told(they.out, theirs))
                assert same, f"{options}\n{we.out}{we.err}\n{they.out}"
        offsets = [
            {
                (place.topic.removeprefix(each.id), place.partition): known.offset
                for place, known in only(committed_offsets(cluster, [each.id])).items()
            }
            for each in applications
        ]
        left = {each.name or "" for each in cluster.metadata().topics}
    assert offsets[0] == offsets[1] == {("-input", 0): 3, ("-input", 1): 2, ("-between", 0): 5, ("-between", 1): 5}
    for each in applications:
        there = {name.removeprefix(f"{each.id}-") for name in left if name.startswith(each.id)}
        assert there == {*TOPICS, *KEPT}

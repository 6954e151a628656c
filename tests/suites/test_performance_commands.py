"""Performance tools beside Apache Kafka's on the broker of this test run: the same lines, but for their figures."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import run_tool
from tests.suites.conftest import NewTopic
from tests.suites.tools import CONSUMER_PERFORMANCE, END_TO_END, PRODUCER_PERFORMANCE, Tools

RECORDS, RECORD_BYTES = 3_000, 50
FIGURE = re.compile(r"\d+(\.\d+)?")
MIB = f"{RECORDS * RECORD_BYTES / 2**20:.4f}"
PRODUCE = f"--num-records {RECORDS} --record-size {RECORD_BYTES} --throughput -1"
CLASSES = {"producer-perf": PRODUCER_PERFORMANCE, "consumer-perf": CONSUMER_PERFORMANCE, "e2e-latency": END_TO_END}


def of_kafka(tools: Tools, name: str, line: str) -> list[str]:
    done = tools.run(CLASSES[name], *line.split())
    assert done.exit_code == 0, done.err
    return done.lines


def of_ours(tools: Tools, name: str, line: str) -> list[str]:
    done = run_tool(tools.bootstrap, name, *line.split())
    assert (done.returncode, done.stderr) == (0, "")
    return [each.rstrip() for each in done.stdout.splitlines() if each.strip()]


def shapes(lines: list[str]) -> list[str]:
    return [FIGURE.sub("N", line) for line in lines]


@pytest.mark.parametrize("more", ["", " --payload-monotonic", " --transactional-id perf --transaction-duration-ms 100"])
def test_producers(tools: Tools, new_topic: NewTopic, more: str) -> None:
    line = PRODUCE.replace(f"--record-size {RECORD_BYTES}", "") if "monotonic" in more else PRODUCE
    topic = new_topic()
    theirs, ours = (run(tools, "producer-perf", f"--topic {topic} {line}{more}") for run in (of_kafka, of_ours))
    assert shapes(ours) == shapes(theirs)
    assert ours[-1].split()[:3] == theirs[-1].split()[:3] == [str(RECORDS), "records", "sent,"]


@pytest.mark.parametrize(
    "more", ["", " --hide-header", " --show-detailed-stats --reporting-interval 1", " --from-latest --timeout 500"]
)
def test_consumers(tools: Tools, new_topic: NewTopic, more: str) -> None:
    topic = new_topic()
    of_ours(tools, "producer-perf", f"--topic {topic} {PRODUCE}")
    line = f"--topic {topic} --num-records {RECORDS}{more}"
    theirs, ours = (run(tools, "consumer-perf", line) for run in (of_kafka, of_ours))
    if "detailed" in more:  # as many lines as the time allowed
        assert ours[0] == theirs[0]
        assert {len(each.split(", ")) for each in ours + theirs} == {10}
        return
    assert shapes(ours) == shapes(theirs)
    cells = (0, 0) if "latest" in more else (MIB, RECORDS)
    for rows in (theirs, ours):
        row = rows[-1].split(", ")
        assert (float(row[2]), int(row[4])) == (float(cells[0]), int(cells[1]))


def test_latency(tools: Tools, new_topic: NewTopic) -> None:
    line = f"--topic {new_topic()} --num-records 20 --producer-acks all --record-size 10"
    theirs, ours = (run(tools, "e2e-latency", line) for run in (of_kafka, of_ours))
    assert shapes(ours) == shapes(theirs)

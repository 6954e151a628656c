"""What a plan says, and what it must not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.cli.failures import CommandFailed
from moldau.cli.kafka.reassignment.documents import Plan, Replica, assignment_json, checked, read_plan
from moldau.core.ids import TopicPartition

FIRST = TopicPartition("orders", 0)


def test_a_plan_is_what_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(assignment_json({FIRST: [1, 2]}, {Replica(2, *FIRST): "/data/2"}))
    assert json.loads(path.read_text())["partitions"][0]["log_dirs"] == ["any", "/data/2"]
    assert read_plan(str(path)) == Plan([(FIRST, [1, 2])], {Replica(2, *FIRST): "/data/2"})


def test_as_many_log_dirs_as_replicas(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    row = {"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["any"]}
    path.write_text(json.dumps({"partitions": [row]}))
    told = r"Size of replicas list \[1, 2\] is different from size of log dirs list \[any\] for partition orders-0"
    with pytest.raises(CommandFailed, match=told):
        read_plan(str(path))


@pytest.mark.parametrize(
    ("partitions", "told"),
    [
        ([], "Partition reassignment list cannot be empty"),
        ([(FIRST, [])], "Partition replica list cannot be empty"),
        ([(FIRST, [1]), (FIRST, [2])], "Partition reassignment contains duplicate topic partitions: orders-0"),
        ([(FIRST, [1, 1])], "duplicate entries: orders-0 contains multiple entries for 1"),
    ],
)
def test_a_plan_that_cannot_be_done(partitions: list[tuple[TopicPartition, list[int]]], told: str) -> None:
    with pytest.raises(CommandFailed, match=told):
        checked(Plan(partitions))

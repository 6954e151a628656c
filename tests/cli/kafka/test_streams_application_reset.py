"""`moldau streams-application-reset`: members that are still there, and bad use. Its lines are in tests/suites."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.cli.conftest import Tool

Done = Callable[..., str]
TOOL = "streams-application-reset"
JOIN_S_MAX = 30.0


@pytest.fixture
def lingering(bootstrap: str, topic: str) -> str:
    """The group of an instance that is gone, and whose member stays for a while: it is a static one."""
    group = f"app-{uuid.uuid4().hex[:8]}"
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.instance.id": "one", "client.id": "streams"}
    with closing(Consumer({**settings, "enable.auto.commit": False})) as consumer:
        consumer.subscribe([topic])
        deadline_s = time.monotonic() + JOIN_S_MAX
        while not consumer.assignment():
            assert time.monotonic() < deadline_s
            consumer.poll(0.1)
    return group


def test_members_that_linger_are_removed_by_force(tool: Tool, done: Done, lingering: str, topic: str) -> None:
    ended = tool(TOOL, "--application-id", lingering, "--input-topics", topic)
    told = (
        f"Consumer group '{lingering}' is still active and has following members: streams at 127.0.0.1."
        " Make sure to stop all running application instances before running the reset tool."
        " You can use option '--force' to remove active members from the group."
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"moldau {TOOL}: {told}\n")
    lines = done(TOOL, "--application-id", lingering, "--input-topics", topic, "--force").splitlines()
    assert lines == [
        f"Force deleting all active members in the group: {lingering}",
        f"Reset-offsets for input topics [{topic}]",
        f"Following input topics offsets will be reset to (for consumer group {lingering})",
        f"Topic: {topic} Partition: 0 Offset: 0",
        f"Topic: {topic} Partition: 1 Offset: 0",
        "Done.",
        "Deleting inferred internal topics []",
        "Done.",
    ]


def test_what_is_wrong_is_said_in_one_line_and_nothing_is_done(tool: Tool, topic: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{topic},0,5\n")
    see = f"; see: moldau {TOOL} --help"
    for words, told in (
        (f"--input-topics {topic}", f"the following arguments are required: --application-id{see}"),
        ("--application-id a --to-latest --shift-by -1", f"--shift-by and --to-latest exclude each other{see}"),
        (
            "--application-id a --internal-topics orders",
            "--internal-topics: orders is no internal topic of a; a dry run without this option shows them",
        ),
        (
            f"--application-id a --input-topics {topic} --from-file {plan}",
            f"{plan}: it has no offset for {topic}-1",
        ),
        (f"--application-id a --to-offset x{topic}", f"argument --to-offset: 'x{topic}' is no offset; "),
    ):
        ended = tool(TOOL, *words.split())
        assert ended.returncode == 2
        assert ended.stderr.startswith(f"moldau {TOOL}: {told}")
        assert ended.stderr.count("\n") == 1
    assert "a" not in tool("groups", "list", "-o", "csv").stdout.split(",")


def test_nobody_answers(tool: Tool) -> None:
    ended = tool(TOOL, "--application-id", "a", "-b", "127.0.0.1:1")
    told = "no broker answers at 127.0.0.1:1; start one with: moldau start"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"moldau {TOOL}: {told}\n")

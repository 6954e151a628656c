"""Clusters for `moldau verify`, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

import moldau
from tests.cli.conftest import command

RUN_S_MAX = 280.0
Verify = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def given() -> Iterator[moldau.EmbeddedCluster]:
    """Three brokers that tests do not end."""
    with moldau.run(brokers=3, overrides={"node.id": 1, "group.initial.rebalance.delay.ms": 0}) as running:
        yield running


def verify(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("verify", *arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_S_MAX,
        check=False, env={**os.environ, **({"TMPDIR": str(folder)} if folder else {})},
    )  # fmt: skip


def report(finished: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """The scenarios of a run with `-o json`, by their names."""
    return {each["scenario"]: each for each in json.loads(finished.stdout)["scenarios"]}


def leftovers(bootstrap: str) -> tuple[list[str], list[str]]:
    """Topics and groups that a run made."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [name for name in admin.list_topics(timeout=20).topics if name.startswith("moldau-verify")]
    groups = [each.group_id for each in admin.list_consumer_groups().result(20).valid]
    return topics, [each for each in groups if each.startswith("moldau-verify")]


def descendants(pid: int) -> list[int]:
    """By /proc: all that this process started, and what those did."""
    found: list[int] = []
    tasks = f"/proc/{pid}/task"
    for task in os.listdir(tasks) if os.path.isdir(tasks) else ():
        with open(f"{tasks}/{task}/children") as file:
            for child in map(int, file.read().split()):
                found += [child, *descendants(child)]
    return found


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pause(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def resume(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)

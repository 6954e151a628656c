"""The command as a user runs it: a process with arguments, standard input, output and an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

Tool = Callable[..., "subprocess.CompletedProcess[str]"]

RUN_S_MAX = 60.0


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "moldau", *arguments]


def environment(bootstrap: str) -> dict[str, str]:
    return {**os.environ, "MOLDAU_BOOTSTRAP_SERVERS": bootstrap}


def run_tool(bootstrap: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        env=environment(bootstrap),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )


@pytest.fixture
def tool(bootstrap: str) -> Tool:
    """Runs `moldau ARGUMENT...` against this run's broker."""

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return run_tool(bootstrap, *arguments, **options)

    return run


@pytest.fixture
def done(tool: Tool) -> Callable[..., str]:
    """Runs a tool that has to succeed without a word on stderr, and gives what it printed."""

    def run(*arguments: str, **options: Any) -> str:
        finished = tool(*arguments, **options)
        assert (finished.returncode, finished.stderr) == (0, "")
        return finished.stdout

    return run


@pytest.fixture
def topic(done: Callable[..., str], moldau_topic: str) -> str:
    """A topic of two partitions."""
    done("topics", "create", moldau_topic, "--partitions", "2")
    return moldau_topic

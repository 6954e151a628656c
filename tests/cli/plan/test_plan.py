"""`moldau plan` as a user runs it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import command
from tests.cli.terminal import PAUSE_S, WAIT_S_MAX, Terminal

Run = Callable[..., "subprocess.CompletedProcess[str]"]
RUN_S_MAX = 60.0


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """With a cache of its own: nothing was measured yet."""

    def planned(*arguments: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        words = command("plan", *arguments)
        return subprocess.run(words, env=variables, capture_output=True, text=True, timeout=RUN_S_MAX, check=False)

    return planned


def document(finished: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert (finished.returncode, finished.stderr) == (0, "")
    found: dict[str, Any] = json.loads(finished.stdout)
    return found


def test_the_example_of_the_book(run: Run) -> None:
    finished = run("--throughput", "1GB/s", "--consumer-throughput", "50MB/s")
    assert (finished.returncode, finished.stderr) == (0, "")
    rows = dict(
        re.split(r"  +", line)[:2] for line in finished.stdout.partition("\n\n")[0].splitlines() if line[0] != " "
    )
    assert rows["partitions"] == "20"
    assert "moldau topics create TOPIC --partitions 20 --replication-factor 3" in finished.stdout
    assert "to measure them on this machine: add --measure" in finished.stdout
    assert "warning: adding partitions later moves keys" in finished.stdout
    assert max(map(len, finished.stdout.partition("\n\n")[0].splitlines())) <= 120


def test_messages_are_a_throughput_as_well(run: Run) -> None:
    first = document(run("--throughput", "100MB/s", "-o", "json"))
    second = document(run("--messages", "200k/s", "--record-size", "500", "-o", "json"))
    assert {**first, "rows": 0} == {**second, "rows": 0}


def test_programs_get_numbers_and_where_they_are_from(run: Run) -> None:
    options = "--throughput 40MB/s --read-throughput 1GB/s --network 10Gbit/s --headroom 0% --peak 2 --topic orders"
    found = document(run(*options.split(), "--retention", "3d", "-o", "json"))
    assert found["wanted"]["read"] == 10**9
    assert found["figures"]["network"] == {"bytes_per_s": 1_250_000_000, "source": "as given"}
    assert found["figures"]["disk"]["source"].startswith("assumed: ")
    assert found["create"].startswith("moldau topics create orders --partitions ")
    assert "retention.ms=259200000" in found["create"]
    assert found["brokers"] == 3
    rows = [json.loads(line) for line in run("--throughput", "1MB/s", "-o", "jsonl").stdout.splitlines()]
    assert {"what", "value", "why", "number"} == set(rows[0])


def test_too_few_brokers_are_told(run: Run) -> None:
    assert "warning: 3 brokers are too few: disk asks for 10" in run("--throughput", "1GB/s", "--brokers", "3").stdout


BAD_USE = [
    ("", "give --throughput SIZE/s, or --messages N/s with --record-size"),
    ("--throughput 1GB/s --messages 5", "give --throughput SIZE/s, or --messages N/s"),
    ("--throughput fast", "argument --throughput: 'fast' is no size; expected a number with a unit"),
    ("--throughput 0MB/s", "argument --throughput: '0MB/s': expected more than nothing"),
    ("--throughput 1iB", "argument --throughput: '1iB' is no size"),
    ("--messages many", "argument --messages: 'many' is no number of messages"),
    ("--throughput 1GB/s --peak 0.5", "argument --peak: '0.5' is no factor; expected 1 to 1000"),
    ("--throughput 1GB/s --headroom 100%", "argument --headroom: '100%' is no share; expected 0% to 90%"),
    ("--throughput 1GB/s --retention ever", "argument --retention: 'ever' is no time"),
    ("--throughput 1GB/s --replication 0", "argument --replication: '0' is no number of replicas"),
    ("--throughput 1GB/s --network quick", "argument --network: 'quick' is no size"),
    ("--throughput 900PB/s", "that is "),
    ("--throughput 1GB/s --brokerz 3", "unknown option --brokerz; did you mean --brokers?"),
]


@pytest.mark.parametrize(("words", "message"), BAD_USE)
def test_bad_use_is_one_line(run: Run, words: str, message: str) -> None:
    finished = run(*words.split())
    assert (finished.returncode, finished.stdout, finished.stderr.count("\n")) == (2, "", 1)
    assert finished.stderr.startswith(f"moldau plan: {message}")


def test_a_folder_that_cannot_be_written_is_one_line(run: Run, tmp_path: Path) -> None:
    finished = run("--throughput", "1GB/s", "--measure", "--data", str(tmp_path / "none"))
    assert (finished.returncode, finished.stdout) == (1, "")
    told = f"moldau plan: cannot measure in {tmp_path / 'none'}: No such file or directory\n"
    assert finished.stderr == told


def test_a_measurement_is_used_and_kept(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    words = ("--throughput", "1GB/s", "-o", "json")
    found = document(run(*words, "--measure", "--measure-seconds", "1", "--data", str(folder)))
    figures = found["figures"]
    assert all(
        figures[each]["source"].startswith("measured on ") for each in ("producer", "consumer", "broker", "disk")
    )
    assert all(figures[each]["bytes_per_s"] > 10**6 for each in ("producer", "consumer", "disk"))
    assert list(folder.iterdir()) == []
    again = document(run(*words))
    assert again["figures"] == figures
    said = document(run(*words, "--consumer-throughput", "50MB/s"))
    assert said["figures"]["consumer"] == {"bytes_per_s": 50_000_000, "source": "as given"}


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_ctrl_c_ends_a_measurement_and_leaves_nothing(tmp_path: Path) -> None:
    terminal = Terminal("localhost:1")
    try:
        terminal.run("plan", "--throughput", "1GB/s", "--measure", "--measure-seconds", "60", "--data", str(tmp_path))
        deadline_s = time.monotonic() + WAIT_S_MAX
        while "of 60 s" not in terminal.screen:
            assert time.monotonic() < deadline_s, terminal.screen
            time.sleep(PAUSE_S)
        assert list(tmp_path.iterdir()) != []
        terminal.press("C-c")
        while not re.search(r"ended with 130$", terminal.screen, re.MULTILINE):
            assert time.monotonic() < deadline_s, terminal.screen
            time.sleep(PAUSE_S)
        assert "Traceback" not in terminal.screen
        assert list(tmp_path.iterdir()) == []
    finally:
        terminal.close()

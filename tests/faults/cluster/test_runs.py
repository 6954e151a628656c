"""Live runs: a cluster under faults passes, and brokers with planted bugs are caught.

Minutes each, so the usual run leaves them out: `scripts/faults-suite` runs them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.node.command import parse
from tests import apache_kafka

PROJECT = Path(__file__).parents[3]
RUN_S_MAX = 900

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(RUN_S_MAX + 60),
    pytest.mark.xdist_group("faults"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="namespaces need Linux"),
]


def faults(directory: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of a run and what it printed."""
    command = [sys.executable, "-m", "tests.faults.cluster", *arguments, "--directory", str(directory)]
    done = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, timeout=RUN_S_MAX, check=False, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout + done.stderr


def counts(text: str) -> dict[int, int]:
    found = re.findall(r"^ {1,2}(\d+) +(\d+)  ", text, re.MULTILINE)
    return {int(number): int(count) for number, count in found if int(count)}


def test_one_broker_through_kills(tmp_path: Path) -> None:
    code, text = faults(tmp_path, "--brokers", "1", "--seconds", "20", "--only", "kill -9", "--only", "SIGTERM")
    assert (code, counts(text)) == (0, {}), text


def test_one_broker_that_skips_checksums_is_caught(tmp_path: Path) -> None:
    code, text = faults(
        tmp_path, "--brokers", "1", "--seconds", "1", "--planted", "skip-crc", "--only", "none", "--final", "20"
    )  # fmt: skip
    assert code == 1, text
    assert counts(text).keys() & {1, 3, 8}, text


def test_one_broker_that_forgets_sequences_is_caught(tmp_path: Path) -> None:
    code, text = faults(
        tmp_path, "--brokers", "1", "--seconds", "15", "--planted", "forget-sequence", "--only", "resets",
        "--final", "20",
    )  # fmt: skip
    assert code == 1, text
    assert 4 in counts(text), text


def has_clusters() -> bool:
    try:
        parse(["--member-of", "folder", "--members", "3"])
    except SystemExit:
        return False
    return True


needs_cluster = pytest.mark.skipif(not has_clusters(), reason="this release runs single brokers")


@needs_cluster
@pytest.mark.parametrize("store", ["sqlite", "zookeeper"])
@pytest.mark.parametrize("seed", [1, 2])
def test_three_brokers_through_mixed_faults(tmp_path: Path, store: str, seed: int) -> None:
    code, text = faults(tmp_path, "--seconds", "60", "--seed", str(seed), "--store", store, "--session-timeout", "6")
    assert (code, counts(text)) == (0, {}), text


@needs_cluster
def test_brokers_that_acknowledge_early_are_caught(tmp_path: Path) -> None:
    code, text = faults(
        tmp_path, "--seconds", "15", "--planted", "acknowledge-early", "--session-timeout", "6", "--final", "20",
        "--only", "then kill",
    )  # fmt: skip
    assert code == 1, text
    assert counts(text).keys() & {2, 3, 8}, text


@pytest.mark.skipif(not apache_kafka.available(), reason="needs Java and Apache Kafka's jars")
def test_apache_kafka_passes(tmp_path: Path) -> None:
    """The harness itself: what it asks for can be had."""
    code, text = faults(tmp_path, "--broker", "apache", "--seconds", "40", "--only", "kill -9", "--only", "isolation")
    assert (code, counts(text)) == (0, {}), text

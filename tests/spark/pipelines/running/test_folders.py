"""Whose a pipeline is, and which of its checkpoints count."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.spark.pipelines.plan import Plan
from moldau.spark.pipelines.running.folders import AlreadyRunning, PipelineFolder
from moldau.spark.pipelines.running.holder import Holder, NotOurs, holder_from, started_of, this_process


@pytest.fixture
def folder(tmp_path: Path) -> PipelineFolder:
    return PipelineFolder(Plan("p"), tmp_path)


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits to be ended."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def finish_batch(checkpoint: Path) -> None:
    (checkpoint / "commits").mkdir(parents=True)
    (checkpoint / "commits" / "0").touch()


def test_the_one_who_runs_it_is_known(folder: PipelineFolder) -> None:
    assert folder.holder() is None
    with folder.locked():
        assert folder.holder() == this_process()
        with (
            pytest.raises(AlreadyRunning, match=f"^process {os.getpid()} runs this pipeline already$"),
            folder.locked(),
        ):
            pass
    assert folder.holder() is None


def test_a_process_is_told_to_end(other: subprocess.Popen[bytes]) -> None:
    Holder(other.pid, socket.gethostname(), started_of(other.pid)).terminate()
    assert other.wait(30) == -signal.SIGTERM


def test_a_process_of_another_host_or_time_is_left_alone(other: subprocess.Popen[bytes]) -> None:
    for holder, why in (
        (Holder(other.pid, "elsewhere", started_of(other.pid)), f"it runs on elsewhere as process {other.pid}"),
        (Holder(other.pid, socket.gethostname(), "1"), "is not the one that took the pipeline"),
        (Holder(2**22 + 1, socket.gethostname(), "1"), "is not the one that took the pipeline"),
    ):
        with pytest.raises(NotOurs, match=why):
            holder.terminate()
    assert other.poll() is None


def test_who_is_written_can_be_read() -> None:
    assert holder_from(this_process().as_json()) == this_process()
    assert holder_from("4711") is None


def test_progress_begins_anew_beside_the_old(folder: PipelineFolder) -> None:
    first = folder.checkpoint_of("s")
    assert first == folder.checkpoints / "s"
    assert folder.checkpoint_of("s", anew=True) == first
    finish_batch(first)
    second = folder.checkpoint_of("s", anew=True)
    (second / "offsets").mkdir(parents=True)
    assert second != first
    assert folder.checkpoint_of("s") == first, "a replay without a finished batch changes nothing"
    third = folder.checkpoint_of("s", anew=True)
    assert third not in (first, second)
    finish_batch(third)
    assert folder.checkpoint_of("s") == third
    folder.keep_only("s", third)
    assert [path.name for path in folder.checkpoints.iterdir()] == [third.name]
    assert folder.checkpoint_of("s") == third


def test_progress_is_forgotten_by_sinks(folder: PipelineFolder) -> None:
    for name in ("a", "b"):
        finish_batch(folder.checkpoint_of(name))
    finish_batch(folder.checkpoint_of("a", anew=True))
    assert folder.forget_progress(["a"]) == ["a"]
    assert folder.sinks_with_progress() == ["b"]
    assert folder.forget_progress() == ["b"]

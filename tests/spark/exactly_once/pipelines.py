"""Whole pipelines as a user runs them, in processes that are killed and started again until their results are there."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from tests.spark.exactly_once.checkpoints import LocalCheckpoint
from tests.spark.exactly_once.servers import CrashingBroker

LOOK_S = 0.05
JITTER_S_MAX = 0.5
END_S_MAX = 120.0
ONCE_S_MAX = 600.0
RESULTS_S_MAX = 600.0


class PipelineProcess:
    """`moldau pipeline run FILE`, with Java and the workers below it in one process group."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.output = path.with_suffix(".txt")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def checkpoints(self) -> list[LocalCheckpoint]:
        folder = self.path.parent / ".moldau/pipelines" / self.path.stem / "checkpoints"
        return [LocalCheckpoint(path) for path in sorted(folder.glob("*"))]

    def batches(self) -> int:
        """How many are done; Spark deletes the notes of old ones, so that they can't be counted."""
        return sum(newest(checkpoint, "commits") + 1 for checkpoint in self.checkpoints)

    def is_in_a_batch(self) -> bool:
        return any(newest(checkpoint, "offsets") > newest(checkpoint, "commits") for checkpoint in self.checkpoints)

    def start(self) -> None:
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def run_once(self) -> None:
        """What is there now, to its end."""
        with self.output.open("ab") as output:
            command = [*self._command(), "--once"]
            done = subprocess.run(command, stdout=output, stderr=output, timeout=ONCE_S_MAX, check=False)
        assert done.returncode == 0, self.tail()

    def kill(self) -> None:
        process, self._process = self._process, None
        assert process is not None
        assert process.poll() is None, self.tail()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(END_S_MAX)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(END_S_MAX)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def tail(self) -> str:
        return self.output.read_text(errors="replace")[-4000:]

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "moldau", "pipeline", "run", str(self.path), "--master", "local[2]"]


def newest(checkpoint: LocalCheckpoint, log: str) -> int:
    return max(checkpoint.batches(log), default=-1)


class PipelineChaos:
    """Runs pipelines beside each other; a kill comes when one of them is some batches further than at the last one."""

    def __init__(self, pipelines: Sequence[PipelineProcess], broker: CrashingBroker, chance: random.Random) -> None:
        self.pipelines = pipelines
        self.broker = broker
        self.chance = chance
        self.kills: list[str] = []

    def __enter__(self) -> Self:
        for pipeline in self.pipelines:
            pipeline.start()
        return self

    def __exit__(self, *_: object) -> None:
        for pipeline in self.pipelines:
            pipeline.stop()

    def kill(self, faults: int) -> None:
        """The pipelines and the broker in turn."""
        victims = [*self.pipelines, self.broker]
        for number in range(faults):
            victim = victims[number % len(victims)]
            self._wait_for_batches()
            self._wait_to_be_in_a_batch(victim if isinstance(victim, PipelineProcess) else self.pipelines[0])
            time.sleep(self.chance.uniform(0, JITTER_S_MAX))
            if isinstance(victim, PipelineProcess):
                victim.kill()
                self.kills.append(f"{victim.path.stem} after {victim.batches()} batches")
                victim.start()
            else:
                self.broker.crash()
                self.kills.append("broker")

    def finish(self, has_all: Callable[[], bool]) -> None:
        """Until the results are there; then the newest batch of each query once more."""
        deadline_s = time.monotonic() + RESULTS_S_MAX
        while not has_all():
            assert time.monotonic() < deadline_s, f"no end: {self._tails()}"
            time.sleep(1)
        for pipeline in self.pipelines:
            pipeline.stop()
        for pipeline in self.pipelines:
            for checkpoint in pipeline.checkpoints:
                checkpoint.forget_newest_commit()
            pipeline.run_once()

    def _wait_for_batches(self) -> None:
        """Of each pipeline, so that all of them are at work."""
        deadline_s = time.monotonic() + RESULTS_S_MAX
        wanted = [pipeline.batches() + 2 for pipeline in self.pipelines]
        while not all(pipeline.batches() >= count for pipeline, count in zip(self.pipelines, wanted, strict=True)):
            assert time.monotonic() < deadline_s, f"no batches: {self._tails()}"
            time.sleep(LOOK_S)

    def _wait_to_be_in_a_batch(self, pipeline: PipelineProcess) -> None:
        deadline_s = time.monotonic() + RESULTS_S_MAX
        while not pipeline.is_in_a_batch():
            assert time.monotonic() < deadline_s, f"no batch: {self._tails()}"
            time.sleep(LOOK_S)

    def _tails(self) -> str:
        return "\n".join(f"{pipeline.path.name}:\n{pipeline.tail()}" for pipeline in self.pipelines)

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

from tests.spark.exactly_once.plan import numbers
from tests.spark.exactly_once.servers import CrashingBroker
from tests.spark.tables.streams import forget_newest_commit

LOOK_S = 0.1
JITTER_S_MAX = 2.0
END_S_MAX = 120.0
ONCE_S_MAX = 600.0


class PipelineProcess:
    """`moldau pipeline run FILE`, with Java and the workers below it in one process group."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.output = path.with_suffix(".txt")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def checkpoints(self) -> list[Path]:
        return sorted((self.path.parent / ".moldau/pipelines" / self.path.stem / "checkpoints").glob("*"))

    def batches(self) -> int:
        return sum(len(numbers(checkpoint / "commits")) for checkpoint in self.checkpoints)

    def start(self) -> None:
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def run_once(self) -> None:
        """What is there now, to its end."""
        with self.output.open("ab") as output:
            subprocess.run([*self._command(), "--once"], stdout=output, stderr=output, timeout=ONCE_S_MAX, check=True)

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

    def run(self, faults: int, *, has_all: Callable[[], bool], runs_s_max: float = 1800.0) -> None:
        """Until all faults happened and the results are there; then the newest batch of each query once more."""
        deadline_s = time.monotonic() + runs_s_max
        victims = [*self.pipelines, self.broker]
        for number in range(faults):
            self._wait_for_batches(deadline_s)
            time.sleep(self.chance.uniform(0, JITTER_S_MAX))
            victim = victims[number % len(victims)]
            if isinstance(victim, PipelineProcess):
                victim.kill()
                self.kills.append(f"{victim.path.stem} after {victim.batches()} batches")
                victim.start()
            else:
                self.broker.crash()
                self.kills.append("broker")
        while not has_all():
            assert time.monotonic() < deadline_s, f"no end: {[pipeline.tail() for pipeline in self.pipelines]}"
            time.sleep(1)
        for pipeline in self.pipelines:
            pipeline.stop()
        for pipeline in self.pipelines:
            for checkpoint in pipeline.checkpoints:
                forget_newest_commit(checkpoint)
            pipeline.run_once()

    def _wait_for_batches(self, deadline_s: float) -> None:
        wanted = [pipeline.batches() + 2 for pipeline in self.pipelines]
        while not all(pipeline.batches() >= count for pipeline, count in zip(self.pipelines, wanted, strict=True)):
            assert time.monotonic() < deadline_s, f"no batches: {[pipeline.tail() for pipeline in self.pipelines]}"
            time.sleep(LOOK_S)

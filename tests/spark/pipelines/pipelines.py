"""Pipelines run as the command runs them, in the session that all tests share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.spark.pipelines.check import check
from moldau.spark.pipelines.loading import load
from moldau.spark.pipelines.plan import ONCE
from moldau.spark.pipelines.running.frames.plan_frames import frames_of
from moldau.spark.pipelines.running.runner import Runner, Running, jobs_of
from moldau.spark.pipelines.running.state.folders import PipelineFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Watch = Callable[["Outcome"], None]


@dataclass(slots=True)
class Outcome:
    """A run: how its queries ended, and the lines that a person would have read."""

    runner: Runner
    said: list[str] = field(default_factory=list)
    ended_well: bool | None = None

    def of(self, sink: str) -> Running:
        return next(one for one in self.runner.queries if one.job.sink.name == sink)


@dataclass(frozen=True, slots=True)
class Pipelines:
    spark: SparkSession
    bootstrap: str
    folder: Path

    def written(self, text: str, name: str = "pipeline.sql") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def run(
        self,
        path: Path,
        *,
        once: bool = True,
        restarts_max: int | None = 3,
        starting: Mapping[str, str] | None = None,
        anew: bool = False,
        watch: Watch | None = None,
    ) -> Outcome:
        """`watch` sees the run each half second; it ends one that goes on by `outcome.runner.stop()`.

        A busy machine may take longer to start a worker than Spark waits for it: that passes, as it would for a user.
        """
        plan = load(path, {"bootstrap.servers": self.bootstrap})
        assert not [problem for problem in check(plan) if problem.is_error]
        folder = PipelineFolder(plan, path.parent)
        jobs = jobs_of(frames_of(self.spark, plan, starting=starting), plan, folder, anew=anew)
        said: list[str] = []
        runner = Runner(
            [one.scheduled(ONCE) for one in jobs] if once else jobs,
            folder,
            plan=plan,
            say=said.append,
            restarts_max=restarts_max,
        )
        outcome = Outcome(runner, said)
        with folder.locked():
            outcome.ended_well = runner.run(lambda _: watch(outcome) if watch else None)
        return outcome

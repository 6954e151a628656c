"""Running a pipeline: every sink is a query; one that fails says why, and starts again if that may help."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from moldau.core.clock import Clock, SystemClock
from moldau.spark.pipelines.plan import PipelineError, Plan
from moldau.spark.pipelines.running.frames.plan_frames import Frames
from moldau.spark.pipelines.running.reasons import is_permanent, said_by, spark_failures
from moldau.spark.pipelines.running.reports.progress import Progress, progress_of
from moldau.spark.pipelines.running.reports.rejected import RejectedRecords, ledgers_of
from moldau.spark.pipelines.running.results.sinks import Job, job_of
from moldau.spark.pipelines.running.state.folders import PipelineFolder

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

BACK_OFF_S = (1, 2, 5, 10, 30, 60)
HEALTHY_S = 60.0  # a query that ran this long starts again without having to wait longer than the last time
WATCH_S = 0.5


class State(Enum):
    RUNNING = "running"
    WAITING = "waiting to restart"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(slots=True)
class Running:
    """One query's life."""

    job: Job
    rejected: RejectedRecords
    state: State = State.WAITING
    query: StreamingQuery | None = None
    started_s: float = 0.0
    retry_s: float = 0.0
    failures: int = 0
    restarts: int = 0
    reason: str | None = None
    reported: str = ""  # when Spark made the newest report that is counted
    progress: Progress = field(default_factory=Progress)
    rows_total: int = 0
    broken: dict[str, int] = field(default_factory=dict)
    is_settled: bool = False  # a batch is finished, so that this checkpoint is the sink's

    @property
    def name(self) -> str:
        return self.job.sink.name

    def as_json(self) -> dict[str, Any]:
        return {
            "state": self.state.value,
            "into": str(self.job.sink.endpoint),
            "schedule": str(self.job.schedule),
            "rows": self.rows_total,
            "restarts": self.restarts,
            "reason": self.reason,
            "broken": self.broken,
            "rejected": self.rejected.by_topic,
            **{key: value for key, value in self.progress.as_json().items() if key not in ("rows", "broken")},
        }


def jobs_of(frames: Frames, plan: Plan, folder: PipelineFolder, *, anew: bool = False) -> list[Job]:
    """Raises PipelineError with the place of a sink that Spark can't make, or that its topic's writer would refuse.

    `anew` is without the progress so far.
    """
    jobs = []
    for sink in plan.sinks:
        try:
            checkpoint = folder.checkpoint_of(sink.name, anew=anew)
            jobs.append(job_of(sink, frames, plan, checkpoint))
        except spark_failures() as wrong:
            raise PipelineError(sink.place, f"{sink.name}: {said_by(wrong)}") from None
        jobs[-1].check()
    return jobs


class Runner:
    def __init__(
        self,
        jobs: list[Job],
        folder: PipelineFolder,
        *,
        plan: Plan,
        say: Callable[[str], None],
        restarts_max: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.queries = [Running(job, RejectedRecords(ledgers_of(job.sink.query, job.query_name, plan))) for job in jobs]
        self._folder = folder
        self._plan = plan
        self._say = say
        self._restarts_max = restarts_max
        self._stopping = False
        self._clock = clock or SystemClock()
        self._begun_ms = self._clock.now_ms()

    def stop(self) -> None:
        """Called by a signal's handler: only takes note."""
        self._stopping = True

    def run(self, on_progress: Callable[[list[Running]], None]) -> bool:
        """Until everything is done, somebody stops it, or a query failed for good. True when nothing failed."""
        try:
            while not self._stopping and any(one.state in (State.RUNNING, State.WAITING) for one in self.queries):
                self._heed_others()
                for one in self.queries:
                    self._tend(one)
                self._publish()
                on_progress(self.queries)
                time.sleep(WATCH_S)
        except spark_failures() as wrong:
            if not self._stopping:  # a signal to the whole group of processes ends Spark before us
                self._say(f"Spark is gone: {said_by(wrong)}")
                self._fail_all()
        finally:
            self._stop_queries()
            self._publish(over=True)
        return all(one.state is not State.FAILED for one in self.queries)

    def _heed_others(self) -> None:
        """Others reach a run through its folder: one asks it to end, one has taken it over."""
        if self._folder.is_asked_to_end:
            self._stopping = True
        if self._folder.lost_to is not None:
            self._say(f"{self._folder.lost_to} has taken this pipeline over, so it ends here")
            self._fail_all()

    def _fail_all(self) -> None:
        for one in self.queries:
            if one.state in (State.RUNNING, State.WAITING):
                with suppress(*spark_failures()):
                    if one.query is not None:
                        one.query.stop()
                one.state, one.query = State.FAILED, None

    def _tend(self, one: Running) -> None:
        if one.state is State.WAITING and time.monotonic() >= one.retry_s:
            self._start(one)
        if one.state is not State.RUNNING or one.query is None:
            return
        self._look(one)
        if not one.query.isActive:
            self._look(one)
            wrong = one.query.exception()
            if wrong is None:
                one.state = State.DONE if one.job.schedule.is_once else State.STOPPED
            else:
                self._failed(one, wrong)

    def _start(self, one: Running) -> None:
        one.started_s = time.monotonic()
        try:
            if one.job.is_streaming:
                one.query = one.job.start()
                one.state = State.RUNNING
            else:
                one.job.write_all()
                again_ms = one.job.schedule.interval_ms
                one.state = State.WAITING if again_ms else State.DONE
                one.retry_s = one.started_s + (again_ms or 0) / 1000
        except Exception as wrong:  # whatever Spark or a connector raises is the query's failure, not ours
            self._failed(one, wrong)

    def _failed(self, one: Running, wrong: BaseException) -> None:
        """What passes is tried again, later each time; what does not ends the query."""
        reason = said_by(wrong)
        if time.monotonic() - one.started_s > HEALTHY_S:
            one.failures = 0
        one.failures += 1
        one.reason = reason
        if is_permanent(wrong) or (self._restarts_max is not None and one.restarts >= self._restarts_max):
            one.state = State.FAILED
            self._say(f"{one.job.query_name} failed: {reason}")
            return
        wait_s = BACK_OFF_S[min(one.failures, len(BACK_OFF_S)) - 1]
        one.state, one.retry_s = State.WAITING, time.monotonic() + wait_s
        one.restarts += 1
        self._say(f"{one.job.query_name} failed and starts again in {wait_s} s: {reason}")

    def _look(self, one: Running) -> None:
        assert one.query is not None, "only a started query is looked at"
        for report in fresh_reports([_mapping(each) for each in one.query.recentProgress], one.reported):
            one.reported = report["timestamp"]
            one.progress = told = progress_of(report)
            one.rejected.outdate()
            self._settle(one)
            one.rows_total += told.rows
            for name, count in (*told.broken.items(), *one.job.taken()):
                one.broken[name] = one.broken.get(name, 0) + count
                self._say(f"{one.job.query_name}: {count} rows of batch {told.batch} break {name}")

    def _settle(self, one: Running) -> None:
        """Whatever progress the sink had before a replay goes now that there is new progress, and not earlier."""
        if one.is_settled:
            return
        with suppress(OSError):  # a store that fails for a moment is asked again with the next batch
            if self._folder.has_batch(one.job.checkpoint):
                self._folder.keep_only(one.job.sink.name, one.job.checkpoint)
                one.is_settled = True

    def _stop_queries(self) -> None:
        for one in self.queries:
            if one.state in (State.RUNNING, State.WAITING):
                one.state = State.STOPPED
                with suppress(*spark_failures()):
                    if one.query is not None:
                        one.query.stop()
                        self._look(one)

    def _publish(self, *, over: bool = False) -> None:
        for one in self.queries:
            one.rejected.refresh(now_s=time.monotonic(), at_once=over)
        self._folder.write_status(
            {
                "pipeline": self._plan.name,
                "running": not over,
                "started_ms": self._begun_ms,
                "updated_ms": self._clock.now_ms(),
                "queries": {one.job.sink.name: one.as_json() for one in self.queries},
            },
            at_once=over,
        )


def fresh_reports(reports: Sequence[Mapping[str, Any]], newest: str) -> Sequence[Mapping[str, Any]]:
    """Those behind the one of that time, in Spark's order: a clock that was set back makes no report older.

    A report while nothing comes has the number of the batch that is to come: only its time tells it apart.
    """
    known = [at for at, report in enumerate(reports) if report["timestamp"] == newest]
    return reports[known[-1] + 1 :] if known else reports


def _mapping(report: Any) -> Mapping[str, Any]:
    """A report is a dictionary, or wraps one, by the version of Spark and by the kind of session."""
    import json

    if isinstance(report, Mapping):
        return report
    told: Mapping[str, Any] = json.loads(report.json)
    return told

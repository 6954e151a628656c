"""Keeping a project running: update after update. One that fails says why, and is tried again if that may help."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.core.clock import Clock, SystemClock
from moldau.spark.pipelines.declarative.elements import DataSource, Elements
from moldau.spark.pipelines.declarative.lag import FlowTopics, Position, position_of, topics_of
from moldau.spark.pipelines.declarative.project import Project, Versions, versions_of
from moldau.spark.pipelines.declarative.server import ConnectServer
from moldau.spark.pipelines.declarative.update import (
    ALL,
    FlowEvent,
    ProjectFailed,
    Step,
    Update,
    UpdateFailed,
    WrongDefinition,
)
from moldau.spark.pipelines.plan import PipelineError, Schedule
from moldau.spark.pipelines.running.reasons import said_by
from moldau.spark.pipelines.running.reports.rejected import RejectedRecords
from moldau.spark.pipelines.running.runner import BACK_OFF_S, State
from moldau.spark.pipelines.running.state.folders import PipelineFolder

WATCH_S = 0.5
LOOK_EVERY_S = 5.0
LOOK_AGAIN_S = 60.0  # a cluster that does not answer must not hold up the run again and again
# An update that is cut off leaves a materialized view empty until the next one: it may finish first.
STOP_GRACE_S = 30.0
ENDS = (Step.COMPLETED, Step.IDLE, Step.EXCLUDED)


@dataclass(slots=True)
class RunningFlow:
    """One flow's life over the updates of a run."""

    name: str
    into: str
    schedule: Schedule
    topics: tuple[FlowTopics, ...]
    rejected: RejectedRecords
    state: State = State.RUNNING
    update: int = 0
    started_s: float = 0.0
    took_ms: int = 0
    restarts: int = 0
    reason: str | None = None
    began: Position | None = None  # where it stood when this run began
    before: Position | None = None  # and when this update began
    position: Position | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "state": self.state.value,
            "into": self.into,
            "schedule": str(self.schedule),
            "rows": self._rows(self.began),
            "rows_a_second": (self._rows(self.before) or 0) / max(self.took_ms, 1) * 1000,
            "lag": self.position.lag if self.position else None,
            "watermark": None,
            "restarts": self.restarts,
            "reason": self.reason,
            "broken": {},
            "rejected": self.rejected.by_topic,
            "batch": self.update,
            "batch_ms": self.took_ms,
            "reads": [each.as_json() for each in self.topics],
        }

    def _rows(self, since: Position | None) -> int | None:
        return self.position.done - since.done if self.position and since else None


@dataclass(slots=True)
class Updating:
    """An update in a thread of its own, so that signals are heard and the status stays fresh."""

    update: Update
    full_refresh: Sequence[str]
    wrong: Exception | None = None
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, name="update", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.update.run(full_refresh=self.full_refresh)
        except Exception as wrong:  # whatever it is, it is the update's failure, and the watching thread judges it
            self.wrong = wrong


class ProjectRunner:
    def __init__(
        self,
        server: ConnectServer,
        project: Project,
        folder: PipelineFolder,
        *,
        schedule: Schedule,
        say: Callable[[str], None],
        restarts_max: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.queries: list[RunningFlow] = []
        self._server = server
        self._project = project
        self._folder = folder
        self._schedule = schedule
        self._say = say
        self._restarts_max = restarts_max
        self._clock = clock or SystemClock()
        self._begun_ms = self._clock.now_ms()
        self._stopping_s: float | None = None
        self._has_failed = False
        self._updates = 0
        self._failures = 0
        self._restarts = 0
        self._look_s = 0.0
        self._updated_ms: int | None = None
        self._streams: dict[str, list[DataSource]] = {}
        self._anew: set[str] = set()  # the flows whose targets are computed anew in this update
        self._full_refresh: Sequence[str] = ()
        self._tried: Versions = frozenset()  # the files that the newest update began with
        self._sound: Versions | None = None  # those of the last one that went well

    def stop(self) -> None:
        """Called by a signal's handler: only takes note."""
        self._stopping_s = self._stopping_s or time.monotonic()

    def run(self, on_progress: Callable[[Sequence[RunningFlow]], None], *, full_refresh: Sequence[str] = ()) -> bool:
        """Until it is done, somebody stops it, or it failed for good. True when nothing failed."""
        self._full_refresh = full_refresh
        try:
            while self._stopping_s is None:
                next_s = time.monotonic() + (self._schedule.interval_ms or 0) / 1000
                wrong = self._one_update(on_progress)
                if wrong is None:
                    was_partial = bool(self._full_refresh) and ALL not in self._full_refresh
                    self._succeeded()
                    if was_partial:
                        continue  # Spark has left out the rest, which may read what was computed anew
                elif self._is_final(wrong):
                    break
                else:
                    next_s = time.monotonic() + self._back_off(wrong)
                if self._schedule.is_once:
                    break
                self._wait(next_s, on_progress)
        finally:
            self._finish()
        return not self._has_failed

    def _one_update(self, on_progress: Callable[[Sequence[RunningFlow]], None]) -> Exception | None:
        self._updates += 1
        self._tried = versions_of(self._project)
        update = Update(self._server, self._project, on_elements=self._defined, on_event=self._heard)
        started_s = time.monotonic()
        running = Updating(update, self._full_refresh)
        interrupted = False
        while running.thread.is_alive():
            running.thread.join(WATCH_S)
            self._publish(on_progress)
            if self._server.has_died:
                # The client would look for it for minutes, in a thread that nobody has to wait for.
                return ConnectionError("its process has ended")
            if self._stopping_s and time.monotonic() > self._stopping_s + STOP_GRACE_S:
                if not interrupted:
                    threading.Thread(target=update.interrupt, name="interrupt", daemon=True).start()
                elif time.monotonic() > self._stopping_s + 2 * STOP_GRACE_S:
                    break
                interrupted = True
        if running.wrong is None and not interrupted:
            self._updated_ms = int((time.monotonic() - started_s) * 1000)
            self._sound = self._tried
        self._look_s = 0.0
        return None if interrupted else running.wrong

    def _succeeded(self) -> None:
        self._failures, self._full_refresh = 0, ()
        for one in self.queries:
            one.state, one.reason = State.RUNNING, None

    def _is_final(self, wrong: Exception) -> bool:
        """Whether this failure ends the run; then it is told."""
        if self._stopping_s is not None:
            return True  # a signal to the whole group of processes ends Spark's workers before us
        if self._server.has_died:
            reason = f"Spark is gone: {said_by(wrong)}"
        elif self._is_permanent(wrong) or self._is_given_up:
            is_of_project = isinstance(wrong, (WrongDefinition, PipelineError))
            reason = str(wrong) if is_of_project else f"the update failed: {_reason(wrong)}"
        else:
            return False
        self._say(f"{self._project.name}: {reason}")
        self._has_failed = True
        for one in self.queries:
            one.state = State.FAILED
        return True

    @property
    def _is_given_up(self) -> bool:
        return self._schedule.is_once or (self._restarts_max is not None and self._restarts >= self._restarts_max)

    def _is_permanent(self, wrong: Exception) -> bool:
        """Files that have changed since they worked are being worked on: their failures last until the next change."""
        is_worked_on = self._sound is not None and self._tried != self._sound
        always_fails = wrong.is_permanent if isinstance(wrong, ProjectFailed) else isinstance(wrong, PipelineError)
        return always_fails and not is_worked_on

    def _back_off(self, wrong: Exception) -> float:
        self._failures += 1
        self._restarts += 1
        wait_s = BACK_OFF_S[min(self._failures, len(BACK_OFF_S)) - 1]
        self._say(f"{self._project.name}: the update failed and is tried again in {wait_s} s: {_reason(wrong)}")
        for one in self.queries:
            one.restarts = self._restarts
            if not isinstance(wrong, UpdateFailed):  # nothing ran, so no flow has a reason of its own
                one.state, one.reason = State.WAITING, _reason(wrong)
        return wait_s

    def _wait(self, until_s: float, on_progress: Callable[[Sequence[RunningFlow]], None]) -> None:
        while self._stopping_s is None and time.monotonic() < until_s:
            self._publish(on_progress)
            time.sleep(min(WATCH_S, max(0.0, until_s - time.monotonic())))

    def _defined(self, elements: Elements) -> None:
        """In the update's thread, before anything runs: files may have changed since the last update."""
        known, flows = {one.name: one for one in self.queries}, elements.updated_flows()
        found, streams = [], {flow.name: elements.streams_of(flow) for flow in flows}
        for flow in flows:
            one = known.get(flow.name)
            if one is None:
                target = elements.output(flow.target)
                one = RunningFlow(
                    flow.name, str(target or flow.target), self._schedule, (), RejectedRecords(frozenset())
                )
            if streams[flow.name] != self._streams.get(flow.name):
                one.topics = ()  # they are found when the flow is queued
            one.update = self._updates
            found.append(one)
        self.queries, self._streams = found, streams
        targets = [elements.output(name) for name in self._full_refresh]
        is_all = ALL in self._full_refresh
        self._anew = {flow.name for flow in flows if is_all or elements.output(flow.target) in targets}

    def _heard(self, event: FlowEvent) -> None:
        one = self._named(event.flow)
        if one is None:
            return
        if event.step is Step.QUEUED and not one.topics:
            self._find_topics(one, event.flow)
        if event.step is Step.STARTING:
            one.state, one.started_s, one.before = State.RUNNING, time.monotonic(), one.position
        elif event.step in ENDS:
            one.took_ms = int((time.monotonic() - one.started_s) * 1000)
            one.rejected.outdate()
        elif event.failure is not None:
            reason = event.failure.reason
            # Spark itself tries a flow three times. What can only fail again is told once, at the update's end.
            if reason != one.reason and not event.failure.is_permanent:
                self._say(f"{self._project.name}: flow {one.name} failed: {reason}")
            one.state, one.reason = State.WAITING, reason
        elif event.step is Step.SKIPPED:
            one.state, one.reason = State.WAITING, "it reads what failed"

    def _find_topics(self, one: RunningFlow, query_name: str) -> None:
        one.topics = topics_of(query_name, self._streams[one.name])
        ledgers = (topics.ledger() for topics in one.topics)
        one.rejected = RejectedRecords(frozenset(ledger for ledger in ledgers if ledger))
        one.began = one.position = position_of(one.topics, anew=one.name in self._anew)

    def _named(self, told: str) -> RunningFlow | None:
        """Spark tells flows into tables with catalog and database."""
        for one in self.queries:
            if told == one.name or told.endswith(f".{one.name}"):
                return one
        return None

    def _look(self, *, at_once: bool) -> None:
        now_s = time.monotonic()
        if now_s < self._look_s:
            return
        pause_s = LOOK_EVERY_S
        for one in self.queries:
            position = position_of(one.topics)
            if one.topics and position is None:
                pause_s = LOOK_AGAIN_S
                break
            one.position = position
            one.rejected.refresh(now_s=now_s, at_once=at_once)
        self._look_s = time.monotonic() + pause_s

    def _finish(self) -> None:
        for one in self.queries:
            if one.state is not State.FAILED:
                is_done = self._schedule.is_once and self._stopping_s is None
                one.state = State.DONE if is_done else State.STOPPED
        self._look_s = 0.0
        self._publish(lambda _: None, over=True)

    def _publish(self, on_progress: Callable[[Sequence[RunningFlow]], None], *, over: bool = False) -> None:
        self._look(at_once=over)
        self._folder.write_status(
            {
                "pipeline": self._project.name,
                "running": not over,
                "started_ms": self._begun_ms,
                "updated_ms": self._clock.now_ms(),
                "updates": self._updates,
                "update_ms": self._updated_ms,
                "queries": {one.name: one.as_json() for one in self.queries},
            },
            at_once=over,
        )
        on_progress(self.queries)
        if not over:
            self._heed_others()

    def _heed_others(self) -> None:
        """Others reach a run through its folder: one asks it to end, one has taken it over."""
        if self._stopping_s is not None:
            return
        if self._folder.lost_to is not None:
            self._say(f"{self._folder.lost_to} has taken this pipeline over, so it ends here")
            self._has_failed = True
            self.stop()
        elif self._folder.is_asked_to_end:
            self.stop()


def _reason(wrong: Exception) -> str:
    return str(wrong) if isinstance(wrong, (ProjectFailed, PipelineError)) else said_by(wrong)

"""`moldau pipeline`: run, check, draw, watch, stop, reset and replay a pipeline's file."""

from __future__ import annotations

import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.connection import BOOTSTRAP_VARIABLE, split_pair
from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.output import TABLE, print_rows
from moldau.cli.pipeline import projects
from moldau.cli.pipeline.command import CLUSTER
from moldau.cli.pipeline.progress import ProgressLines, findings_of, status_rows
from moldau.cli.pipeline.submitting import is_submitted, submit
from moldau.cli.pipeline.watching import Watchers, extra_watchers
from moldau.cli.retention.margins import project_warnings, retention_warnings
from moldau.core.clock import SystemClock
from moldau.spark.pipelines.check import Problem, check
from moldau.spark.pipelines.declarative.project import NO_YAML, is_project, spec_file_of
from moldau.spark.pipelines.graph import DRAWINGS, drawing_of
from moldau.spark.pipelines.language.durations import duration_ms
from moldau.spark.pipelines.loading import load, with_environment
from moldau.spark.pipelines.plan import ONCE, PipelineError, Plan
from moldau.spark.pipelines.running.sessions.opening import NO_SPARK, NoSpark, open_session, reach_without_session
from moldau.spark.pipelines.running.state.folders import PipelineFolder
from moldau.spark.pipelines.running.state.locks import AlreadyRunning
from moldau.spark.storage import Folder, LocalFolder, StorageFailed, is_url
from moldau.spark.storage import folder_of as session_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.spark.pipelines.running.results.sinks import Job

STOP_S_MAX = 120.0
COLUMNS = ("query", "state", "rows", "rows/s", "lag", "watermark", "restarts", "into")


def act(options: Namespace) -> int:
    """What `options.action` names."""
    action = ACTIONS[options.action]
    try:
        if is_project(options.file):
            options.file = spec_file_of(options.file)
            action = projects.ACTIONS.get(options.action, action)
        return action(options)
    except PipelineError as wrong:
        raise UsageError(str(wrong)) from None
    except ModuleNotFoundError as wrong:
        if wrong.name == "yaml":
            raise CommandFailed(NO_YAML) from None
        raise CommandFailed(f"{NO_SPARK} ({wrong.name} is missing)") from None
    except StorageFailed as wrong:
        raise CommandFailed(str(wrong)) from None
    except AlreadyRunning as wrong:
        raise CommandFailed(f"{wrong}; stop it with: moldau pipeline stop {options.file}") from None


def loaded(options: Namespace) -> Plan:
    return with_environment(load(options.file, said(options)), os.environ, needs_all=False)


def said(options: Namespace) -> dict[str, str]:
    """The command line goes before the file, and both before the environment."""
    settings = dict(split_pair(pair, option="--set") for pair in options.settings)
    if BOOTSTRAP_VARIABLE in os.environ and "bootstrap.servers" not in load(options.file, settings).settings:
        settings["bootstrap.servers"] = os.environ[BOOTSTRAP_VARIABLE]
    return settings


def checked(options: Namespace, *, asks_library: bool = False) -> Plan:
    """A sound plan; its warnings are said, its errors end the command."""
    plan = with_environment(loaded(options), os.environ)
    found = check(plan, asks_library=asks_library)
    errors = [problem for problem in found if problem.is_error]
    for problem in found if len(errors) > 1 else [one for one in found if not one.is_error]:
        print(problem, file=sys.stderr)
    if errors:
        raise UsageError(str(errors[0]) if len(errors) == 1 else f"{len(errors)} errors")
    return plan


def folder_of(plan: Plan, path: Path) -> PipelineFolder:
    """To look at it while nothing runs here."""

    def reach(url: str) -> Folder:
        return reach_without_session(url, plan.settings, log=lambda: found.log)

    found = PipelineFolder(plan, path.resolve().parent, reach)
    return found


def looked_at(options: Namespace) -> tuple[Plan, PipelineFolder]:
    """Of a file of ours, or of a project."""
    if is_project(options.file):
        return projects.looked_at(options)
    plan = loaded(options)
    return plan, folder_of(plan, options.file)


def session_of(plan: Plan, options: Namespace) -> SparkSession:
    folder = PipelineFolder(plan, options.file.resolve().parent)
    try:
        return open_session(f"moldau pipeline {plan.name}", options.master, plan.settings, log=folder.log)
    except NoSpark as wrong:
        raise CommandFailed(str(wrong)) from None


def jobs(
    plan: Plan,
    folder: PipelineFolder,
    spark: SparkSession,
    *,
    starting: Mapping[str, str] | None = None,
    anew: bool = False,
) -> list[Job]:
    from moldau.spark.pipelines.running.frames.plan_frames import frames_of
    from moldau.spark.pipelines.running.runner import jobs_of

    return jobs_of(frames_of(spark, plan, starting=starting), plan, folder, anew=anew)


def run(options: Namespace) -> int:
    projects.refuse_options_of_projects(options)
    return run_plan(checked(options), options)


def run_plan(plan: Plan, options: Namespace, *, starting: Mapping[str, str] | None = None, anew: bool = False) -> int:
    """`anew` begins with checkpoints of its own, which take the place of the old ones with their first batch."""
    from moldau.spark.pipelines.running.runner import Runner

    if options.deploy_mode == CLUSTER:
        return submit(plan, options, said(options))
    opened: list[SparkSession] = []

    def spark() -> SparkSession:
        if not opened:
            print(f"pipeline {plan.name}: starting Spark", file=sys.stderr)
            opened.append(session_of(plan, options))
        return opened[0]

    # A lock that only Spark can reach is taken when Spark is there, any other before that.
    folder = PipelineFolder(plan, options.file.resolve().parent, lambda url: reached(url, spark))
    with folder.locked(is_patient=is_submitted()):
        sys.stderr.writelines(f"{line}\n" for line in retention_warnings(plan, options.file))
        made = jobs(plan, folder, spark(), starting=starting, anew=anew)
        if options.once:
            made = [one.scheduled(ONCE) for one in made]
        for one in made:
            print(f"  {one.sink.name} into {one.sink.endpoint}, {one.schedule}", file=sys.stderr)
        lines = ProgressLines(sys.stderr, quiet=options.quiet)
        watchers = Watchers([lines, *extra_watchers(options, plan, lines.say)])
        runner = Runner(made, folder, plan=plan, say=lines.say, restarts_max=options.restarts)
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: runner.stop())
        ended_well = runner.run(watchers.show)
        watchers.finish(runner.queries)
    return OK if ended_well else FAILED


def reached(url: str, spark: Callable[[], SparkSession]) -> Folder:
    return session_folder(url, spark()) if is_url(url) else LocalFolder(Path(url))


def check_file(options: Namespace) -> int:
    plan = checked(options, asks_library=True)
    if not options.quick:
        spark = session_of(plan, options)
        if runs_elsewhere(options.master or plan.settings.get("spark.master", "")):
            check_executors(spark, plan, folder_of(plan, options.file).checkpoints)
        made = jobs(plan, folder_of(plan, options.file), spark)
        for one in made:
            columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in one.frame.schema.fields)
            print(f"{one.sink.name} into {one.sink.endpoint}: {columns}")
    counts = f"{len(plan.sources)} sources, {len(plan.views)} views, {len(plan.sinks)} sinks"
    print(f"pipeline {plan.name}: {counts}; nothing is wrong")
    return OK


def runs_elsewhere(master: str) -> bool:
    return bool(master) and master != "local" and not master.startswith("local[")


def check_executors(spark: SparkSession, plan: Plan, checkpoints: str) -> None:
    """A line for each executor; what one of them lacks ends the command."""
    from moldau.spark.pipelines.running.reasons import said_by, spark_failures
    from moldau.spark.pipelines.running.sessions.executors import checkpoint_problem, look_at, pythons_of, wanted_by

    wanted = wanted_by(plan)
    is_classic = hasattr(spark, "_sc")
    try:
        found = look_at(spark, wanted)
    except spark_failures() as wrong:
        for line in pythons_of(spark, wanted) if is_classic else ():
            print(line)
        raise CommandFailed(f"executors can't run a task in Python: {said_by(wrong)}") from None
    for executor in found.executors:
        print(executor)
    problem = checkpoint_problem(spark, checkpoints) if is_classic else None
    if problem:
        raise CommandFailed(problem)
    if found.problem:
        raise CommandFailed(found.problem)


def graph(options: Namespace) -> int:
    plan = load(options.file, said(options))
    sys.stdout.write(DRAWINGS[options.drawing](drawing_of(plan)))
    for problem in check(plan):
        print(Problem(*problem), file=sys.stderr)
    return OK


def status(options: Namespace) -> int:
    plan, folder = looked_at(options)
    told = folder.read_status()
    if told is None:
        raise CommandFailed(f"pipeline {plan.name} has not run yet; start it with: moldau pipeline run {options.file}")
    rows = status_rows(told, is_alive=folder.holder() is not None)
    print_rows(rows, columns=COLUMNS, output=options.output)
    if options.output == TABLE:
        for row in rows:
            if row["reason"] and row["state"] not in ("running", "done"):
                print(f"{row['query']}: {row['reason']}")
            for finding in findings_of(row):
                print(f"{row['query']}: {finding}")
        is_ours = not is_project(options.file)
        for line in retention_warnings(plan, options.file) if is_ours else project_warnings(told, options.file):
            print(line)
    return OK


def stop(options: Namespace) -> int:
    plan, folder = looked_at(options)
    holder = folder.holder()
    if holder is None:
        raise CommandFailed(f"pipeline {plan.name} is not running")
    folder.ask_to_end(holder)
    deadline = time.monotonic() + STOP_S_MAX
    while folder.holder() is not None:
        if time.monotonic() > deadline:
            raise CommandFailed(f"{holder} did not end within {STOP_S_MAX:.0f} s")
        time.sleep(0.1 if holder.is_of_this_machine else 1.0)
    print(f"pipeline {plan.name} stopped")
    return OK


def reset(options: Namespace) -> int:
    plan = loaded(options)
    folder = folder_of(plan, options.file)
    unknown = set(options.sink or ()) - {sink.name for sink in plan.sinks}
    if unknown:
        names = ", ".join(sink.name for sink in plan.sinks)
        raise UsageError(f"no sink {sorted(unknown)[0]} in {options.file}; there are {names}")
    if not options.yes:
        there = ", ".join(folder.progress()) or "nothing"
        print(f"would forget the progress of {there}; add --yes to do it")
        return OK
    with folder.locked():
        gone = folder.forget_progress(options.sink)
    print(f"forgot the progress of {', '.join(gone) or 'nothing: there was none'}")
    return OK


def replay(options: Namespace) -> int:
    starting = starting_options(options.start, now_ms=SystemClock().now_ms())
    if options.deploy_mode == CLUSTER:
        raise UsageError("--deploy-mode cluster: a replay is asked for where it runs; run it without")
    plan = checked(options)
    folder = folder_of(plan, options.file)
    print(f"pipeline {plan.name} would run anew:", file=sys.stderr)
    for line in replay_lines(plan, folder, starting):
        print(f"  {line}", file=sys.stderr)
    if not options.yes and not agreed():
        raise UsageError("nothing was done; answer y, or add --yes, to replay it")
    return run_plan(plan, options, starting=starting, anew=True)


def replay_lines(plan: Plan, folder: PipelineFolder, starting: Mapping[str, str]) -> Iterator[str]:
    from moldau.spark.clients.librdkafka import NoAnswer
    from moldau.spark.option_values import OptionError
    from moldau.spark.pipelines.replaying import replay_of

    try:
        for one in replay_of(plan, starting):
            yield f"{one.stream} reads {one.records:,} records of {one.place} again"
    except (NoAnswer, OptionError) as wrong:
        raise CommandFailed(str(wrong)) from None
    for sink in plan.sinks:
        kept = " (its progress is kept until then)" if sink.name in folder.progress() else ""
        yield f"{sink.name} writes into {sink.endpoint} again, from its first finished batch on{kept}"


def agreed() -> bool:
    """False where nobody can be asked."""
    if not sys.stdin.isatty():
        return False
    print("Replay? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def starting_options(text: str, *, now_ms: int) -> dict[str, str]:
    """Where streams begin: an age, a moment, or everything."""
    from datetime import datetime

    if text == "earliest":
        return {"startingOffsets": "earliest"}
    if text.startswith("-"):
        try:
            at_ms = now_ms - duration_ms(text[1:])
        except ValueError as wrong:
            raise UsageError(f"--from: {wrong}") from None
    else:
        try:
            at_ms = int(datetime.fromisoformat(text).timestamp() * 1000)
        except ValueError:
            allowed = "-2h, -30m, earliest, or a moment such as 2026-01-31T12:00:00"
            raise UsageError(f"--from {text!r} is no time; allowed: {allowed}") from None
    return {"startingTimestamp": str(at_ms), "startingOffsetsByTimestampStrategy": "latest"}


ACTIONS: dict[str, Callable[[Namespace], int]] = {
    "run": run,
    "check_file": check_file,
    "graph": graph,
    "status": status,
    "stop": stop,
    "reset": reset,
    "replay": replay,
}

"""`moldau pipeline` with a project of Spark's own Declarative Pipelines."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from moldau.cli.connection import split_pair
from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.pipeline.command import CLUSTER
from moldau.cli.pipeline.progress import ProgressLines
from moldau.cli.retention.margins import project_warnings
from moldau.spark.pipelines.declarative.elements import Elements, drawing_of
from moldau.spark.pipelines.declarative.places import find_folder, hold_folder
from moldau.spark.pipelines.declarative.project import Project, load_project, spec_of
from moldau.spark.pipelines.graph import DRAWINGS
from moldau.spark.pipelines.language.durations import duration_ms
from moldau.spark.pipelines.plan import ONCE, Plan, Schedule
from moldau.spark.pipelines.running.sessions.opening import NoSpark
from moldau.spark.pipelines.running.state.folders import PipelineFolder
from moldau.spark.storage import Folder, LocalFolder, is_url

EVERY = "10s"


def run(options: Namespace) -> int:
    from moldau.spark.pipelines.declarative.runner import ProjectRunner
    from moldau.spark.pipelines.declarative.server import ConnectServer, open_server

    if options.deploy_mode == CLUSTER:
        raise UsageError(
            "--deploy-mode cluster: a project's driver runs here, beside its definitions; run it without, or on a "
            "Connect server that is there, with --master sc://…"
        )
    for unread, value in (("--metrics-port", options.metrics_port), ("--lineage", options.lineage)):
        if value is not None:
            raise UsageError(
                f"{unread} is for pipelines in a .sql or .py file; {options.file.name} has its figures in status"
            )
    project, schedule = _project(options), _schedule(options)
    configuration = spec_of(project).configuration
    opened: list[ConnectServer] = []

    def server() -> ConnectServer:
        if not opened:
            print(f"pipeline {project.name}: starting Spark; updates: {schedule}", file=sys.stderr)
            try:
                opened.append(open_server(project, configuration, options.master))
            except NoSpark as wrong:
                raise CommandFailed(str(wrong)) from None
        return opened[0]

    # As for other pipelines: a lock that only Spark can reach is taken when Spark is there, any other before that.
    def reach(url: str) -> Folder:
        return server().folder(url) if is_url(url) else LocalFolder(Path(url))

    with hold_folder(project, options.master, reach=reach, say=_say) as folder:
        warnings = project_warnings(folder.read_status() or {"queries": {}}, options.file)
        sys.stderr.writelines(f"{line}\n" for line in warnings)
        lines = ProgressLines(sys.stderr, quiet=options.quiet)
        runner = ProjectRunner(
            server(), project, folder, schedule=schedule, say=lines.say, restarts_max=options.restarts
        )
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: runner.stop())
        ended_well = runner.run(lines.show, full_refresh=options.full_refresh or ())
        lines.finish(runner.queries)
    if server().has_died:
        sys.stderr.flush()
        os._exit(FAILED)  # PySpark's own way out looks for the server that has gone, for minutes
    return OK if ended_well else FAILED


def check(options: Namespace) -> int:
    """Spark's own dry run, unless it shall be quick."""
    project = _project(options)
    spec_of(project)
    if options.quick:
        print(f"pipeline {project.name}: the specification is sound; without --quick its definitions are checked")
        return OK
    elements = _defined(options, project, is_checked=True)
    counts = f"{len(elements.outputs)} outputs, {len(elements.flows)} flows"
    print(f"pipeline {project.name}: {counts}; nothing is wrong")
    return OK


def graph(options: Namespace) -> int:
    project = _project(options)
    elements = _defined(options, project, is_checked=False)
    sys.stdout.write(DRAWINGS[options.drawing](drawing_of(project.name, elements)))
    return OK


def looked_at(options: Namespace) -> tuple[Plan, PipelineFolder]:
    project = _project(options)
    return Plan(project.name), find_folder(project, say=_say)


def no_reset(options: Namespace) -> int:
    raise UsageError(f"Spark computes its tables anew with: moldau pipeline run {options.file} --full-refresh all")


def refuse_options_of_projects(options: Namespace) -> None:
    """Raises UsageError for what only a project has, where the pipeline is a file of ours."""
    for name, value, instead in (
        ("--every", options.every, "a sink's own clause says it: every '10 seconds'"),
        ("--full-refresh", options.full_refresh, "moldau pipeline replay runs it anew"),
    ):
        if value:
            raise UsageError(f"{name} is for a spark-pipeline.yml; of {options.file.name} {instead}")


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _project(options: Namespace) -> Project:
    return load_project(options.file, dict(split_pair(pair, option="--set") for pair in options.settings))


def _schedule(options: Namespace) -> Schedule:
    if options.once:
        if options.every:
            raise UsageError("--once and --every exclude each other")
        return ONCE
    try:
        return Schedule(duration_ms(options.every or EVERY))
    except ValueError as wrong:
        raise UsageError(f"--every: {wrong}") from None


def _defined(options: Namespace, project: Project, *, is_checked: bool) -> Elements:
    """Definitions are programs, which need a Spark to make their frames with."""
    from moldau.spark.pipelines.declarative.server import open_server
    from moldau.spark.pipelines.declarative.update import Update, UpdateFailed, WrongDefinition

    print(f"pipeline {project.name}: starting Spark", file=sys.stderr)
    found: list[Elements] = []
    try:
        configuration, master = spec_of(project).configuration, getattr(options, "master", None)
        server = open_server(project, configuration, master, keeps_tables=False)
        update = Update(server, project, on_elements=found.append, on_event=lambda _: None)
        if is_checked:
            update.run(dry=True)
            return found[0]
        return update.define()
    except NoSpark as wrong:
        raise CommandFailed(str(wrong)) from None
    except (WrongDefinition, UpdateFailed) as wrong:
        raise UsageError(str(wrong)) from None


# By the names of the actions that they stand in for; status and stop are the same for all pipelines.
ACTIONS: dict[str, Callable[[Namespace], int]] = {
    "run": run,
    "check_file": check,
    "graph": graph,
    "reset": no_reset,
    "replay": no_reset,
}

"""`moldau retention`: readers that stand still while retention comes nearer. For a person, and for cron."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from moldau.cli.connection import client_settings
from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.librdkafka import client_config, cluster_metadata, open_client
from moldau.cli.output import print_rows
from moldau.cli.retention.command import WITHIN_MS
from moldau.core.clock import SystemClock
from moldau.spark.offsets.retention import Margin, duration_text
from moldau.spark.offsets.retention_guard import RetentionGuard
from moldau.spark.option_values import OptionError
from moldau.spark.pipelines.declarative.places import find_folder
from moldau.spark.pipelines.declarative.project import is_project, load_project
from moldau.spark.pipelines.plan import PipelineError, Plan
from moldau.spark.storage import StorageFailed

GLANCE_S = 3.0  # a pipeline's status is of use without brokers too
Reader = tuple[tuple[tuple[str, Any], ...], str]  # a client's settings, and a group
COLUMNS = ("group", "topic", "partition", "unread", "left", "verdict")


def run(options: Namespace) -> int:
    groups = [*named_groups(options), *pipeline_groups(options)]
    if not groups:
        raise UsageError("name a group, or a pipeline with --pipeline FILE")
    now_ms, rows, is_short = SystemClock().now_ms(), [], False
    for client, group in groups:
        guard = RetentionGuard(client)
        margins = guard.margins(group, now_ms=now_ms)
        rows += [row_of(group, one, options.within) for one in margins] or [row_of_nothing(group)]
        short = [one for one in margins if one.is_short(options.within)]
        if options.hold:
            for line in guard.hold(group, margins, within_ms=options.within, now_ms=now_ms):
                print(line, file=sys.stderr)
            # What is lost is lost; all else is safe now.
            short = [one for one in short if one.position.lost]
        is_short = is_short or bool(short) or not margins
    print_rows(rows, columns=COLUMNS, output=options.output)
    return FAILED if is_short else OK


def row_of(group: str, one: Margin, within_ms: int) -> dict[str, object]:
    place, unread = one.position.place, one.position.unread
    verdict = str(one).partition(": ")[2] if one.is_short(within_ms) else "ok"
    left = None if one.left_ms is None else duration_text(one.left_ms)
    return {
        "group": group,
        "topic": place.topic,
        "partition": place.partition,
        "unread": unread,
        "left": left,
        "left_ms": one.left_ms,
        "verdict": verdict,
    }


def row_of_nothing(group: str) -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(COLUMNS)
    verdict = "no offsets of it can be seen: nobody can tell how far it is"
    return row | {"group": group, "left_ms": None, "verdict": verdict}


def named_groups(options: Namespace) -> Iterator[Reader]:
    if not options.group:
        return
    client = client_config(options)
    cluster_metadata(open_client(AdminClient, client), options)
    for group in options.group:
        yield tuple(client.items()), group


def pipeline_groups(options: Namespace) -> Iterator[Reader]:
    """What pipelines need beside the client library is not there in every installation."""
    for path in options.pipeline:
        if is_project(path):
            yield from project_groups(path, options)
            continue
        try:
            from moldau.spark.pipelines.loading import load, with_environment
            from moldau.spark.pipelines.running.reports.reader_groups import reader_groups

            plan = load(path, {})
            if "bootstrap.servers" not in plan.settings:
                plan = load(path, {"bootstrap.servers": client_settings(options)["bootstrap.servers"]})
            yield from reader_groups(with_environment(plan, os.environ, needs_all=False))
        except (PipelineError, OptionError) as wrong:
            raise UsageError(str(wrong)) from None
        except ModuleNotFoundError as wrong:
            raise CommandFailed(f"a pipeline needs pip install 'moldau[spark]' ({wrong.name} is missing)") from None


def project_groups(path: Path, options: Namespace) -> Iterator[Reader]:
    """Only Spark knows what a project's definitions read, so it is its newest run that is asked."""
    try:
        project = load_project(path)
    except PipelineError as wrong:
        raise UsageError(str(wrong)) from None
    try:
        status = find_folder(project, say=lambda line: print(line, file=sys.stderr)).read_status()
    except StorageFailed as wrong:
        raise CommandFailed(str(wrong)) from None
    except ModuleNotFoundError as wrong:
        raise CommandFailed(f"a pipeline needs pip install 'moldau[spark]' ({wrong.name} is missing)") from None
    if status is None:
        raise UsageError(f"{path} has not run yet, so nobody knows what its flows read")
    own = client_config(options)
    for one in noted_readers(status):
        yield tuple({**own, **one["client"]}.items()), one["group"]


def noted_readers(status: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for told in status["queries"].values():
        yield from told.get("reads", ())


def project_warnings(status: Mapping[str, Any], path: Path) -> list[str]:
    """The same of a project, by what its newest run has noted."""
    found, said = [], []
    for one in noted_readers(status):
        if one["withheld"]:
            asked = " ".join(f"-X {name}=…" for name in one["withheld"])
            said.append(
                f"retention before group {one['group']} is shown by: moldau retention --pipeline {path} {asked}"
            )
        else:
            found.append((tuple(one["client"].items()), one["group"]))
    return [*_warnings(found, path), *said]


def retention_warnings(plan: Plan, path: Path) -> list[str]:
    """What a pipeline that starts, or is looked at, should be told of; nothing where nobody answers."""
    from moldau.spark.pipelines.running.reports.reader_groups import reader_groups

    try:
        return _warnings(reader_groups(plan), path)
    except OptionError:  # whoever runs it says more
        return []


def _warnings(readers: Iterable[Reader], path: Path) -> list[str]:
    now_ms, said = SystemClock().now_ms(), []
    try:
        for client, group in readers:
            margins = RetentionGuard(client, answer_s_max=GLANCE_S).margins(group, now_ms=now_ms)
            said += [f"warning: {one} (group {group})" for one in margins if one.is_short(WITHIN_MS)]
    except KafkaException:  # whoever runs it says more
        return []
    return [*said, f"retention can be held: moldau retention --pipeline {path} --hold"] if said else []

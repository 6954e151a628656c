"""`moldau sql`: topics as tables by their names; one question, a stream of answers, or a conversation."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.librdkafka import client_config, cluster_metadata, open_client
from moldau.cli.sql.output import print_result
from moldau.cli.sql.plot import plot_rows
from moldau.cli.sql.waiting import WaitingLine, waiting_line
from moldau.spark.pipelines.plan import PipelineError
from moldau.spark.pipelines.running.sessions import class_archive
from moldau.spark.pipelines.running.sessions.opening import NO_SPARK, NoSpark, open_session
from moldau.spark.pipelines.running.sessions.quick_start import archive, java_options
from moldau.spark.sql.refusals import Refused
from moldau.spark.sql.session import SqlSession
from moldau.spark.sql.staying import StayingStreams, StreamFailed, home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(options: Namespace) -> int:
    try:
        return converse_or_ask(options)
    except ModuleNotFoundError as wrong:
        raise CommandFailed(f"{NO_SPARK} ({wrong.name} is missing)") from None


def converse_or_ask(options: Namespace) -> int:
    client = client_config(options)
    admin = open_client(AdminClient, client)

    def topics() -> list[str]:
        found = cluster_metadata(admin, options).topics
        return sorted(name for name in found if not name.startswith("__"))

    topics()  # nobody should wait for Spark to hear that there is no cluster
    line = waiting_line()
    session = SqlSession(
        opener(options),
        client=client,
        topics=topics,
        streams=StayingStreams(),
        master=options.master,
        waits_for=line.says,
    )
    if options.statement is None:
        from moldau.cli.sql.shell import converse

        code = converse(session, topics, output=options.output, line=line)
    else:
        code = ask(session, options.statement, options, line)
    if (session.has_spark or options.keep_classes) and not (options.master or "").startswith("sc://"):
        keep_classes(options, line)
    return code


def keep_classes(options: Namespace, line: WaitingLine) -> None:
    """An archive for the next start, if there is none yet.

    A person asks again; a script in a container that is thrown away would only pay for the archive.
    """
    kept = archive()
    if kept is None or kept.is_file() or not (options.keep_classes or sys.stderr.isatty()):
        return
    if not options.keep_classes:
        class_archive.begin(kept)
        return
    line.says("Spark's classes are kept for the next start")
    is_made = class_archive.make(kept)
    line.clear()
    if not is_made:
        raise CommandFailed(f"no archive of Spark's classes could be made at {kept}")


def opener(options: Namespace) -> Callable[[], SparkSession]:
    def open_spark() -> SparkSession:
        try:
            return open_session(
                "moldau sql", options.master, {}, log=home() / "spark.log", java=java_options(archive())
            )
        except NoSpark as wrong:
            raise CommandFailed(str(wrong)) from None

    return open_spark


def ask(session: SqlSession, statement: str, options: Namespace, line: WaitingLine) -> int:
    try:
        for result in line.until_first(session.execute(statement, follow=options.follow)):
            rows = line.until_first(result.rows)
            if options.plot and result.message is None:
                plot_rows(result.columns, rows, sys.stdout)
                continue
            print_result(result._replace(rows=rows), output=options.output, flush=options.follow)
    except PipelineError as wrong:
        raise UsageError(str(wrong)) from None
    except (Refused, StreamFailed) as wrong:
        raise CommandFailed(str(wrong)) from None
    return OK

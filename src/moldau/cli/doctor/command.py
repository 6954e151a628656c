"""`moldau doctor`: checks of this machine and of a cluster, with what to do and why."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.connection import DEFAULT_BOOTSTRAP_SERVERS, add_connection_options, client_settings
from moldau.cli.doctor.findings import Finding, Severity, run_checks
from moldau.cli.doctor.report import Area, print_report
from moldau.cli.failures import FAILED, OK, UsageError
from moldau.cli.output import add_output_option
from moldau.cli.parsing import Parser
from moldau.cli.progress import ProgressLine
from moldau.cli.units import duration

if TYPE_CHECKING:
    from moldau.cli.doctor.machine.facts import DirtyPages

EXAMPLES = """\
examples:
  moldau doctor                                   this machine, and the cluster on localhost:9092
  moldau doctor --cluster -b kafka-1:9092         a cluster, of Moldau or of Apache Kafka
  moldau doctor --machine --data /var/lib/moldau  this machine, and the file system of that log directory
  moldau doctor --machine --watch 60s             unwritten pages watched for a minute, under load
  moldau doctor -v                                also what is fine
  moldau doctor -o json | jq '.[] | select(.severity == "problem")'
  moldau doctor --strict                          exit code 1 for warnings, too: for cron

exit codes: 0 nothing is wrong, 1 a problem was found (or a warning, with --strict), 2 the command line is wrong

Nothing is changed. Each check, what it wants and why: docs/guides/doctor.md.
"""
USUAL_DATA = "moldau-data"
MACHINE, CLUSTER = "machine", "cluster"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    areas: list[Area] = []
    with ProgressLine() as progress:
        if options.machine or not options.cluster:
            areas.append((MACHINE, look_at_machine(options, progress.tell)))
        if options.cluster or not options.machine:
            areas.append((CLUSTER, look_at_cluster(options, progress.tell)))
    print_report(areas, output=options.output, verbose=options.verbose)
    worst = max((each.severity.rank for _, findings in areas for each in findings), default=0)
    limit = Severity.WARNING if options.strict else Severity.PROBLEM
    return FAILED if worst >= limit.rank else OK


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau doctor",
        description="Check this machine and a cluster as an experienced operator would, and say what to do and why.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--machine", action="store_true", help="this machine only")
    parser.add_argument("--cluster", action="store_true", help="the cluster only")
    parser.add_argument(
        "--data",
        metavar="DIR",
        action="append",
        default=[],
        help=f"a log directory on this machine; may be repeated (default: {USUAL_DATA})",
    )
    parser.add_argument(
        "--watch",
        metavar="TIME",
        type=duration,
        help="watch unwritten pages for so long, such as 30s, while there is load",
    )
    parser.add_argument("--strict", action="store_true", help="exit code 1 for warnings, too")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what is fine, too")
    add_output_option(parser)
    add_connection_options(parser)
    options = parser.parse_args(arguments)
    is_without_machine = options.cluster and not options.machine
    for name, given in (("--data", options.data), ("--watch", options.watch)):
        if given and is_without_machine:
            raise UsageError(f"{name} is about the machine, and --cluster leaves that out")
    return options


def look_at_machine(options: Namespace, tell: Callable[[str], None]) -> list[Finding]:
    from moldau.cli.doctor.machine.checks import CHECKS
    from moldau.cli.doctor.machine.gathering import gather_machine
    from moldau.cli.doctor.machine.system_files import SystemFiles
    from moldau.cli.doctor.machine.watching import watch_dirty_pages

    files = SystemFiles(system_root())
    dirty: DirtyPages | None = None
    if options.watch:
        dirty = watch_dirty_pages(files, options.watch / 1_000, tell=tell)
    data = options.data or [USUAL_DATA]
    facts = gather_machine(files, data=data, dirty=dirty, user_id=os.geteuid())
    return [*run_checks(CHECKS, facts)]


def system_root() -> Path:
    """Another one has copies of /proc and /sys: of a machine whose support bundle is looked at, or of a test."""
    return Path(os.environ.get("MOLDAU_DOCTOR_ROOT", "/"))


def look_at_cluster(options: Namespace, tell: Callable[[str], None]) -> list[Finding]:
    settings = client_settings(options)
    from moldau.cli.doctor.cluster.checks import CHECKS
    from moldau.cli.doctor.cluster.gathering import gather_cluster
    from moldau.cli.wire import cluster_of
    from moldau.client.cluster import NoAnswer, Refused
    from moldau.client.connection import Unsupported
    from moldau.core.clock import SystemClock

    with cluster_of(settings, timeout_s=options.timeout) as cluster:
        try:
            facts = gather_cluster(cluster, now_ms=SystemClock().now_ms, tell=tell)
        except (NoAnswer, Refused, Unsupported) as wrong:
            if options.cluster and not options.machine:
                raise  # there is nothing else to tell
            return [_unreachable(str(wrong), settings["bootstrap.servers"])]
    return [*run_checks(CHECKS, facts)]


def _unreachable(why: str, servers: str) -> Finding:
    """Nobody may have meant the default address; one that was named should answer."""
    named = servers != DEFAULT_BOOTSTRAP_SERVERS
    return Finding(
        Severity.PROBLEM if named else Severity.NOTE,
        "cluster",
        "cluster",
        f"it could not be asked: {why}",
        "" if named else "the machine was checked all the same",
        (
            f"moldau doctor --cluster -b {servers}" if named else "moldau doctor -b HOST:PORT",
            "or moldau doctor --machine",
        ),
    )

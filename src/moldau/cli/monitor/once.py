"""One look at each cluster, as a table; the exit code is for cron."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from moldau.cli.connection import nobody_listens
from moldau.cli.failures import FAILED, OK, CommandFailed
from moldau.cli.monitor.connecting import Opener
from moldau.cli.output import print_rows
from moldau.core.clock import SystemClock

if TYPE_CHECKING:
    from moldau.monitor.history import History
    from moldau.monitor.rules import GroupVerdict
    from moldau.monitor.settings import Settings
    from moldau.monitor.watching import Watch

COLUMNS = ("cluster", "group", "status", "lag", "seconds", "partitions", "complete", "trouble")
MORE = ("state", "type", "members")
TROUBLE_SHOWN_MAX = 3
LOOKS_MAX = 20  # until all commits of the last minutes are read


def look_once(options: Namespace, settings: Settings, openers: Mapping[str, Opener], history: History | None) -> int:
    from moldau.monitor.rules import Status
    from moldau.monitor.service import monitor_of

    # Somebody else is told by exit code and output.
    monitor = monitor_of(replace(settings, notifiers=(), metrics=()), openers, SystemClock(), history)
    rows: list[dict[str, object]] = []
    failures = []
    is_bad = False
    for watch in monitor.watches.values():
        look_to_the_end(watch)
        if watch.state is None:
            failures.append(f"cluster {watch.name}: {watch.failure}" if len(openers) > 1 else str(watch.failure))
            continue
        for problem in watch.state.look.problems:
            print(f"moldau monitor: {problem}", file=sys.stderr)
        rows += [row_of(watch, each) for each in watch.state.verdicts.values()]
        is_bad = is_bad or any(each.status == Status.ERR for each in watch.state.verdicts.values())
        watch.close()
    monitor.stop()
    if rows or not failures:
        print_rows(rows, columns=COLUMNS, more=MORE, output=options.output)
    if failures:
        raise failure_of(failures)
    return FAILED if is_bad else OK


def failure_of(failures: list[str]) -> CommandFailed:
    nobody, _, servers = failures[0].partition("no broker answers at ")
    return nobody_listens(servers) if len(failures) == 1 and not nobody else CommandFailed("; ".join(failures))


def look_to_the_end(watch: Watch) -> None:
    for _ in range(LOOKS_MAX):
        if not watch.look() or watch.state is None:
            return
        look = watch.state.look
        if look.is_caught_up or not look.reads_commits:
            return


def row_of(watch: Watch, verdict: GroupVerdict) -> dict[str, object]:
    assert watch.state is not None, "a verdict was just made"
    seen = watch.state.group(verdict.group)
    trouble = [f"{each.topic}-{each.partition}:{each.status.name}" for each in verdict.in_trouble]
    more = [f"+{len(trouble) - TROUBLE_SHOWN_MAX}"] if len(trouble) > TROUBLE_SHOWN_MAX else []
    waiting = verdict.lag_seconds
    return {
        "cluster": verdict.cluster,
        "group": verdict.group,
        "status": verdict.status.name,
        "lag": verdict.totallag,
        "seconds": None if waiting is None else round(waiting, 1),
        "partitions": len(verdict.partitions),
        "complete": round(verdict.complete, 2),
        "trouble": trouble[:TROUBLE_SHOWN_MAX] + more,
        "state": seen.state,
        "type": seen.type or seen.protocol_type,
        "members": len(seen.members),
    }

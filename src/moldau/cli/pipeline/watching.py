"""Who else looks at a running pipeline: Prometheus, by a port, and who keeps its lineage."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from moldau.cli.failures import CommandFailed
from moldau.core.clock import SystemClock

if TYPE_CHECKING:
    from moldau.spark.pipelines.plan import Plan
    from moldau.spark.pipelines.running.reports.lineage import Lineage, Sender
    from moldau.spark.pipelines.running.runner import Running

LOOPBACK = "127.0.0.1"


class Watcher(Protocol):
    def show(self, queries: Sequence[Running]) -> None: ...
    def finish(self, queries: Sequence[Running]) -> None: ...


class Watchers:
    """All of them as one."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers = watchers

    def show(self, queries: Sequence[Running]) -> None:
        for watcher in self._watchers:
            watcher.show(queries)

    def finish(self, queries: Sequence[Running]) -> None:
        for watcher in self._watchers:
            watcher.finish(queries)


def add_watcher_options(parser: ArgumentParser) -> None:
    parser.add_argument("--metrics-port", type=int, metavar="PORT", help="metrics for Prometheus there; 0 takes any")
    parser.add_argument(
        "--metrics-host", metavar="HOST", default=LOOPBACK, help="0.0.0.0 for all addresses (default: %(default)s)"
    )
    parser.add_argument(
        "--lineage", metavar="URL|FILE", help="OpenLineage events to a server, or a line each to a file"
    )


def extra_watchers(options: Namespace, plan: Plan, say: Callable[[str], None]) -> list[Watcher]:
    """Those that the command line asks for."""
    watchers: list[Watcher] = []
    if options.metrics_port is not None:
        from moldau.spark.pipelines.running.reports.metrics import MetricsServer

        try:
            server = MetricsServer(plan.name, host=options.metrics_host, port=options.metrics_port)
        except (OSError, OverflowError) as wrong:
            where = f"{options.metrics_host}:{options.metrics_port}"
            raise CommandFailed(f"metrics at {where}: {getattr(wrong, 'strerror', None) or wrong}") from None
        say(f"metrics at {server.address}")
        watchers.append(server)
    if options.lineage:
        from moldau.spark.pipelines.running.reports.lineage import Lineage, sender

        send = sender(options.lineage, say)
        watchers.append(SentLineage(Lineage(plan, send, clock=SystemClock()), send))
    return watchers


class SentLineage:
    """Lineage that is sent before the command ends."""

    def __init__(self, lineage: Lineage, send: Sender) -> None:
        self._lineage = lineage
        self._send = send

    def show(self, queries: Sequence[Running]) -> None:
        self._lineage.show(queries)

    def finish(self, queries: Sequence[Running]) -> None:
        self._lineage.finish(queries)
        self._send.close()

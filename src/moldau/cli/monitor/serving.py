"""The monitor as a service: threads that look, and an HTTP server in front."""

from __future__ import annotations

import asyncio
import logging
import os
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.monitor.connecting import Opener
from moldau.cli.monitor.exporting import export_of
from moldau.client.addresses import addresses_of
from moldau.core.clock import SystemClock
from moldau.web.extra import is_installed

if TYPE_CHECKING:
    from moldau.monitor.history import History
    from moldau.monitor.service import Monitor
    from moldau.monitor.settings import Settings
    from moldau.web.listening import Bound

LOGGER = logging.getLogger(__name__)


def serve(options: Namespace, settings: Settings, openers: Mapping[str, Opener], history: History | None) -> int:
    if not is_installed():
        raise CommandFailed("as a service it needs: pip install 'moldau[monitor]'; one look does not: --once")
    from moldau.monitor.service import monitor_of
    from moldau.monitor.serving.application import application
    from moldau.web.limits import KIB, Limits
    from moldau.web.serving import Server, until_signal

    bound = listener(settings.listen)
    monitor = monitor_of(settings, openers, SystemClock(), history)
    export = export_of(monitor, os.environ)
    server = Server(application(monitor), [bound], Limits(body_bytes=16 * KIB, leave_s=2.0))
    introduce(monitor, bound.listener.url, is_for_people=options.log_format == "text")
    monitor.start()
    if export is not None:
        export.start()

    async def run(take: Callable[[Callable[[], None]], None]) -> None:
        take(server.end)
        await server.serve()

    try:
        asyncio.run(until_signal(run))
    finally:
        if export is not None:
            export.stop()
        monitor.stop()
    if options.log_format != "text":
        LOGGER.info("monitor stopped")
    return OK


def listener(address: str) -> Bound:
    from moldau.web.listening import CannotListen, Listener, bind

    try:
        (host, port), *others = addresses_of(address.replace(":0", ":1") if address.endswith(":0") else address)
        if others or not address.endswith((":0", f":{port}")):  # without a port it would be a broker's
            raise ValueError
    except ValueError:
        raise UsageError(f"--listen: {address!r}: expected HOST:PORT") from None
    try:
        return bind([Listener("http", host, 0 if address.endswith(":0") else port)])[0]
    except CannotListen as wrong:
        raise CommandFailed(str(wrong).replace("http://", "")) from None


def introduce(monitor: Monitor, url: str, *, is_for_people: bool) -> None:
    """On standard output, or as a line of a log that a program reads."""
    clusters, notifiers = [*monitor.watches], [each.name for each in monitor.notifiers]
    if not is_for_people:
        extra = {"url": url, "clusters": clusters, "notifiers": notifiers, "history": monitor.settings.history}
        LOGGER.info("watching %s, answering at %s", ", ".join(clusters), url, extra=extra)
        return
    print(f"watching {', '.join(clusters)} every {monitor.settings.interval_s:g} s")
    if monitor.history is not None:
        print(f"history in {monitor.settings.history}")
    if notifiers:
        print(f"telling {', '.join(notifiers)}")
    print(f"answering at {url} (/v3/kafka /metrics /health /ready)", flush=True)

"""How a start is told of: to people, to the log, to the program that asked for it, and to a supervisor."""

from __future__ import annotations

import gc
import logging
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from moldau.node.garbage import keep_collections_short
from moldau.node.running import BoundListener, Running
from moldau.node.supervisor import READY, notify_supervisor

LOGGER = logging.getLogger(__name__)


def announcer(options: Namespace, *, begun_s: float) -> Callable[[Running], None]:
    def announce(running: Running) -> None:
        gc.freeze()
        gc.enable()
        keep_collections_short()
        # On a terminal the banner says it, for people. Python has None for a stream that was closed before it started.
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        if options.log_file is not None or options.log_format != "text" or not is_terminal:
            log_start(running, took_s=time.monotonic() - begun_s)
        clients = secured_clients(options, running)
        # Containers join standard output and standard error: with JSON every line of both has to be JSON.
        if options.log_format == "text" and options.member_of is None:
            say(banner(running) + clients)
        if options.ready_fd is not None:
            tell(options.ready_fd, running, options.secured_by)
        notify_supervisor(READY)

    return announce


def secured_clients(options: Namespace, running: Running) -> str:
    """The files of --secure for clients, which need the port that the listener has; what the banner says of them."""
    if not options.secure:
        return ""
    from moldau.node.securing.secure_start import bootstrap_servers, write_client_files

    servers = bootstrap_servers((each.host, each.port) for each in running.listeners)
    return "\n" + write_client_files(options.secured_by, servers)


def say(text: str) -> None:
    """To standard output, if anybody reads it: a broker goes on without its terminal or the pipe that it wrote to."""
    try:
        print(text, flush=True)
    except OSError:
        # What is left in the buffer would fail again at the end, and be the exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def log_start(running: Running, *, took_s: float) -> None:
    listeners = [address(each) for each in running.listeners]
    data_dirs = [str(directory.resolve()) for directory in running.data_dirs]
    elsewhere = "" if running.metadata is None else f", metadata in {running.metadata}"
    elsewhere += "" if running.metrics is None else f", metrics at {running.metrics}"
    LOGGER.info(
        "broker %d started in %.2f s: %s, %d topics with %d partitions in %s%s",
        running.broker_id,
        took_s,
        ", ".join(listeners),
        running.topics,
        running.partitions,
        ", ".join(data_dirs),
        elsewhere,
        extra={
            "broker_id": running.broker_id,
            "cluster_id": running.cluster_id,
            "listeners": listeners,
            "topics": running.topics,
            "partitions": running.partitions,
            "data_dirs": data_dirs,
            "metadata": running.metadata,
            "metrics": running.metrics,
            "duration_s": round(took_s, 3),
        },
    )


def banner(running: Running) -> str:
    lines = [f"broker {running.broker_id} of cluster {running.cluster_id} answers clients; Ctrl-C stops it"]
    lines += [f"  listening  {address(each)}" for each in running.listeners]
    lines += [f"  data       {directory.resolve()}" for directory in running.data_dirs]
    if running.metadata is not None:
        lines.append(f"  metadata   {running.metadata}")
    if running.metrics is not None:
        lines.append(f"  metrics    {running.metrics}")
    return "\n".join(lines)


def address(listener: BoundListener) -> str:
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{listener.name}://{host}:{listener.port}"


def tell(ready_fd: int, running: Running, secured_by: Path | None) -> None:
    listeners = {each.name: (each.host, each.port) for each in running.listeners}
    tell_ready(ready_fd, [listeners], metrics=running.metrics, secured_by=secured_by)


def tell_ready(
    ready_fd: int, brokers: Sequence[Mapping[str, tuple[str, int]]], *, metrics: str | None, secured_by: Path | None
) -> None:
    """The program that asked for a broker, or for several, learns all listeners of the first and one of each."""
    import json

    told = {
        "listeners": brokers[0],
        "servers": [next(iter(each.values())) for each in brokers],
        "metrics": metrics,
        "secured_by": None if secured_by is None else str(secured_by),
    }
    with os.fdopen(ready_fd, "w") as ready:
        ready.write(json.dumps(told) + "\n")

"""`moldau monitor`: lag of consumer groups, judged by Burrow's rules and in seconds; a service, or a look for cron."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import time
import tomllib
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from moldau.cli.connection import (
    add_connection_options,
    check_servers,
    client_settings,
    nobody_listens,
    read_properties,
)
from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.java_settings import for_librdkafka
from moldau.cli.output import add_output_option, print_rows
from moldau.cli.parsing import Parser
from moldau.cli.settling import seconds
from moldau.cli.wire import cluster_of
from moldau.client.cluster import Cluster, addresses_of
from moldau.core.clock import SystemClock

if TYPE_CHECKING:
    from moldau.monitor.history import History
    from moldau.monitor.rules import GroupVerdict
    from moldau.monitor.service import Monitor
    from moldau.monitor.settings import ClusterSettings, Settings
    from moldau.monitor.watching import Watch

EXAMPLES = """\
examples:
  moldau monitor                                     the cluster on localhost:9092; answers on localhost:8000
  moldau monitor -b kafka-1:9092 --history lag.db    what was seen survives a restart
  moldau monitor --config monitor.toml               several clusters, rules, who is told of groups in trouble
  moldau monitor --once                              one look: a table, and exit code 1 if a group is in ERR
  curl localhost:8000/v3/kafka/local/consumer/billing/status
  curl localhost:8000/metrics                        for Prometheus

The file, and what each status means: docs/guides/lag-monitor.md. As a service: pip install 'moldau[monitor]'.
"""
CLIENT_ID = "moldau-monitor"
LOCAL = "local"  # the name of the only cluster
COLUMNS = ("cluster", "group", "status", "lag", "seconds", "partitions", "complete", "trouble")
MORE = ("state", "type", "members")
TROUBLE_SHOWN_MAX = 3
LOOKS_MAX = 20  # of --once, until all commits of the last minutes are read
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
LINE = "%(asctime)s %(levelname)s %(name)s %(message)s"

Opener = Callable[[], Cluster]


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    settings = settled(options)
    openers = {each.name: opener(each, options) for each in settings.clusters}
    history = opened_history(settings)
    return look_once(options, settings, openers, history) if options.once else serve(settings, openers, history)


def parse(arguments: list[str]) -> Namespace:
    description = "Watch the lag of consumer groups: Burrow's verdicts and answers, and lag in seconds."
    parser = Parser(prog="moldau monitor", description=description, epilog=EXAMPLES)
    parser.add_argument("--config", metavar="FILE", help="clusters, rules and notifiers, in TOML")
    parser.add_argument("--once", action="store_true", help="print a verdict on each group, and end")
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="where to answer over HTTP (default: 127.0.0.1:8000; port 0: a free one)"
    )
    parser.add_argument("--history", metavar="FILE", help="a SQLite file for what was seen (default: none)")
    parser.add_argument(
        "--interval", metavar="SECONDS", type=seconds, help="from one look at a cluster to the next (default: 10)"
    )
    parser.add_argument("--log-level", metavar="LEVEL", type=level, default="INFO", help=", ".join(LEVELS))
    add_output_option(parser)
    add_connection_options(parser)
    options = parser.parse_args(arguments)
    configure_logging("ERROR" if options.once else options.log_level)
    return options


def level(text: str) -> str:
    if text.upper() not in LEVELS:
        raise ArgumentTypeError(f"{text!r} is no level; expected {', '.join(LEVELS)}")
    return text.upper()


def configure_logging(name: str) -> None:
    """Lines as the broker's log has them."""
    formatter = logging.Formatter(LINE)
    formatter.converter = time.gmtime
    formatter.default_time_format, formatter.default_msec_format = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=name, handlers=[handler], force=True)


def settled(options: Namespace) -> Settings:
    """The file, and what the command line says instead; without clusters in the file, the one of all other tools."""
    from moldau.monitor.settings import ClusterSettings, InvalidSettings, read_settings

    try:
        settings = read_settings(read_file(options.config) if options.config else {})
    except InvalidSettings as wrong:
        raise UsageError(f"{options.config}: {wrong}") from None
    if settings.history and options.config:
        settings = replace(settings, history=str(Path(options.config).parent / settings.history))
    if settings.clusters and options.bootstrap_server:
        raise UsageError(f"--bootstrap-server: the clusters are those of {options.config}")
    return replace(
        settings,
        clusters=settings.clusters or (ClusterSettings(options.profile or LOCAL),),
        listen=options.listen or settings.listen,
        history=options.history or settings.history,
        interval_s=options.interval or settings.interval_s,
    )


def read_file(path: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(Path(path).read_bytes().decode())
    except OSError as wrong:
        raise UsageError(f"cannot read {path}: {wrong.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {path}: it is no text in UTF-8") from None
    except tomllib.TOMLDecodeError as wrong:
        raise UsageError(f"{path}: {wrong}") from None


def opener(cluster: ClusterSettings, options: Namespace) -> Opener:
    """Nothing is connected here, but what is wrong with the settings is told at once."""
    timeout_s = float(cluster.connection.get("timeout") or options.timeout)
    properties = client_properties(cluster, options)
    cluster_of(properties, timeout_s=timeout_s).close()

    def make() -> Cluster:
        try:
            return cluster_of(properties, timeout_s=timeout_s)
        except CommandFailed as wrong:  # a certificate that was there at the start
            raise OSError(str(wrong)) from None

    return make


def client_properties(cluster: ClusterSettings, options: Namespace) -> dict[str, str]:
    """A cluster of the file has nothing of the profile that other tools use here, unless it names one."""
    said = cluster.connection
    if not said:
        given = Namespace(**{**vars(options), "properties": [f"client.id={CLIENT_ID}", *options.properties]})
        return client_settings(given)
    folder = Path(options.config).parent
    file = said.get("command-config")
    properties = [f"{name}={value}" for name, value in cluster.client.items()]
    if said.get("profile"):
        named = Namespace(
            profile=said["profile"],
            command_config=str(folder / file) if file else None,
            bootstrap_server=said.get("bootstrap-server"),
            properties=[f"client.id={CLIENT_ID}", *properties],
        )
        return client_settings(named)
    where = f"{options.config}: clusters.{cluster.name}"
    if not said.get("bootstrap-server"):
        raise UsageError(f"{where}: expected bootstrap-server, or a profile")
    found = read_properties(str(folder / file)) if file else {}
    found = {"client.id": CLIENT_ID, **for_librdkafka({**found, **cluster.client})}
    found["bootstrap.servers"] = said["bootstrap-server"]
    check_servers(found["bootstrap.servers"])
    return found


def opened_history(settings: Settings) -> History | None:
    if settings.history is None:
        return None
    from moldau.monitor.history import History, UnusableHistory

    try:
        return History(settings.history)
    except UnusableHistory as wrong:
        raise CommandFailed(str(wrong)) from None


def look_once(options: Namespace, settings: Settings, openers: Mapping[str, Opener], history: History | None) -> int:
    from moldau.monitor.rules import Status
    from moldau.monitor.service import monitor_of

    # Somebody else is told by exit code and output.
    monitor = monitor_of(replace(settings, notifiers=()), openers, SystemClock(), history)
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


def serve(settings: Settings, openers: Mapping[str, Opener], history: History | None) -> int:
    if any(find_spec(each) is None for each in ("starlette", "uvicorn")):
        raise CommandFailed("as a service it needs: pip install 'moldau[monitor]'; one look does not: --once")
    import uvicorn

    from moldau.monitor.service import monitor_of
    from moldau.monitor.serving.application import application

    listening = listener(settings.listen)
    monitor = monitor_of(settings, openers, SystemClock(), history)
    server = uvicorn.Server(
        uvicorn.Config(
            application(monitor), log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=2
        )
    )
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    introduce(monitor, listening)
    signal.signal(signal.SIGTERM, leave)  # uvicorn handles it first, and raises it once more when it is done
    monitor.start()
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        monitor.stop()
    return OK


def leave(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def listener(address: str) -> socket.socket:
    try:
        (host, port), *others = addresses_of(address.replace(":0", ":1") if address.endswith(":0") else address)
        if others:
            raise ValueError
    except ValueError:
        raise UsageError(f"--listen: {address!r}: expected HOST:PORT") from None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, 0 if address.endswith(":0") else port))
        found.listen()  # who asks as soon as the address is printed waits a moment instead of being refused
    except OSError as wrong:
        found.close()
        raise CommandFailed(f"cannot listen at {address}: {wrong.strerror}") from None
    return found


def introduce(monitor: Monitor, listening: socket.socket) -> None:
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    names = ", ".join(monitor.watches)
    print(f"watching {names} every {monitor.settings.interval_s:g} s")
    if monitor.history is not None:
        print(f"history in {monitor.settings.history}")
    if monitor.notifiers:
        print(f"telling {', '.join(each.name for each in monitor.notifiers)}")
    print(f"answering at http://{shown}:{port} (/v3/kafka /metrics /health /ready)", flush=True)

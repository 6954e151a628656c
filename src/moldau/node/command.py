"""`moldau start`: arguments become a configuration, a broker runs until it is told to stop, and errors are one line."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import select
import shutil
import signal
import sys
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from pathlib import Path

import uvloop

from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.environment import cluster_id, without_kafka_variables
from moldau.core.config.load import load_config, parse_overrides
from moldau.core.standard_streams import occupy_standard_streams
from moldau.node.running import Running, StartFailed

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_DATA_DIR = "./moldau-data"

# Kafka's 50 connections that wait are fewer than a client library opens at once, and its buffers of 100 KiB keep the
# system from giving a connection the memory that its speed needs.
OUR_DEFAULTS = {
    "socket.listen.backlog.size": "1024",
    "socket.send.buffer.bytes": "-1",
    "socket.receive.buffer.bytes": "-1",
}

OK = 0
FAILED = 1
USAGE = 2

EXAMPLES = """\
examples:
  moldau start                                   on localhost:9092, data in ./moldau-data
  moldau start --port 0 --data-dir /tmp/try      on a free port, which it prints
  moldau start server.properties                 a file with Apache Kafka's keys
  moldau start --override num.partitions=3 --override auto.create.topics.enable=false

The command line wins over the environment (MOLDAU_NUM_PARTITIONS=3, or KAFKA_NUM_PARTITIONS=3 as in the container
images of Apache Kafka), the environment over the file.
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    occupy_standard_streams()
    logging.basicConfig(level=options.log_level, format="%(asctime)s %(levelname)s %(message)s")
    try:
        config = configuration(options)
        uvloop.run(run(config, options))
    except ConfigError as wrong:
        return complain(str(wrong), exit_code=USAGE)
    except StartFailed as wrong:
        return complain(str(wrong), exit_code=FAILED)
    except OSError as wrong:
        return complain(explain(wrong), exit_code=FAILED)
    except KeyboardInterrupt:
        return FAILED  # a second Ctrl-C, while the first one was being obeyed
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = ArgumentParser(
        prog="moldau start",
        description="Run a broker in the foreground.",
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "properties", metavar="server.properties", nargs="?", type=Path, help="Apache Kafka's keys and values"
    )
    parser.add_argument("--port", type=port_number, help=f"0 picks a free one (default: {DEFAULT_PORT})")
    parser.add_argument("--host", help=f"the address to listen on (default: {DEFAULT_HOST})")
    parser.add_argument("--data-dir", metavar="DIR", help=f"where the data is kept (default: {DEFAULT_DATA_DIR})")
    parser.add_argument("--override", metavar="KEY=VALUE", action="append", default=[], help="one key; may be repeated")
    parser.add_argument(
        "--no-kafka-environment", action="store_true", help="read no KAFKA_* variables and no CLUSTER_ID"
    )
    parser.add_argument(
        "--accept-lost-folders", action="store_true", help="start although a data folder and its records are gone"
    )
    parser.add_argument("--log-level", choices=("DEBUG", "INFO", "WARNING", "ERROR"), default="INFO", type=str.upper)
    # For a program that starts a broker: a line of JSON once clients are answered, and an end when that program ends.
    parser.add_argument("--ready-fd", type=int, help=SUPPRESS)
    parser.add_argument("--stop-with-stdin", action="store_true", help=SUPPRESS)
    # A folder of that program's, to remove in its place when it died without doing so.
    parser.add_argument("--scratch", type=Path, help=SUPPRESS)
    return parser.parse_args(arguments)


def port_number(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) < 2**16:
        raise ArgumentTypeError(f"{text!r} is no port; expected 0 to {2**16 - 1}")
    return int(text)


def configuration(options: Namespace) -> BrokerConfig:
    """--host and --port stand for `listeners`, --data-dir for `log.dirs`; without them file and environment decide."""
    chosen: dict[str, str] = {}
    if options.host is not None or options.port is not None:
        port = DEFAULT_PORT if options.port is None else options.port
        chosen["listeners"] = plaintext(options.host or DEFAULT_HOST, port)
    if options.data_dir is not None:
        chosen["log.dirs"] = options.data_dir
    # Kafka would listen on every interface; a broker without authentication stays at home until it is told otherwise.
    defaults = {"listeners": plaintext(DEFAULT_HOST, DEFAULT_PORT), **OUR_DEFAULTS}
    if options.properties is None:
        # The server.properties that comes with Apache Kafka sets this too: whoever tries a broker should not wait.
        defaults["group.initial.rebalance.delay.ms"] = "0"
    overrides = {**chosen, **parse_overrides(options.override)}
    return load_config(options.properties, environment(options), overrides, defaults=defaults)


def environment(options: Namespace) -> Mapping[str, str]:
    return without_kafka_variables(os.environ) if options.no_kafka_environment else os.environ


def plaintext(host: str, port: int) -> str:
    return f"PLAINTEXT://[{host}]:{port}" if ":" in host else f"PLAINTEXT://{host}:{port}"


async def run(config: BrokerConfig, options: Namespace) -> None:
    # Nothing of what a start makes is garbage: looking for some would take an eighth of the time that imports take.
    gc.disable()
    # The broker is imported here so that --help and a wrong configuration answer without it.
    from moldau.node.server import serve

    stop = asyncio.Event()
    stop_on_signals(stop)
    if options.stop_with_stdin:
        stop_at_end_of_stdin(stop)
    await serve(
        config,
        announce=announcer(options.ready_fd),
        stop=stop,
        accept_lost_folders=options.accept_lost_folders,
        cluster_id=cluster_id(environment(options)),
    )
    if options.scratch is not None and stdin_has_ended():
        shutil.rmtree(options.scratch, ignore_errors=True)


def stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def obey(number: signal.Signals) -> None:
        # Who asks twice does not want to wait for a clean end.
        loop.remove_signal_handler(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, obey, number)


def stop_at_end_of_stdin(stop: asyncio.Event) -> None:
    """The other end of a pipe closes when its owner dies, however that happens: no owner, no broker."""
    loop = asyncio.get_running_loop()
    stdin = sys.stdin.fileno()

    def look() -> None:
        if not os.read(stdin, 4096):
            loop.remove_reader(stdin)
            stop.set()

    loop.add_reader(stdin, look)


def stdin_has_ended() -> bool:
    poll = select.poll()
    poll.register(sys.stdin.fileno(), select.POLLIN)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def announcer(ready_fd: int | None) -> Callable[[Running], None]:
    def announce(running: Running) -> None:
        gc.freeze()
        gc.enable()
        print(banner(running), flush=True)
        if ready_fd is not None:
            tell(ready_fd, running)

    return announce


def banner(running: Running) -> str:
    lines = [f"broker {running.broker_id} of cluster {running.cluster_id} answers clients; Ctrl-C stops it"]
    lines += [
        f"  listening  {plaintext(each.host, each.port).replace('PLAINTEXT', each.name, 1)}"
        for each in running.listeners
    ]
    lines += [f"  data       {directory.resolve()}" for directory in running.data_dirs]
    return "\n".join(lines)


def tell(ready_fd: int, running: Running) -> None:
    import json

    listeners = {each.name: (each.host, each.port) for each in running.listeners}
    with os.fdopen(ready_fd, "w") as ready:
        ready.write(json.dumps({"broker_id": running.broker_id, "listeners": listeners}) + "\n")


def explain(wrong: OSError) -> str:
    where = f": {wrong.filename}" if wrong.filename is not None else ""
    sentence = f"{wrong.strerror or wrong}{where}"
    if wrong.errno == errno.EADDRINUSE:
        return f"{sentence}; another program listens there, choose a different port with --port"
    return sentence


def complain(message: str, *, exit_code: int) -> int:
    print(f"moldau start: {message}", file=sys.stderr)
    return exit_code

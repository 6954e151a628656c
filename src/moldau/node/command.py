"""`moldau start`: arguments become a configuration, a broker runs until it is told to stop, and errors are one line."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import select
import shutil
import signal
import sys
import time
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import uvloop

from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.core.config.environment import cluster_id, without_kafka_variables
from moldau.core.config.listeners import PLAINTEXT
from moldau.core.config.load import load_config, parse_overrides
from moldau.core.config.monitoring import LISTENER, parse_http_address
from moldau.core.logs import LOG_FORMATS, LOG_LEVELS, configure_logging
from moldau.core.standard_streams import occupy_standard_streams
from moldau.node.announcing import announcer
from moldau.node.explaining import MORE_DESCRIPTORS, explain
from moldau.node.running import Halted, StartFailed
from moldau.node.supervisor import STOPPING, notify_supervisor

if TYPE_CHECKING:
    from moldau.node.cluster.membership import Place
    from moldau.node.securing.first_users import FirstUsers, StandingUser

LOGGER = logging.getLogger(__name__)

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_DATA_DIR = "./moldau-data"

# Kafka's 50 connections that wait are fewer than a client library opens at once, and its receive buffer of 100 KiB
# would cut requests that the system has room for. Its send buffer is as good as any: what a client reads while it is
# still in the processor's cache reaches it half as fast again (bench/RESULTS.md).
OUR_DEFAULTS = {
    "socket.listen.backlog.size": "1024",
    "socket.receive.buffer.bytes": "-1",
}

# Nobody knows how many brokers a cluster of many machines will have: as in Apache Kafka its internal topics have as
# many replicas as configured, or are not made yet.
BROKERS_ANY = 2**15
BROKERS_MAX = 100  # processes of one machine: each takes some tens of megabytes
DESCRIPTORS_MIN = 64  # for the store, the locks, some segments and a few clients

SECURITY_FOLDER = "security"  # of --secure, in the first data directory

OK = 0
FAILED = 1
USAGE = 2

EXAMPLES = """\
examples:
  moldau start                                   on localhost:9092, data in ./moldau-data
  moldau start --port 0 --data-dir /tmp/try      on a free port, which it prints
  moldau start --brokers 3                       a cluster on localhost:9092, 9093 and 9094
  moldau start --metrics 9404                    with http://127.0.0.1:9404/metrics for Prometheus
  moldau start --secure                          with TLS, a login and an authorizer; it prints the clients' settings
  moldau start server.properties                 a file with Apache Kafka's keys
  moldau start --override zookeeper.connect=h1:2181,h2:2181,h3:2181/moldau --override node.id=1
  moldau start --override num.partitions=3 --override auto.create.topics.enable=false

The command line wins over the environment (MOLDAU_NUM_PARTITIONS=3, or KAFKA_NUM_PARTITIONS=3 as in the container
images of Apache Kafka), the environment over the file.
"""


def main(arguments: list[str]) -> int:
    begun_s = time.monotonic()
    options = parse(arguments)
    occupy_standard_streams()
    try:
        configure_logging(
            level=options.log_level, form=options.log_format, path=options.log_file, broker_id=options.log_broker
        )
    except OSError as wrong:
        return complain(f"--log-file: {explain(wrong)}", exit_code=USAGE)
    if 0 <= (limit := resource.getrlimit(resource.RLIMIT_NOFILE)[1]) < DESCRIPTORS_MIN:  # negative: no limit
        few = f"{limit} open files are allowed, and a broker needs {DESCRIPTORS_MIN}; {MORE_DESCRIPTORS}"
        return complain(few, options=options, exit_code=FAILED)
    try:
        config = configuration(options)
        warn_of_an_open_door(config, options)
        if options.brokers != 1:
            return run_all(config, options)
        uvloop.run(run(config, options, begun_s=begun_s))
    except ConfigError as wrong:
        return complain(str(wrong), options=options, exit_code=USAGE)
    except (StartFailed, Halted) as wrong:
        return complain(str(wrong), options=options, exit_code=FAILED)
    except OSError as wrong:
        return complain(explain(wrong), options=options, exit_code=FAILED)
    except KeyboardInterrupt:
        return FAILED  # a second Ctrl-C, while the first one was being obeyed
    except Exception:
        LOGGER.critical("the broker failed, and this is a bug of Moldau", exc_info=True)
        return FAILED
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = command_parser()
    options = parser.parse_args(arguments)
    if "@-" in options.add_scram and (options.brokers != 1 or options.stop_with_stdin):
        parser.error("--add-scram: several brokers have no standard input to read from; name a file")
    return options


class StartParser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, as every tool prints it."""
        told = message.replace("unrecognized arguments: ", "unknown option or argument ")
        self.exit(USAGE, f"moldau start: {told}; see: moldau start --help\n")


def command_parser() -> ArgumentParser:
    parser = StartParser(
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
        "--accept-lost-log-dirs", action="store_true", help="start although a log directory and its records are gone"
    )
    parser.add_argument(
        "--brokers",
        metavar="N",
        type=broker_number,
        default=1,
        help="so many brokers on this machine, a process each, on one port after the other; 0 is one for each core",
    )
    parser.add_argument(
        "--add-scram",
        metavar="SCRAM-SHA-256=[name=NAME,password=PASSWORD]",
        action="append",
        default=[],
        help="a user of a cluster that begins with this start; may be repeated. @FILE has one on each line, @- is "
        "standard input: passwords on a command line are seen by others",
    )
    parser.add_argument(
        "--secure",
        action="store_true",
        help="TLS, a login and an authorizer: certificates and an admin's password are made and kept with the data",
    )
    add_watching(parser)
    add_programs_options(parser)
    return parser


def add_programs_options(parser: ArgumentParser) -> None:
    # For a program that starts a broker: a line of JSON once clients are answered, and an end when that program ends.
    parser.add_argument("--ready-fd", type=int, help=SUPPRESS)
    parser.add_argument("--stop-with-stdin", action="store_true", help=SUPPRESS)
    # A folder of that program's, to remove in its place when it died without doing so.
    parser.add_argument("--scratch", type=Path, help=SUPPRESS)
    # For one of several brokers: the folder with the metadata of all, how many they are, and the id of a new cluster.
    parser.add_argument("--member-of", type=Path, help=SUPPRESS)
    parser.add_argument("--members", type=int, help=SUPPRESS)
    parser.add_argument("--cluster-id", help=SUPPRESS)
    parser.add_argument("--log-broker", type=int, help=SUPPRESS)
    # The folder of --secure, where another process has made it.
    parser.add_argument("--secured-by", type=Path, help=SUPPRESS)


def add_watching(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--metrics",
        metavar="[HOST:]PORT",
        type=metrics_address,
        help="answer /metrics, /health and /ready there, for this machine alone unless a host is named",
    )
    parser.add_argument("--log-level", choices=LOG_LEVELS, default="INFO", type=str.upper, help="(default: INFO)")
    parser.add_argument(
        "--log-format", choices=LOG_FORMATS, default="text", help="json is one object a line (default: text)"
    )
    parser.add_argument(
        "--log-file", metavar="FILE", type=Path, help="append the log to this file (default: standard error)"
    )


def port_number(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) < 2**16:
        raise ArgumentTypeError(f"{text!r} is no port; expected 0 to {2**16 - 1}")
    return int(text)


def metrics_address(text: str) -> str:
    try:
        return str(parse_http_address("--metrics", text))
    except ConfigError as wrong:
        raise ArgumentTypeError(f"{text!r} is no address for metrics; expected {wrong.allowed}") from None


def broker_number(text: str) -> int:
    if not text.isdecimal() or int(text) > BROKERS_MAX:
        raise ArgumentTypeError(f"{text!r} is no number of brokers; expected 0 to {BROKERS_MAX}")
    return int(text)


def run_all(config: BrokerConfig, options: Namespace) -> int:
    from moldau.node.cluster.several import run_several

    return FAILED if uvloop.run(run_several(config, options)) else OK


def configuration(options: Namespace) -> BrokerConfig:
    """--host and --port stand for `listeners`, --data-dir for `log.dirs` and --metrics for `metrics.listener`; without
    them file and environment decide."""
    chosen: dict[str, str] = {}
    address = None
    if options.host is not None or options.port is not None:
        port = DEFAULT_PORT if options.port is None else options.port
        address = listener(options, options.host or DEFAULT_HOST, port)
    if options.data_dir is not None:
        chosen["log.dirs"] = options.data_dir
    if options.metrics is not None:
        chosen[LISTENER] = options.metrics
    # Kafka would listen on every interface; a broker without authentication stays at home until it is told otherwise.
    defaults = {"listeners": listener(options, DEFAULT_HOST, DEFAULT_PORT), **OUR_DEFAULTS}
    if options.properties is None:
        # The server.properties that comes with Apache Kafka sets this too: whoever tries a broker should not wait.
        defaults["group.initial.rebalance.delay.ms"] = "0"
    overrides = {**chosen, **parse_overrides(options.override)}
    if not is_secured(options):
        return load_config(options.properties, environment(options), overrides, defaults=defaults, address=address)
    from moldau.node.securing.secure_start import placeholders, secured

    defaults |= placeholders()
    config = load_config(options.properties, environment(options), overrides, defaults=defaults, address=address)
    return secured(config, options)


def is_secured(options: Namespace) -> bool:
    return options.secure or options.secured_by is not None


def warn_of_an_open_door(config: BrokerConfig, options: Namespace) -> None:
    """Whoever secured a broker once, and starts it without the option, should not learn of it from somebody else."""
    folder = Path(config.log_dirs[0]) / SECURITY_FOLDER
    if not is_secured(options) and folder.exists() and all(each.security == PLAINTEXT for each in config.listeners):
        LOGGER.warning("%s is there and this start is without --secure: everybody may do everything", folder)


def environment(options: Namespace) -> Mapping[str, str]:
    return without_kafka_variables(os.environ) if options.no_kafka_environment else os.environ


def listener(options: Namespace, host: str, port: int) -> str:
    name = "SASL_SSL" if is_secured(options) else "PLAINTEXT"
    return f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}"


async def run(config: BrokerConfig, options: Namespace, *, begun_s: float) -> None:
    # Nothing of what a start makes is garbage: looking for some would take an eighth of the time that imports take.
    gc.disable()
    # The broker is imported here so that --help and a wrong configuration answer without it.
    from moldau.node.server import serve

    stop = Stop()
    stop_on_signals(stop)
    if options.stop_with_stdin:
        stop_at_end_of_stdin(stop)
    await serve(
        config,
        announce=announcer(options, begun_s=begun_s),
        stop=stop.asked,
        accept_lost_log_dirs=options.accept_lost_log_dirs,
        cluster_id=options.cluster_id or cluster_id(environment(options)),
        place=place_of(config, options),
        first_users=first_users(options),
    )
    log_stop(stop)
    if options.scratch is not None and stdin_has_ended():
        shutil.rmtree(options.scratch, ignore_errors=True)


def first_users(options: Namespace) -> FirstUsers | None:
    if not options.add_scram and not is_secured(options):
        return None
    from moldau.node.securing.first_users import FirstUsers, read_credentials

    standing: list[StandingUser] = []
    if is_secured(options):
        from moldau.node.securing.secure_start import standing_users

        standing = standing_users(options.secured_by)
    return FirstUsers(read_credentials(options.add_scram), standing)


def place_of(config: BrokerConfig, options: Namespace) -> Place | None:
    """None for a broker alone."""
    if config.metadata_service is None and options.member_of is None:
        return None
    from moldau.node.cluster.membership import Place

    if config.metadata_service is None:
        return Place(options.member_of, options.members)
    from moldau.node.cluster.metadata_service import check_service

    check_service(config.metadata_service)
    return Place(options.member_of, BROKERS_ANY)


class Stop:
    """The end of a broker: asked for once, with a reason, however many more signals arrive."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.reason = ""
        self.begun_s = 0.0

    def ask(self, reason: str) -> None:
        if not self.asked.is_set():
            self.reason, self.begun_s = reason, time.monotonic()
            LOGGER.info("stopping: %s", reason, extra={"reason": reason})
            notify_supervisor(STOPPING)
            self.asked.set()


def log_stop(stop: Stop) -> None:
    took_s = time.monotonic() - stop.begun_s
    fields = {"reason": stop.reason, "duration_s": round(took_s, 3)}
    LOGGER.info("broker stopped in %.2f s: %s", took_s, stop.reason, extra=fields)


def stop_on_signals(stop: Stop) -> None:
    loop = asyncio.get_running_loop()

    def obey(number: signal.Signals) -> None:
        # Who asks twice does not want to wait for a clean end.
        loop.remove_signal_handler(number)
        stop.ask(number.name)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # nohup starts a program with SIGHUP ignored, so that it outlives its terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, obey, number)


def stop_at_end_of_stdin(stop: Stop) -> None:
    """The other end of a pipe closes when its owner dies, however that happens: no owner, no broker."""
    loop = asyncio.get_running_loop()
    stdin = sys.stdin.fileno()

    def look() -> None:
        if not os.read(stdin, 4096):
            loop.remove_reader(stdin)
            stop.ask("standard input ended")

    loop.add_reader(stdin, look)


def stdin_has_ended() -> bool:
    poll = select.poll()
    poll.register(sys.stdin.fileno(), select.POLLIN)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def complain(message: str, *, options: Namespace | None = None, exit_code: int) -> int:
    """Say it on standard error, and where the log goes if that is elsewhere or in another form."""
    is_text_on_stderr = options is None or (options.log_file is None and options.log_format == "text")
    if options is not None and not is_text_on_stderr:
        LOGGER.error("%s", message)
    if is_text_on_stderr or (options is not None and options.log_file is not None):
        print(f"moldau start: {message}", file=sys.stderr)
    return exit_code

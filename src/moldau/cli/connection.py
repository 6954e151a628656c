"""Reaching a cluster: options that every tool shares, clients that keep quiet, a quick verdict when nobody answers."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from argparse import _ArgumentGroup as ArgumentGroup
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException

from moldau.cli.failures import CommandFailed, UsageError
from moldau.cli.java_settings import for_librdkafka

DEFAULT_BOOTSTRAP_SERVERS = "localhost:9092"
BOOTSTRAP_VARIABLE = "MOLDAU_BOOTSTRAP_SERVERS"
DEFAULT_PORT = 9092

TIMEOUT_S = 5.0
TIMEOUT_S_MAX = 3_600.0  # the library takes no more
ATTEMPT_S = 0.5  # how long librdkafka may try before we look ourselves whether anything listens
PROBE_S = 1.0
CREATION_PAUSE_S = 0.05  # between two looks at a topic that the broker is creating

_CONTINUED = re.compile(r"\\\r?\n[ \t]*")
SILENT = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)
AnyClient = TypeVar("AnyClient")


class Client(Protocol):
    """What a producer, a consumer and an admin client have in common."""

    def list_topics(self, topic: str = ..., timeout: float = ...) -> Any: ...


class Unsaid(str):
    """A default, which client properties may replace; what somebody typed they may not."""

    __slots__ = ()


def add_connection_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("connection")
    _add_servers(group)
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=TIMEOUT_S,
        help="how long to wait for an answer (default: %(default)g)",
    )
    _add_settings(group, files=("--command-config",), properties=("-X",))


def add_kafka_connection_options(
    parser: ArgumentParser, *, files: Sequence[str] = ("--command-config",), properties: Sequence[str] = ()
) -> None:
    """Those of Apache Kafka's own tools, whose names for one thing changed over time; `-X` is ours."""
    group = parser.add_argument_group("connection")
    _add_servers(group)
    _add_settings(group, files=files, properties=("-X", *properties))
    parser.set_defaults(timeout=TIMEOUT_S)


def _add_servers(group: ArgumentGroup) -> None:
    group.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        default=Unsaid(os.environ.get(BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP_SERVERS)),
        help=f"where the cluster is (default: --command-config, {BOOTSTRAP_VARIABLE}, or {DEFAULT_BOOTSTRAP_SERVERS})",
    )


def _add_settings(group: ArgumentGroup, *, files: Sequence[str], properties: Sequence[str]) -> None:
    group.add_argument(
        *files, dest="command_config", metavar="FILE", help="client properties, of librdkafka or of Java's clients"
    )
    group.add_argument(
        *properties,
        dest="properties",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one client property; may be repeated",
    )


def seconds(text: str) -> float:
    try:
        duration_s = float(text)
    except ValueError:
        duration_s = -1
    if not 0 < duration_s <= TIMEOUT_S_MAX:
        raise ArgumentTypeError(
            f"{text!r} is no time to wait; expected seconds, more than 0 and up to {TIMEOUT_S_MAX:g}"
        )
    return duration_s


def client_config(options: Namespace, **settings: object) -> dict[str, Any]:
    """The properties of a client; what the user gives wins over what the tool wants.

    Whatever asks the options for the servers afterwards hears of those that the client has.
    """
    config: dict[str, Any] = {
        "bootstrap.servers": options.bootstrap_server,
        "client.id": "moldau-cli",
        # librdkafka writes to stderr by itself; errors reach the user through exceptions, in our words.
        "log_level": 0,
        "error_cb": ignore_error,
        **settings,
    }
    if options.command_config:
        given = read_properties(options.command_config)
        if not isinstance(options.bootstrap_server, Unsaid):
            given.pop("bootstrap.servers", None)
        config.update(for_librdkafka(given))
    config.update(split_pair(pair, option="-X") for pair in options.properties)
    options.bootstrap_server = config["bootstrap.servers"]
    return config


def ignore_error(_error: KafkaError) -> None:
    """What matters of it comes back from the call that fails."""


class Outage:
    """Tells the user once that every broker is gone, which librdkafka would wait out in silence."""

    def __init__(self, tool: str, *, servers: str) -> None:
        self.tool = tool
        self.servers = servers
        self.is_lost = True  # until somebody answers there is nothing to lose

    def on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self.is_lost:
            self.is_lost = True
            print(f"moldau {self.tool}: no broker answers at {self.servers}; waiting for one", file=sys.stderr)

    def on_answer(self) -> None:
        self.is_lost = False


def read_properties(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            # A backslash at the end of a line goes on in the next, as in Java's files.
            lines = [line.strip() for line in _CONTINUED.sub("", file.read()).splitlines()]
    except OSError as wrong:
        raise UsageError(f"cannot read {path}: {wrong.strerror}") from None
    return dict(split_pair(line, option=path) for line in lines if line and not line.startswith(("#", "!")))


def split_pair(text: str, *, option: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{option}: expected KEY=VALUE, not {text!r}")
    return key.strip(), value.strip()


def open_client(make: Callable[[dict[str, Any]], AnyClient], config: dict[str, Any]) -> AnyClient:
    try:
        return make(config)
    except (KafkaException, TypeError, ValueError) as wrong:
        raise UsageError(f"client configuration: {reason(wrong)}") from None


def cluster_metadata(client: Client, options: Namespace) -> Any:
    """Metadata of every topic, or a verdict on why nobody answers: soon if nothing listens, else after the timeout."""
    deadline_s = time.monotonic() + options.timeout
    while True:
        left_s = deadline_s - time.monotonic()
        try:
            return client.list_topics(timeout=max(0.001, min(ATTEMPT_S, left_s)))
        except KafkaException as wrong:
            if kafka_error(wrong).code() not in SILENT:
                raise
        servers = options.bootstrap_server
        if not any(listens(server, seconds=PROBE_S) for server in servers.split(",")):
            raise CommandFailed(f"no broker answers at {servers}; start one with: moldau start")
        if time.monotonic() >= deadline_s:
            raise CommandFailed(
                f"something listens at {servers} but gave no answer in {options.timeout:g} s;"
                " is it a Kafka broker, and does -X security.protocol=... fit it?"
            )


def topic_metadata(client: Client, topic: str, options: Namespace, *, may_appear: bool = False) -> Any:
    """Metadata of one topic; a producer's asking may make the broker create it, so that it may yet appear."""
    cluster_metadata(client, options)
    deadline_s = time.monotonic() + options.timeout
    while True:
        found = client.list_topics(topic, timeout=options.timeout).topics[topic]
        if found.error is None:
            return found
        is_on_its_way = found.error.code() == KafkaError.LEADER_NOT_AVAILABLE or (
            may_appear and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        )
        if not is_on_its_way or time.monotonic() >= deadline_s:
            raise CommandFailed(topic_failure(topic, found.error))
        time.sleep(CREATION_PAUSE_S)


def topic_failure(topic: str, error: KafkaError) -> str:
    """What is wrong with one topic, with the next step where there is one."""
    if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
        return f"topic {topic!r} does not exist; create it with: moldau topics create {topic}"
    if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
        return f"topic {topic!r} already exists; --if-not-exists accepts that"
    return f"topic {topic!r}: {error.str()}"


def check_partition(topic: str, partition: int, existing: Collection[int]) -> None:
    if partition not in existing:
        raise CommandFailed(f"topic {topic!r} has no partition {partition}; it has {len(existing)}, counted from 0")


def listens(server: str, *, seconds: float) -> bool:
    host, port = split_server(server)
    try:
        socket.create_connection((host, port), timeout=seconds).close()
    except OSError:
        return False
    return True


def split_server(server: str) -> tuple[str, int]:
    """Host and port of one bootstrap server, which may also be `PLAINTEXT://host:port` or have no port."""
    address = server.strip().rpartition("://")[2]
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    if not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UsageError(f"--bootstrap-server: {server.strip()!r} has no port number; expected HOST:PORT")
    return host.strip("[]"), int(port)


def kafka_error(wrong: KafkaException) -> KafkaError:
    error: KafkaError = wrong.args[0]
    return error


def reason(wrong: Exception) -> str:
    """The words of an exception, without the code and the file name that librdkafka puts around them."""
    first = wrong.args[0] if wrong.args else wrong
    return first.str() if isinstance(first, KafkaError) else str(first)

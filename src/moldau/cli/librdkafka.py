"""Clients of librdkafka for the tools: they keep quiet, and give a quick verdict when nobody answers."""

from __future__ import annotations

import logging
import socket
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException

from moldau.cli.connection import client_settings, nobody_listens
from moldau.cli.failures import CommandFailed, UsageError
from moldau.client.addresses import addresses_of
from moldau.client.security import TOKEN_AUTH

ATTEMPT_S = 0.5  # how long librdkafka may try before we look ourselves whether anything listens
PROBE_S = 1.0
SHOWN_CHARS_MAX = 60  # of a name that is none
CREATION_PAUSE_S = 0.05  # between two looks at a topic that the broker is creating
# Between two connections librdkafka pauses for half of this, whoever they go to: with its own 100 ms a tool that sends
# one record spends a third of its time on that.
RECONNECT_MS = 20
RECONNECT_MS_MAX = 10_000
FIRST_PAUSE, LONGEST_PAUSE = "reconnect.backoff.ms", "reconnect.backoff.max.ms"
LOG_NOTHING = 0

SILENT = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)
AnyClient = TypeVar("AnyClient")


class Client(Protocol):
    """What a producer, a consumer and an admin client have in common."""

    def list_topics(self, topic: str = ..., timeout: float = ...) -> Any: ...


def client_config(options: Namespace, **settings: object) -> dict[str, Any]:
    """The properties of a client; what the user gives wins over what the tool wants."""
    return {
        # librdkafka writes to stderr by itself; errors reach the user through exceptions, in our words.
        "log_level": LOG_NOTHING,
        "error_cb": ignore_error,
        **settings,
        **client_settings(options),
    }


def ignore_error(_error: KafkaError) -> None:
    """What matters of it comes back from the call that fails."""


class Outage:
    """Tells the user once that every broker is gone, which librdkafka would wait out in silence."""

    def __init__(self, tool: str, options: Namespace) -> None:
        self.tool = tool
        self.options = options  # which hear of the servers when the client is made
        self.is_lost = True  # until somebody answers there is nothing to lose
        self.before: Callable[[], None] = lambda: None
        """Makes room on the terminal."""

    def on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self.is_lost:
            self.is_lost = True
            self.before()
            print(
                f"moldau {self.tool}: no broker answers at {self.options.bootstrap_server}; waiting for one",
                file=sys.stderr,
            )

    def on_answer(self) -> None:
        self.is_lost = False


def open_client(make: Callable[[dict[str, Any]], AnyClient], config: dict[str, Any]) -> AnyClient:
    if TOKEN_AUTH in config:
        raise UsageError('client configuration: librdkafka, which this tool runs on, knows no tokenauth="true"')
    if config.get("group.id") == "":  # librdkafka ends the process for it
        raise UsageError("the name of a group can't be empty")
    config = _reconnecting(config)
    if config.get("log_level") == LOG_NOTHING:  # nobody asked for its log; it writes what is fatal all the same
        config = {**config, "logger": _deaf()}
    try:
        return make(config)
    except (KafkaException, TypeError, ValueError) as wrong:
        raise UsageError(f"client configuration: {reason(wrong)}") from None


def _reconnecting(config: Mapping[str, Any]) -> dict[str, Any]:
    """librdkafka refuses a first pause above the longest, where Java's clients take the shorter, or the only one."""
    first, longest = config.get(FIRST_PAUSE, RECONNECT_MS), config.get(LONGEST_PAUSE)
    if not str(first).isdecimal() or not (longest is None or str(longest).isdecimal()):
        return {**config}  # for librdkafka to refuse
    if longest is None:
        return {**config, FIRST_PAUSE: first, LONGEST_PAUSE: max(int(first), RECONNECT_MS_MAX)}
    return {**config, FIRST_PAUSE: min(int(first), int(longest))}


def _deaf() -> logging.Logger:
    logger = logging.getLogger(f"{__name__}.log")
    logger.disabled = True
    return logger


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
        if not any(listens(server, seconds=PROBE_S) for server in addresses_of(servers)):
            raise nobody_listens(servers)
        if time.monotonic() >= deadline_s:
            tell_refusal(options)
            raise CommandFailed(
                f"something listens at {servers} but gave no answer in {options.timeout:g} s;"
                " is it a Kafka broker, and does -X security.protocol=... fit it?"
            )


def tell_refusal(options: Namespace) -> None:
    """librdkafka tries a login that was refused again and again in silence; the protocol itself says why at once."""
    from moldau.cli.wire import open_cluster
    from moldau.client.cluster import Silence

    # Nothing is known of logins that only librdkafka has, such as those with tokens that nobody signed.
    with suppress(UsageError, Silence), open_cluster(options) as cluster:
        cluster.nodes()


def topic_metadata(client: Client, topic: str, options: Namespace, *, may_appear: bool = False) -> Any:
    """Metadata of one topic; a producer's asking may make the broker create it, so that it may yet appear."""
    cluster_metadata(client, options)
    deadline_s = time.monotonic() + options.timeout
    while True:
        try:
            found = client.list_topics(topic, timeout=options.timeout).topics[topic]
        except RuntimeError:  # no name at all, or one that is far too long
            raise UsageError(f"topic {topic[:SHOWN_CHARS_MAX]!r}: a topic can't have this name") from None
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


def listens(server: tuple[str, int], *, seconds: float) -> bool:
    try:
        socket.create_connection(server, timeout=seconds).close()
    except OSError:
        return False
    return True


def kafka_error(wrong: KafkaException) -> KafkaError:
    error: KafkaError = wrong.args[0]
    return error


def reason(wrong: Exception) -> str:
    """The words of an exception, without the code and the file name that librdkafka puts around them."""
    first = wrong.args[0] if wrong.args else wrong
    return (first.str() if isinstance(first, KafkaError) else str(first)).strip()

"""Options of the tools that ask brokers, or controllers in their stead."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import UsageError

if TYPE_CHECKING:
    from moldau.client.cluster import Cluster
    from moldau.wire.schema import Message

R = TypeVar("R", bound="Message")

COMMAND_CONFIG = ("--command-config",)
ANSWER_S = 30.0  # as long as Apache Kafka's clients wait: an election of ten thousand leaders takes a while


def add_bootstrap_options(
    parser: ArgumentParser, *, files: Sequence[str] = COMMAND_CONFIG, controllers: Sequence[str] = ()
) -> None:
    """`controllers` are further names of `--bootstrap-controller`."""
    add_kafka_connection_options(parser, files=files)
    parser.add_argument(
        *controllers,
        "--bootstrap-controller",
        metavar="HOST:PORT",
        help="where the controllers are, to ask them instead of brokers",
    )


def open_bootstrap(options: Namespace) -> Cluster:
    if options.bootstrap_controller is not None:
        if options.bootstrap_server is not None:
            raise UsageError("give either --bootstrap-server or --bootstrap-controller")
        options.bootstrap_server = options.bootstrap_controller
    return open_patiently(options)


def open_patiently(options: Namespace) -> Cluster:
    from moldau.cli.wire import open_cluster

    options.timeout = max(options.timeout, ANSWER_S)
    return open_cluster(options)


def ask_controller(
    client: Cluster,
    options: Namespace,
    request: Message,
    response: type[R],
    *,
    codes: Callable[[R], Iterable[int]],
) -> R:
    """A controller that is asked by its address answers no question about who else there is."""
    if options.bootstrap_controller is not None:
        return client.ask(request, response)
    return client.ask_controller(request, response, codes=codes)


def behind_action(arguments: Sequence[str]) -> list[str]:
    """Options that stand before the action, where Apache Kafka's tools take them, stand behind it."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("--") and arguments[at] != "--help":
        at += 1 if "=" in arguments[at] else 2
    return [*arguments[at : at + 1], *arguments[:at], *arguments[at + 1 :]]

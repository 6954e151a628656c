"""Options of the tools that ask brokers, or controllers in their stead."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from moldau.client.cluster import Cluster

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
    if options.bootstrap_controller is None:
        return open_patiently(options)
    if options.bootstrap_server is not None:
        raise UsageError("give either --bootstrap-server or --bootstrap-controller")
    from moldau.cli.wire import open_cluster
    from moldau.client.cluster import EndpointKind

    options.bootstrap_server = options.bootstrap_controller
    options.timeout = max(options.timeout, ANSWER_S)
    return open_cluster(options, kind=EndpointKind.CONTROLLERS)


def open_patiently(options: Namespace) -> Cluster:
    from moldau.cli.wire import open_cluster

    options.timeout = max(options.timeout, ANSWER_S)
    return open_cluster(options)


def behind_action(arguments: Sequence[str]) -> list[str]:
    """Options that stand before the action, where Apache Kafka's tools take them, stand behind it."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("--") and arguments[at] != "--help":
        at += 1 if "=" in arguments[at] else 2
    return [*arguments[at : at + 1], *arguments[:at], *arguments[at + 1 :]]

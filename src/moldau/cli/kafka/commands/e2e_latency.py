"""The command line of `moldau e2e-latency`."""

from __future__ import annotations

import sys
from argparse import Namespace

from moldau.cli.completion.kinds import TOPIC
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import UsageError
from moldau.cli.parsing import Parser, whole

EXAMPLES = """\
examples:
  moldau e2e-latency --topic orders --num-records 10000 --producer-acks all --record-size 100
  moldau e2e-latency --topic orders --num-records 1000 --producer-acks 1 --record-size 10 --record-key-size 8
  moldau e2e-latency localhost:9092 orders 10000 all 100         # as before Apache Kafka 4.2
"""
INT_MAX = 2**31 - 1
OLD_NAMES = ("--bootstrap-server", "--topic", "--num-records", "--producer-acks", "--record-size", "--command-config")
OLD_NEEDED = 5


def main(arguments: list[str]) -> int:
    options = parse(_by_name(arguments))
    from moldau.cli.kafka.performance.end_to_end import run

    return run(options)


def _by_name(arguments: list[str]) -> list[str]:
    """The order of words of old, as options."""
    if not arguments or arguments[0].startswith("-"):
        return arguments
    if not OLD_NEEDED <= len(arguments) <= len(OLD_NAMES):
        raise UsageError(
            f"Invalid number of arguments. Expected 5 or 6 positional arguments, but got {len(arguments)}. Usage:"
            " bootstrap-server topic num-records producer-acks record-size [optional] command-config"
        )
    print(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0."
        f" Please use named arguments instead: {', '.join(OLD_NAMES)}",
        file=sys.stderr,
    )
    return [word for pair in zip(OLD_NAMES, arguments, strict=False) for word in pair]


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau e2e-latency",
        description="How long a record takes from a producer, over the cluster, to a consumer.",
        epilog=EXAMPLES,
    )
    size = whole(0, INT_MAX, "size")
    parser.add_argument("--topic", metavar=TOPIC, required=True, help="is created if it is not there")
    parser.add_argument("--num-records", type=whole(1, INT_MAX, "number"), required=True, metavar="N")
    parser.add_argument("--producer-acks", choices=("1", "all"), required=True, help="who has to have a record")
    parser.add_argument("--record-size", type=size, required=True, metavar="BYTES")
    parser.add_argument("--record-key-size", type=size, default=0, metavar="BYTES", help="0: no key")
    parser.add_argument("--num-headers", type=size, default=0, metavar="N")
    parser.add_argument("--record-header-key-size", type=size, default=0, metavar="BYTES")
    parser.add_argument(
        "--record-header-size", type=whole(-1, INT_MAX, "size"), default=0, metavar="BYTES", help="-1: a null"
    )
    add_kafka_connection_options(parser)
    return parser.parse_args(arguments)

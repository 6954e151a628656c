"""The command line of `moldau replica-verification`."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError, Namespace

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.parsing import Parser, whole

EXAMPLES = """\
It reads until it is interrupted, and reports now and then the replica that is furthest behind.

examples:
  moldau replica-verification --broker-list kafka-1:9092 --topics-include 'orders|payments' --time -2
"""
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
FETCH_BYTES, MAX_WAIT_MS, REPORT_MS, LATEST = 1 << 20, 1_000, 30_000, -1


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.replica_verification.running import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau replica-verification",
        description="Validate that all replicas for a set of topics have the same data.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "--topics-include",
        "--topic-white-list",
        metavar="REGEX",
        type=topics,
        default=topics(".*"),
        help="which topics (default: all)",
    )
    parser.add_argument(
        "--time",
        metavar="MS",
        type=whole(-2, LONG_MAX, "timestamp"),
        default=LATEST,
        help="from records of this time on, -1 for the ends or -2 for the beginnings (default: -1)",
    )
    parser.add_argument(
        "--fetch-size", metavar="BYTES", type=whole(1, INT_MAX, "size"), default=FETCH_BYTES, help="of each partition"
    )
    parser.add_argument(
        "--max-wait-ms", metavar="MS", type=whole(0, INT_MAX, "time"), default=MAX_WAIT_MS, help="of each fetch"
    )
    parser.add_argument(
        "--report-interval-ms", metavar="MS", type=whole(0, LONG_MAX, "time"), default=REPORT_MS, help="between reports"
    )
    add_kafka_connection_options(parser)
    parser.add_argument("--broker-list", dest="bootstrap_server", metavar="HOST:PORT", help="as --bootstrap-server")
    return parser.parse_args(arguments)


def topics(text: str) -> re.Pattern[str]:
    """Names may also stand with commas between them."""
    try:
        return re.compile(text.strip().strip("\"'").replace(" ", "").replace(",", "|"))
    except re.error as wrong:
        raise ArgumentTypeError(f"{text} is an invalid regex: {wrong}") from None

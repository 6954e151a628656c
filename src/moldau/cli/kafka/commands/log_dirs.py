"""The command line of `moldau log-dirs`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.completion.kinds import BROKER_LIST, TOPIC_LIST
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.parsing import Parser

EXAMPLES = """\
examples:
  moldau log-dirs --describe
  moldau log-dirs --describe --topic-list orders,payments --broker-list 1,2
  moldau log-dirs --describe | tail -1 | jq '.brokers[].logDirs[] | [.logDir, (.partitions | map(.size) | add)]'
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.log_dirs import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau log-dirs",
        description="This tool helps to query log directory usage on the specified brokers.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--describe", action="store_true", required=True, help="needed: there is nothing else to do")
    parser.add_argument("--topic-list", metavar=TOPIC_LIST, default="", help="such as orders,payments (default: all)")
    parser.add_argument("--broker-list", metavar=BROKER_LIST, default="", help="such as 1,2 (default: all)")
    add_kafka_connection_options(parser)
    return parser.parse_args(arguments)

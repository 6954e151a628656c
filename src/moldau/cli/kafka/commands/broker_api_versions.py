"""The command line of `moldau broker-api-versions`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.parsing import Parser

EXAMPLES = """\
examples:
  moldau broker-api-versions --bootstrap-server kafka-1:9092
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.broker_api_versions import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau broker-api-versions",
        description="This tool helps to retrieve broker version information.",
        epilog=EXAMPLES,
    )
    add_kafka_connection_options(parser)
    return parser.parse_args(arguments)

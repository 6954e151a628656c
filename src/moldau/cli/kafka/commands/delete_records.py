"""The command line of `moldau delete-records`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.parsing import Parser

EXAMPLES = """\
The file is JSON; -1 is the end, so that all records go:

  {"partitions": [{"topic": "orders", "partition": 0, "offset": 1000}], "version": 1}

examples:
  moldau delete-records --offset-json-file offsets.json
  moldau topics trim orders --before 1000 -p 0              the same without a file
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.delete_records import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau delete-records",
        description="Delete the records of partitions below the offsets that a file names, by the options of"
        " kafka-delete-records.sh. There is no question, and no way back.",
        epilog=EXAMPLES,
        allow_abbrev=False,
    )
    parser.add_argument("--offset-json-file", metavar="FILE", required=True, help="the offsets, as JSON")
    add_kafka_connection_options(parser)
    return parser.parse_args(arguments)

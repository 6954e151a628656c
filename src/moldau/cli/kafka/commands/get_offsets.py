"""The command line of `moldau get-offsets`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.completion.kinds import TOPIC
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.parsing import Parser

EXAMPLES = """\
examples:
  moldau get-offsets --topic orders
  moldau get-offsets --topic orders --time earliest
  moldau get-offsets --topic-partitions 'orders:0,payments.*:0-3' --time 1763420400000
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.get_offsets import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau get-offsets",
        description="The offsets of partitions, a line TOPIC:PARTITION:OFFSET for each, by the options of"
        " kafka-get-offsets.sh.",
        epilog=EXAMPLES,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--topic-partitions",
        metavar="LIST",
        help="such as topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3; names are regular expressions, and the end of a"
        " range is not in it",
    )
    parser.add_argument("--topic", metavar=TOPIC, help="a regular expression (default: every topic)")
    parser.add_argument("--partitions", metavar="N,N", help="default: every partition")
    parser.add_argument(
        "--time",
        metavar="WHEN",
        default="latest",
        help="a timestamp in milliseconds, for the first offset of that time or later, or -1 or latest, -2 or earliest,"
        " -3 or max-timestamp, -4 or earliest-local, -5 or latest-tiered, -6 or earliest-pending-upload"
        " (default: latest)",
    )
    parser.add_argument("--exclude-internal-topics", action="store_true", help="leave out the cluster's own topics")
    add_kafka_connection_options(parser)
    return parser.parse_args(arguments)

"""The command line of `moldau streams-application-reset`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.completion.kinds import GROUP, TOPIC_LIST
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.kafka.reset_rules import add_rule_options, one_rule_at_most
from moldau.cli.parsing import Parser

EXAMPLES = """\
Stop every instance first, and delete their local state afterwards (KafkaStreams#cleanUp()). Topics that the
application only writes to stay as they are.

examples:
  moldau streams-application-reset --application-id billing --input-topics orders,returns --dry-run
  moldau streams-application-reset --application-id billing --input-topics orders --by-duration P1D
  moldau streams-application-reset --application-id billing --input-topics orders --force
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.streams_application_reset import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau streams-application-reset",
        description="Let a Kafka Streams application begin anew, by the options of kafka-streams-application-reset.sh.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--application-id", metavar=GROUP, required=True, help="its application.id")
    for name, about in (
        ("input", "whose offsets are set: to their start, or where an option below says"),
        ("intermediate", "read and written by it (deprecated): skipped to their end"),
        ("internal", "to delete only these of its internal topics"),
    ):
        parser.add_argument(f"--{name}-topics", metavar=TOPIC_LIST, type=names, action="extend", default=[], help=about)
    parser.add_argument("--force", action="store_true", help="remove members that are still in its group")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    add_rule_options(parser)
    add_kafka_connection_options(parser, files=("--command-config", "--config-file"))
    options = parser.parse_args(arguments)
    one_rule_at_most(parser, options)
    return options


def names(text: str) -> list[str]:
    return [each for each in text.split(",") if each]

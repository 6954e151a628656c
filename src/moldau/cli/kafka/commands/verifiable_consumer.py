"""The command line of `moldau verifiable-consumer`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.completion.kinds import GROUP, TOPIC
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.kafka.java_clients import warn_of_old_option
from moldau.cli.parsing import Parser, whole

EXAMPLES = """\
examples:
  moldau verifiable-consumer --topic orders --group-id shop --max-messages 1000
  moldau verifiable-consumer --topic orders --group-id shop --group-protocol consumer --verbose
  moldau verifiable-consumer --topic orders --group-id shop --group-instance-id one --enable-autocommit
"""
INT_MAX = 2**31 - 1
CLASSIC, CONSUMER = "classic", "consumer"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.verifiable.consumer import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau verifiable-consumer",
        description="Read a topic as a member of a group, and say in JSON what was assigned, read and committed.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--topic", metavar=TOPIC, required=True)
    parser.add_argument("--group-id", metavar=GROUP, required=True)
    parser.add_argument("--group-protocol", default=CLASSIC, choices=(CLASSIC, CONSUMER, "CLASSIC", "CONSUMER"))
    parser.add_argument("--group-remote-assignor", metavar="NAME", help="uniform or range, of the consumer protocol")
    parser.add_argument("--group-instance-id", metavar="ID", help="a static member")
    parser.add_argument(
        "--max-messages", type=whole(-1, INT_MAX, "number"), default=-1, metavar="N", help="-1: until it is stopped"
    )
    parser.add_argument(
        "--session-timeout", type=whole(1, INT_MAX, "time"), metavar="MS", help="of the classic protocol"
    )
    parser.add_argument("--verbose", action="store_true", help="a line for each record")
    parser.add_argument("--enable-autocommit", action="store_true", help="commit now and then instead of each time")
    parser.add_argument("--reset-policy", choices=("earliest", "latest", "none"), default="earliest")
    parser.add_argument(
        "--assignment-strategy",
        default="org.apache.kafka.clients.consumer.RangeAssignor",
        metavar="CLASS",
        help="RangeAssignor, RoundRobinAssignor or CooperativeStickyAssignor, of the classic protocol",
    )
    add_kafka_connection_options(parser, files=("--command-config", "--consumer.config"))
    options = parser.parse_args(arguments)
    if "--consumer.config" in arguments:
        warn_of_old_option("--consumer.config", "--command-config")
    return options

"""The command line of `moldau verifiable-producer`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.completion.kinds import TOPIC
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.kafka.java_clients import warn_of_old_option
from moldau.cli.parsing import Parser, whole

EXAMPLES = """\
examples:
  moldau verifiable-producer --topic orders --max-messages 1000
  moldau verifiable-producer --topic orders --throughput 100 --acks -1 --repeating-keys 10 --value-prefix 7
  moldau verifiable-producer --bootstrap-server kafka-1:9092 --topic orders --command-config client.properties
"""
NUMBER_MAX = 2**63 - 1
INT_MAX = 2**31 - 1


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.verifiable.producer import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau verifiable-producer",
        description="Send growing numbers, and say in JSON which of them were acknowledged.",
        epilog=EXAMPLES,
    )
    number = whole(-1, INT_MAX, "number")
    parser.add_argument("--topic", metavar=TOPIC, required=True)
    parser.add_argument("--max-messages", type=number, default=-1, metavar="N", help="-1: until it is stopped")
    parser.add_argument("--throughput", type=number, default=-1, metavar="RATE", help="records a second; -1: no limit")
    parser.add_argument("--acks", type=int, choices=(0, 1, -1), default=-1, help="who has to have a record (-1: all)")
    parser.add_argument(
        "--message-create-time",
        type=whole(-1, NUMBER_MAX, "time"),
        default=-1,
        metavar="MS",
        help="timestamps begin here instead of now",
    )
    parser.add_argument(
        "--value-prefix", type=whole(-INT_MAX, INT_MAX, "number"), metavar="N", help="values are N.0, ..."
    )
    parser.add_argument("--repeating-keys", type=whole(1, INT_MAX, "number"), metavar="N", help="keys are 0 to N-1")
    add_kafka_connection_options(parser, files=("--command-config", "--producer.config"))
    options = parser.parse_args(arguments)
    if options.throughput == 0:
        parser.error("--throughput 0 sends nothing; -1 is no limit")
    if "--producer.config" in arguments:
        warn_of_old_option("--producer.config", "--command-config")
    return options

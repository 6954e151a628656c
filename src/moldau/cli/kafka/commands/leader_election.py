"""The command line of `moldau leader-election`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.completion.kinds import PARTITION, TOPIC, Completes
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import UsageError, meant
from moldau.cli.parsing import Parser, whole

EXAMPLES = """\
The file of --path-to-json-file: {"partitions": [{"topic": "orders", "partition": 1}]}

examples:
  moldau leader-election --election-type preferred --all-topic-partitions
  moldau leader-election --election-type unclean --topic orders --partition 3
"""
TYPES = ("PREFERRED", "UNCLEAN")  # in the order of their numbers in the protocol
TARGETS = ("topic", "all_topic_partitions", "path_to_json_file")


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.leader_election import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau leader-election",
        description="This tool attempts to elect a new leader for a set of topic partitions.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "--election-type",
        metavar=Completes("TYPE", words=("preferred", "unclean")),
        type=str.upper,
        required=True,
        help="preferred: the first replica, where another leads; unclean: any replica that lives, where nobody leads",
    )
    parser.add_argument("--all-topic-partitions", action="store_true", help="of every partition that needs it")
    parser.add_argument("--topic", metavar=TOPIC, help="of one partition of this topic, which --partition says")
    parser.add_argument("--partition", metavar=PARTITION, type=whole(0, 2**31 - 1, "partition"))
    parser.add_argument("--path-to-json-file", metavar="FILE", help="of the partitions in this file")
    add_kafka_connection_options(parser, files=("--command-config", "--admin.config"))
    options = parser.parse_args(arguments)
    if options.election_type not in TYPES:
        near = meant(options.election_type, TYPES) or f"; expected {' or '.join(TYPES)}"
        raise UsageError(f"unknown --election-type {options.election_type}{near}")
    if sum(getattr(options, each) not in (None, False) for each in TARGETS) != 1:
        names = ", ".join(each.replace("_", "-") for each in TARGETS)
        raise UsageError(f"One and only one of the following options is required: {names}")
    if options.topic is not None and options.partition is None:
        raise UsageError("Missing required option(s): partition")
    if options.topic is None and options.partition is not None:
        raise UsageError("Option partition is only allowed if topic is used")
    return options

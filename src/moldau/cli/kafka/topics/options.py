"""The options of `kafka-topics.sh`, and which of them go together."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.completion.kinds import TOPIC_CONFIG, TOPIC_LIST, TOPIC_SETTING
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.kafka.combinations import check_apart, check_required, given_of, is_given
from moldau.cli.parsing import Parser

EXAMPLES = """\
examples:
  moldau topics --list --bootstrap-server localhost:9092
  moldau topics --create --topic orders --partitions 3 --config retention.ms=86400000
  moldau topics --describe --topic 'orders.*' --under-replicated-partitions
  moldau topics --alter --topic orders --partitions 6
  moldau topics --delete --topic orders --if-exists

The same in fewer words, with tables, sizes and lag: moldau topics --help
"""
ACTIONS = ("list", "create", "delete", "alter", "describe")
REPORTS = (
    "under-replicated-partitions", "unavailable-partitions", "under-min-isr-partitions", "at-min-isr-partitions",
)  # fmt: skip
OVERRIDES = "topics-with-overrides"
TAKEN_BY = {
    "config": ("alter", "create"),
    "partitions": ("alter", "create"),
    "replication-factor": ("create",),
    "replica-assignment": ("alter", "create"),
    **dict.fromkeys(REPORTS, ("describe",)),
    OVERRIDES: ("describe",),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}
"""The actions that an option goes with, in the order in which they are looked at."""


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau kafka-topics",
        description="Create, delete, describe, or change a topic, by the options of kafka-topics.sh.",
        epilog=EXAMPLES,
        allow_abbrev=False,
    )
    _add_options(parser)
    add_kafka_connection_options(parser)
    options = parser.parse_args(arguments)
    _check(parser, options)
    return options


def _add_options(parser: Parser) -> None:
    actions = parser.add_argument_group("actions, one of them")
    for name, text in (
        ("list", "the names of all topics, or of those that --topic allows"),
        ("create", "a new topic"),
        ("delete", "topics and their records, without a question"),
        ("alter", "raise the number of partitions; configurations are changed by: moldau configs"),
        ("describe", "partitions, replicas and the configurations that are no defaults"),
    ):
        actions.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument(
        "--topic", metavar=TOPIC_LIST, help="a name; a regular expression or a list with commas for all but --create"
    )
    parser.add_argument("--topic-id", metavar="ID", help="the topic to describe")
    parser.add_argument(
        "--config", metavar=TOPIC_SETTING, action="append", default=[], help="a configuration of the new topic"
    )
    parser.add_argument("--delete-config", metavar=TOPIC_CONFIG, help="is taken and does nothing; see: moldau configs")
    parser.add_argument("--partitions", metavar="N", type=int, help="of the new topic (default: the cluster's), or all")
    parser.add_argument("--replication-factor", metavar="N", type=int, help="default: the cluster's")
    parser.add_argument(
        "--replica-assignment", metavar="ID:ID,ID:ID", help="the brokers of each partition: 1:2,2:3 are two partitions"
    )
    parser.add_argument("--under-replicated-partitions", action="store_true", help="only these, of --describe")
    parser.add_argument("--unavailable-partitions", action="store_true", help="only those without a leader")
    parser.add_argument("--under-min-isr-partitions", action="store_true", help="only those that take no acks=all")
    parser.add_argument("--at-min-isr-partitions", action="store_true", help="only those with no replica to spare")
    parser.add_argument("--topics-with-overrides", action="store_true", help="only topics that are configured")
    parser.add_argument("--if-exists", action="store_true", help="a topic that is missing is no error")
    parser.add_argument("--if-not-exists", action="store_true", help="a topic that is there is no error")
    parser.add_argument("--exclude-internal", action="store_true", help="leave out the cluster's own topics")
    parser.add_argument(
        "--partition-size-limit-per-response", metavar="N", type=int, help="partitions in one answer, of --describe"
    )


def _check(parser: Parser, options: Namespace) -> None:
    asked = given_of(options, ACTIONS)
    if len(asked) != 1:
        parser.error("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    options.action = asked[0]
    if options.describe and options.if_exists and not (options.topic or options.topic_id):
        parser.error("--topic or --topic-id is required to describe a topic")
    if not (options.list or options.describe):
        check_required(parser, options, "topic")
    if options.alter:
        _check_alter(parser, options)
    for name, actions in TAKEN_BY.items():
        check_apart(parser, options, name, [each for each in ACTIONS if each not in actions])
    if options.create:
        check_apart(parser, options, "replica-assignment", ("partitions", "replication-factor"))
    for name in REPORTS:
        check_apart(parser, options, name, (OVERRIDES,))


def _check_alter(parser: Parser, options: Namespace) -> None:
    if is_given(options, "config"):
        parser.error(
            'Option combination "[[bootstrap-server], [config]]" can\'t be used with option "[alter]"'
            " (To alter topic configurations, the kafka-configs tool can be used.)"
        )
    check_required(parser, options, "partitions")

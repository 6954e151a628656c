"""`moldau topics`: list, create, describe, alter, trim and delete."""

from __future__ import annotations

from argparse import Namespace, _SubParsersAction
from importlib import import_module

from moldau.cli.actions import action_parser
from moldau.cli.completion.kinds import PARTITION, TOPIC, TOPIC_CONFIG, TOPIC_SETTING
from moldau.cli.connection import add_connection_options
from moldau.cli.output import add_output_option
from moldau.cli.parsing import Parser, whole
from moldau.cli.questions import add_yes_option

EXAMPLES = """\
examples:
  moldau topics list
  moldau topics list 'orders.*' -o wide                       records, and which group lags most
  moldau topics create orders --partitions 3 --config retention.ms=86400000
  moldau topics describe orders -o json
  moldau topics alter orders --partitions 6
  moldau topics alter orders --config retention.ms=3600000 --delete-config segment.ms
  moldau topics trim orders --before @-1d                     delete what is older than a day
  moldau topics delete orders

Apache Kafka's options work, too: moldau topics --describe --topic orders --bootstrap-server localhost:9092
"""
PARTITIONS_MAX = 2**31 - 1
REPLICAS_MAX = 2**15 - 1


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    # Only what the action needs is imported.
    action = getattr(import_module(f"moldau.cli.topics.{options.module}"), options.function)
    exit_code: int = action(options)
    return exit_code


def parse(arguments: list[str]) -> Namespace:
    parser = action_parser("topics", "List, create, describe, alter, trim and delete topics.", EXAMPLES)
    actions: _SubParsersAction[Parser] = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    made = [
        _listing(actions),
        _creating(actions),
        _describing(actions),
        _altering(actions),
        _trimming(actions),
        _deleting(actions),
    ]
    for action in made:
        add_output_option(action)
        add_connection_options(action)
    return parser.parse_args(arguments)


def _listing(actions: _SubParsersAction[Parser]) -> Parser:
    listing = actions.add_parser("list", help="the topics there are")
    listing.set_defaults(module="listing", function="list_topics")
    listing.add_argument(
        "topics", metavar=TOPIC, nargs="*", help="names, or regular expressions for whole names (default: all)"
    )
    listing.add_argument("--internal", action="store_true", help="also those that begin with __")
    listing.add_argument("--rate", action="store_true", help="records a second, from two looks a second apart")
    listing.add_argument("--lag", action="store_true", help="the group that is furthest behind, and how many records")
    return listing


def _creating(actions: _SubParsersAction[Parser]) -> Parser:
    creating = actions.add_parser("create", help="new topics")
    creating.set_defaults(module="making", function="create_topics")
    creating.add_argument("topics", metavar="TOPIC", nargs="+")
    creating.add_argument(
        "-p",
        "--partitions",
        metavar="N",
        type=whole(1, PARTITIONS_MAX, "number of partitions"),
        help="default: the broker's num.partitions",
    )
    creating.add_argument(
        "-r",
        "--replication-factor",
        metavar="N",
        type=whole(1, REPLICAS_MAX, "number of replicas"),
        help="default: the broker's",
    )
    creating.add_argument(
        "-c", "--config", metavar=TOPIC_SETTING, action="append", default=[], help="a topic config; may be repeated"
    )
    creating.add_argument("--if-not-exists", action="store_true", help="a topic that is there is no error")
    creating.add_argument("--dry-run", action="store_true", help="let the broker check it and create nothing")
    return creating


def _describing(actions: _SubParsersAction[Parser]) -> Parser:
    describing = actions.add_parser("describe", help="partitions, replicas, offsets and configs")
    describing.set_defaults(module="description", function="describe_topics")
    describing.add_argument("topics", metavar=TOPIC, nargs="*", help="default: every topic")
    return describing


def _altering(actions: _SubParsersAction[Parser]) -> Parser:
    altering = actions.add_parser("alter", help="more partitions, or other configs")
    altering.set_defaults(module="altering", function="alter_topic")
    altering.add_argument("topic", metavar=TOPIC)
    altering.add_argument(
        "-p",
        "--partitions",
        metavar="N",
        type=whole(1, PARTITIONS_MAX, "number of partitions"),
        help="how many there shall be; records with a key go to other partitions afterwards",
    )
    altering.add_argument(
        "-c", "--config", metavar=TOPIC_SETTING, action="append", default=[], help="a topic config; may be repeated"
    )
    altering.add_argument(
        "--delete-config",
        metavar=TOPIC_CONFIG,
        action="append",
        default=[],
        help="back to the default; may be repeated",
    )
    add_yes_option(altering)
    return altering


def _trimming(actions: _SubParsersAction[Parser]) -> Parser:
    trimming = actions.add_parser("trim", help="delete the oldest records")
    trimming.set_defaults(module="trimming", function="trim_topic")
    trimming.add_argument("topic", metavar=TOPIC)
    trimming.add_argument(
        "--before",
        metavar="OFFSET|@TIME|end",
        required=True,
        help="the first offset that stays, such as 1000, @-1d, @2026-01-31, @1700000000000, or end for none",
    )
    trimming.add_argument(
        "-p",
        "--partition",
        metavar=PARTITION,
        type=whole(0, PARTITIONS_MAX, "partition"),
        action="append",
        help="only this one; may be repeated",
    )
    add_yes_option(trimming)
    return trimming


def _deleting(actions: _SubParsersAction[Parser]) -> Parser:
    deleting = actions.add_parser("delete", help="remove topics and their data")
    deleting.set_defaults(module="making", function="delete_topics")
    deleting.add_argument("topics", metavar=TOPIC, nargs="+")
    deleting.add_argument("--if-exists", action="store_true", help="a topic that is not there is no error")
    add_yes_option(deleting)
    return deleting

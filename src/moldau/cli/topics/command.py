"""`moldau topics`: list, create, describe and delete."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.cli.connection import add_connection_options, split_pair
from moldau.cli.failures import FAILED, OK, UsageError
from moldau.cli.librdkafka import client_config, cluster_metadata, kafka_error, open_client, topic_failure
from moldau.cli.output import add_output_option, print_rows
from moldau.cli.parsing import Parser
from moldau.cli.topics.description import describe, print_descriptions

EXAMPLES = """\
examples:
  moldau topics list
  moldau topics create orders --partitions 3 --config retention.ms=86400000
  moldau topics describe orders -o json
  moldau topics delete orders
"""

BROKER_DEFAULT = -1  # lets the broker choose by num.partitions and default.replication.factor


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    admin = open_client(AdminClient, client_config(options))
    metadata = cluster_metadata(admin, options)
    action: Callable[[AdminClient, Any, Namespace], int] = options.action
    return action(admin, metadata, options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau topics",
        description="List, create, describe and delete topics.",
        epilog=EXAMPLES,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    listing = actions.add_parser("list", help="the topics there are")
    listing.set_defaults(action=list_topics)
    listing.add_argument("--internal", action="store_true", help="also those that begin with __")
    add_output_option(listing)

    creating = actions.add_parser("create", help="new topics")
    creating.set_defaults(action=create_topics)
    creating.add_argument("topics", metavar="TOPIC", nargs="+")
    creating.add_argument(
        "-p", "--partitions", type=int, default=BROKER_DEFAULT, help="default: the broker's num.partitions"
    )
    creating.add_argument("-r", "--replication-factor", type=int, default=BROKER_DEFAULT, help="default: the broker's")
    creating.add_argument(
        "-c", "--config", metavar="KEY=VALUE", action="append", default=[], help="a topic config; may be repeated"
    )
    creating.add_argument("--if-not-exists", action="store_true", help="a topic that is there is no error")
    creating.add_argument("--dry-run", action="store_true", help="let the broker check it and create nothing")

    describing = actions.add_parser("describe", help="partitions, replicas, offsets and configs")
    describing.set_defaults(action=describe_topics)
    describing.add_argument("topics", metavar="TOPIC", nargs="*", help="default: every topic")
    add_output_option(describing)

    deleting = actions.add_parser("delete", help="remove topics and their data")
    deleting.set_defaults(action=delete_topics)
    deleting.add_argument("topics", metavar="TOPIC", nargs="+")
    deleting.add_argument("--if-exists", action="store_true", help="a topic that is not there is no error")

    for action in (listing, creating, describing, deleting):
        add_connection_options(action)
    return parser.parse_args(arguments)


def list_topics(_admin: AdminClient, metadata: Any, options: Namespace) -> int:
    rows = [
        {
            "topic": name,
            "partitions": len(topic.partitions),
            "replicas": max((len(partition.replicas) for partition in topic.partitions.values()), default=0),
        }
        for name, topic in sorted(metadata.topics.items())
        if options.internal or not name.startswith("__")
    ]
    print_rows(rows, columns=("topic", "partitions", "replicas"), output=options.output)
    return OK


def create_topics(admin: AdminClient, _metadata: Any, options: Namespace) -> int:
    config = dict(split_pair(pair, option="--config") for pair in options.config)
    wanted = [
        NewTopic(
            name,
            num_partitions=options.partitions,
            replication_factor=options.replication_factor,
            config=config,
        )
        for name in dict.fromkeys(options.topics)
    ]
    try:
        answers = admin.create_topics(wanted, validate_only=options.dry_run, request_timeout=options.timeout)
    except ValueError as wrong:  # the library checks some of it before it asks a broker
        raise UsageError(str(wrong)) from None
    fine = KafkaError.TOPIC_ALREADY_EXISTS if options.if_not_exists else None
    return report(answers, done="would create" if options.dry_run else "created", fine=fine)


def describe_topics(admin: AdminClient, metadata: Any, options: Namespace) -> int:
    names = list(dict.fromkeys(options.topics)) or sorted(metadata.topics)
    descriptions, failures = describe(admin, names, timeout_s=options.timeout)
    print_descriptions(descriptions, output=options.output)
    for failure in failures:
        print(f"moldau topics: {failure}", file=sys.stderr)
    return FAILED if failures else OK


def delete_topics(admin: AdminClient, _metadata: Any, options: Namespace) -> int:
    answers = admin.delete_topics(list(dict.fromkeys(options.topics)), request_timeout=options.timeout)
    fine = KafkaError.UNKNOWN_TOPIC_OR_PART if options.if_exists else None
    return report(answers, done="deleted", fine=fine, failure=deletion_failure)


def deletion_failure(topic: str, error: KafkaError) -> str:
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return f"topic {topic!r} does not exist; --if-exists accepts that"
    return topic_failure(topic, error)


def report(
    answers: Mapping[str, Future[Any]],
    *,
    done: str,
    fine: int | None,
    failure: Callable[[str, KafkaError], str] = topic_failure,
) -> int:
    """One line for each topic; one failure does not hide what happened to the others."""
    exit_code = OK
    for topic, answer in answers.items():
        try:
            answer.result()
        except KafkaException as wrong:
            error = kafka_error(wrong)
            if error.code() != fine:
                print(f"moldau topics: {failure(topic, error)}", file=sys.stderr)
                exit_code = FAILED
        else:
            print(f"{done} {topic}")
    return exit_code

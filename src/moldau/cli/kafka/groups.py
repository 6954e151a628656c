"""`moldau groups --list`: groups of every kind, as kafka-groups.sh lists them."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import OK
from moldau.cli.output import add_output_option, is_for_people, print_rows
from moldau.cli.parsing import Parser
from moldau.cli.wire import open_cluster
from moldau.client.groups.listing import CONSUMER, SHARE, STREAMS, TYPES, Listed, list_groups

EXAMPLES = """\
examples:
  moldau groups --list
  moldau groups --list --consumer                          classic ones included
  moldau groups --list --group-type classic --protocol connect

Actions such as `list`, `describe` and `reset`: moldau groups --help
"""
LEAST_WIDTH = 20


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    with open_cluster(options) as cluster:
        found = [each for each in list_groups(cluster) if is_wanted(each, options)]
    rows = [{"group": each.group, "type": each.type, "protocol": each.protocol} for each in found]
    if is_for_people(options.output):
        print_groups([tuple(row.values()) for row in rows])
    else:
        print_rows(rows, columns=("group", "type", "protocol"), output=options.output)
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(prog="moldau groups", description="Groups of every kind, by name.", epilog=EXAMPLES)
    parser.add_argument("--list", action="store_true", required=True, help="the groups there are")
    parser.add_argument(
        "--group-type", metavar="TYPE", type=str.lower, choices=[each.lower() for each in TYPES], help="only of this"
    )
    parser.add_argument("--protocol", help="only those whose members speak this, such as consumer or connect")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--consumer", action="store_true", help="consumer groups, classic and without members too")
    kinds.add_argument("--share", action="store_true", help="share groups")
    kinds.add_argument("--streams", action="store_true", help="streams groups")
    add_output_option(parser)
    add_kafka_connection_options(parser)
    options = parser.parse_args(arguments)
    if (options.consumer or options.share or options.streams) and (options.group_type or options.protocol):
        parser.error("--consumer, --share and --streams go without --group-type and --protocol")
    return options


def is_wanted(each: Listed, options: Namespace) -> bool:
    if options.group_type is not None and each.type.lower() != options.group_type:
        return False
    if options.protocol is not None and each.protocol != options.protocol:
        return False
    if options.consumer:
        return each.is_consumer_group or each.type == CONSUMER
    return not (options.share and each.type != SHARE) and not (options.streams and each.type != STREAMS)


def print_groups(rows: list[tuple[str, ...]]) -> None:
    lines = [("GROUP", "TYPE", "PROTOCOL"), *rows]
    width = max([LEAST_WIDTH, *(len(text) for row in rows for text in row)])
    for index, line in enumerate(lines):
        # Apache Kafka ends its rows with a space, and its header without.
        print(" ".join(f"{text:<{width}}" for text in line) + " " * (index > 0))

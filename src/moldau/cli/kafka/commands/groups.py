"""The command line of `moldau groups --list`."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.output import add_output_option
from moldau.cli.parsing import Parser
from moldau.client.groups.kinds import TYPES

EXAMPLES = """\
examples:
  moldau groups --list
  moldau groups --list --consumer                          classic ones included
  moldau groups --list --group-type classic --protocol connect

Actions such as `list`, `describe` and `reset`: moldau groups --help
"""


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.groups import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(prog="moldau kafka-groups", description="Groups of every kind, by name.", epilog=EXAMPLES)
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

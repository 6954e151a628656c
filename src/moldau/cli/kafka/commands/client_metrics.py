"""The command line of `moldau client-metrics`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from types import MappingProxyType

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import UsageError
from moldau.cli.kafka.combinations import check_apart, given_of
from moldau.cli.parsing import Parser

EXAMPLES = """\
Selectors of --match: client_id, client_instance_id, client_software_name, client_software_version,
client_source_address, client_source_port; their values are regular expressions. An empty value resets a setting.

examples:
  moldau client-metrics --alter --name lag --metrics org.apache.kafka.consumer. --interval 60000
  moldau client-metrics --alter --generate-name --metrics "*" --match client_id=shop.*
  moldau client-metrics --describe --name lag
  moldau client-metrics --list
  moldau client-metrics --delete --name lag
"""
ACTIONS = ("alter", "delete", "describe", "list")
SETTINGS: Mapping[str, str] = MappingProxyType({"interval": "interval.ms", "metrics": "metrics", "match": "match"})
INT_MAX = 2**31


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.client_metrics import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau client-metrics",
        description="This tool helps to manipulate and describe client metrics configurations.",
        epilog=EXAMPLES,
    )
    actions = parser.add_argument_group("actions, of which one is needed")
    for name, told in (
        ("--alter", "make or change a subscription"),
        ("--delete", "end one"),
        ("--describe", "show one, or all"),
        ("--list", "the names of all"),
    ):
        actions.add_argument(name, action="store_true", help=told)
    parser.add_argument("--name", metavar="NAME", help="of a subscription")
    parser.add_argument("--generate-name", action="store_true", help="make one up, for a new subscription")
    parser.add_argument("--interval", metavar="MS", help="between two pushes of a client, from 100 to 3600000")
    parser.add_argument(
        "--match", metavar="K=V,K=V", action="append", help="which clients, by selectors; all of them must match"
    )
    parser.add_argument("--metrics", metavar="M,M", action="append", help="beginnings of names, or * for all metrics")
    add_kafka_connection_options(parser, files=("--command-config",))
    options = parser.parse_args(arguments)
    chosen = given_of(options, ACTIONS)
    if len(chosen) != 1:
        parser.error("Command must include exactly one action: --alter, --delete, --describe or --list.")
    options.action = chosen[0]
    for action in ACTIONS[1:]:
        named = ("name",) if action == "list" else ()
        check_apart(parser, options, action, (*named, "generate-name", *SETTINGS))
    _check(options)
    return options


def _check(options: Namespace) -> None:
    has_name = options.name is not None
    if options.action == "alter" and has_name == options.generate_name:
        raise UsageError("One of --name or --generate-name must be specified with --alter.")
    if options.action == "delete" and not has_name:
        raise UsageError("A client metrics resource name must be specified with --delete.")
    if options.interval and not _is_int(options.interval):
        raise UsageError("Invalid interval value. Enter an integer, or leave empty to reset.")


def _is_int(text: str) -> bool:
    digits = text[1:] if text[0] in "+-" else text
    return digits.isascii() and digits.isdecimal() and -INT_MAX <= int(text) < INT_MAX

"""The command line of `moldau acls` with Apache Kafka's options."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping
from typing import Any

from moldau.cli.acls.words import operation
from moldau.cli.completion.kinds import GROUP, PRINCIPAL, TOPIC, TRANSACTIONAL_ID
from moldau.cli.failures import UsageError, meant
from moldau.cli.kafka.bootstrap import add_bootstrap_options
from moldau.cli.parsing import Parser
from moldau.security.acls.vocabulary import PatternType

EXAMPLES = """\
examples:
  moldau acls --list --topic orders
  moldau acls --add --allow-principal User:alice --producer --topic orders
  moldau acls --add --allow-principal User:bob --consumer --topic sales- --group '*' --resource-pattern-type prefixed
  moldau acls --remove --force --topic orders

Our own form of this tool, which takes less to type: moldau acls add --help
"""
ACTIONS = ("--list", "--add", "--remove")
PATTERN_TYPES = ("any", "match", "literal", "prefixed")
# Which options exclude which others.
APART: Mapping[str, tuple[str, ...]] = {
    "--list": ("--producer", "--consumer", "--allow-host", "--allow-principal", "--deny-host", "--deny-principal"),
    "--producer": ("--operation", "--deny-principal", "--deny-host"),
    "--consumer": ("--operation", "--deny-principal", "--deny-host"),
}


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.acls.acting import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau kafka-acls", description="This tool helps to manage acls on kafka.", epilog=EXAMPLES, add_help=True
    )
    actions = parser.add_argument_group("actions, of which one is needed")
    actions.add_argument("--list", action="store_true", help="the ACLs there are, or those of resources")
    actions.add_argument("--add", action="store_true", help="new ACLs")
    actions.add_argument("--remove", action="store_true", help="take ACLs away")
    several: dict[str, Any] = {"action": "append", "default": []}
    who = parser.add_argument_group("who, from where, and what")
    for kind, does in (("allow", "may"), ("deny", "may not")):
        who.add_argument(f"--{kind}-principal", metavar=PRINCIPAL, type=principal, help=f"who {does}", **several)
        who.add_argument(f"--{kind}-host", metavar="ADDRESS", type=str.strip, help="where from (default: *)", **several)
    who.add_argument("--operation", metavar="NAME", type=operation, help="such as Read (default: All)", **several)
    who.add_argument("--producer", action="store_true", help="all that a producer needs")
    who.add_argument("--consumer", action="store_true", help="all that a consumer needs")
    who.add_argument("--idempotent", action="store_true", help="of a producer that is idempotent")
    who.add_argument("--principal", metavar=PRINCIPAL, type=principal, help="only list those of it", **several)
    _add_resources(parser, several)
    parser.add_argument("--force", action="store_true", help="do not ask")
    add_bootstrap_options(parser)
    options = parser.parse_args(arguments)
    _check(options)
    return options


def _add_resources(parser: Parser, several: Mapping[str, Any]) -> None:
    about = parser.add_argument_group("resources", "each may be repeated; * is all of them")
    about.add_argument("--topic", metavar=TOPIC, **several)
    about.add_argument("--group", metavar=GROUP, **several)
    about.add_argument("--transactional-id", metavar=TRANSACTIONAL_ID, **several)
    about.add_argument("--delegation-token", metavar="ID", **several)
    about.add_argument("--user-principal", metavar=PRINCIPAL, help="whose tokens are meant", **several)
    about.add_argument("--cluster", action="store_true")
    about.add_argument(
        "--resource-pattern-type",
        metavar="TYPE",
        type=pattern_type,
        default=PatternType.LITERAL,
        help=f"{', '.join(PATTERN_TYPES)} (default: literal)",
    )


def principal(text: str) -> str:
    kind, colon, name = text.strip().partition(":")
    if not (kind and colon and name):
        raise ArgumentTypeError(f"expected a string in format principalType:principalName but got {text}")
    return f"{kind}:{name}"


def pattern_type(text: str) -> PatternType:
    if text.lower() not in PATTERN_TYPES:
        near = meant(text.lower(), PATTERN_TYPES) or f"; expected {', '.join(PATTERN_TYPES)}"
        raise ArgumentTypeError(f"Unknown resource-pattern-type: {text}{near}")
    return PatternType[text.upper()]


def _check(options: Namespace) -> None:
    if sum(_given(options, each) for each in ACTIONS) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove.")
    for option, others in APART.items():
        for other in others:
            if _given(options, option) and _given(options, other):
                raise UsageError(f'Option "[{option[2:]}]" can\'t be used with option "[{other[2:]}]"')
    if options.principal and not options.list:
        raise UsageError("The --principal option is only available if --list is set")
    if options.producer and not options.topic:
        raise UsageError("With --producer you must specify a --topic")
    if options.idempotent and not options.producer:
        raise UsageError("The --idempotent option is only available if --producer is set")
    is_alone = options.consumer and not options.producer
    if (options.consumer and not (options.topic and options.group)) or (
        is_alone and (options.cluster or options.transactional_id)
    ):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option"
            " should be specified."
        )


def _given(options: Namespace, option: str) -> bool:
    return bool(getattr(options, option.removeprefix("--").replace("-", "_")))

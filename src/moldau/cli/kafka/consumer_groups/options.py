"""The options of ConsumerGroupCommand, and which of them go together."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from moldau.cli.completion.kinds import GROUP, TOPIC_PARTITIONS, Completes
from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.kafka.reset_rules import RULES, add_rule_options, flags, given, one_rule_at_most
from moldau.cli.kafka.scopes import milliseconds
from moldau.cli.parsing import Parser
from moldau.client.groups.kinds import CLASSIC, CONSUMER

DESCRIPTION = "List, describe, reset and delete consumer groups, by the options of kafka-consumer-groups.sh."
EXAMPLES = """\
examples:
  moldau consumer-groups --list --state
  moldau consumer-groups --describe --group billing
  moldau consumer-groups --describe --all-groups --members --verbose
  moldau consumer-groups --reset-offsets --group billing --topic orders:0,1 --to-earliest --dry-run
  moldau consumer-groups --reset-offsets --group billing --all-topics --by-duration PT1H --execute
  moldau consumer-groups --reset-offsets --group billing --topic orders --to-latest --export > plan.csv
  moldau consumer-groups --reset-offsets --group billing --from-file plan.csv --execute
  moldau consumer-groups --delete-offsets --group billing --topic orders
  moldau consumer-groups --delete --group billing --group mailing

A shorter form of it, with -o json: moldau groups --help
"""
ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets", "validate_regex")
VIEWS = ("members", "offsets", "state")
STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(prog="moldau consumer-groups", description=DESCRIPTION, epilog=EXAMPLES)
    _add_actions(parser)
    _add_scope(parser)
    _add_rules(parser)
    parser.add_argument(
        "--timeout", metavar="MS", type=milliseconds, help="how long to wait for an answer (default: 5000)"
    )
    add_kafka_connection_options(parser)
    options = parser.parse_args(arguments)
    _check(parser, options)
    return options


def _add_actions(parser: Parser) -> None:
    group = parser.add_argument_group("actions")
    group.add_argument("--list", action="store_true", help="the names of the groups, with --state or --type more")
    group.add_argument("--describe", action="store_true", help="offsets and lag, --members or --state of groups")
    group.add_argument("--delete", action="store_true", help="groups that have no members, and their offsets")
    group.add_argument("--reset-offsets", action="store_true", help="say where groups without members read on")
    group.add_argument("--delete-offsets", action="store_true", help="what one group committed for --topic")
    group.add_argument("--validate-regex", metavar="REGEX", help="whether RE2 takes it; asks no broker")


def _add_scope(parser: Parser) -> None:
    group = parser.add_argument_group("what it is about")
    group.add_argument("--group", metavar=GROUP, action="append", default=[], help="may be repeated")
    group.add_argument("--all-groups", action="store_true")
    group.add_argument(
        "--topic", metavar=TOPIC_PARTITIONS, action="append", default=[], help="of all or of these partitions"
    )
    group.add_argument("--all-topics", action="store_true", help="all that the group has committed something for")
    group.add_argument("--members", action="store_true", help="describe them instead of offsets")
    group.add_argument("--offsets", action="store_true", help="describe them, which is the default")
    group.add_argument(
        "--state",
        metavar=Completes("STATE,...", words=STATES, separator=","),
        nargs="?",
        const="",
        help="describe or list it; list those in these states",
    )
    group.add_argument(
        "--type",
        metavar=Completes("TYPE,...", words=("Classic", "Consumer"), separator=","),
        nargs="?",
        const="",
        help="list it, or those of these types",
    )
    group.add_argument("--verbose", action="store_true", help="describe more")


def _add_rules(parser: Parser) -> None:
    group = add_rule_options(parser)
    group.add_argument("--to-current", action="store_true", help="where it is, or the end where it is nowhere")
    group.add_argument("--dry-run", action="store_true", help="only show it, which is the default")
    group.add_argument("--execute", action="store_true", help="do it")
    group.add_argument("--export", action="store_true", help="print CSV")


def _check(parser: Parser, options: Namespace) -> None:
    actions = given(options, ACTIONS)
    if len(actions) != 1:
        parser.error(f"Command must include exactly one action: {flags(ACTIONS)}")
    action = actions[0]
    if options.group and options.all_groups:
        parser.error("--group and --all-groups exclude each other")
    if action in ("describe", "delete", "reset_offsets") and not options.group and not options.all_groups:
        parser.error(f"{flags([action])} takes one of these options: --group, --all-groups")
    allowed = {"describe": (*VIEWS, "verbose"), "list": ("state", "type")}.get(action, ())
    stray = [each for each in given(options, (*VIEWS, "verbose", "type")) if each not in allowed]
    if stray:
        parser.error(f"{flags(stray[:1])} is for {'--list' if stray[0] == 'type' else '--describe'}")
    checks = {
        "list": _check_listing,
        "describe": _check_view,
        "reset_offsets": _check_reset,
        "delete": _check_deletion,
        "delete_offsets": _check_deletion_of_offsets,
    }
    if action in checks:
        checks[action](parser, options)


def _check_listing(parser: Parser, options: Namespace) -> None:
    options.states = _words(parser, options.state, STATES, "state")
    options.types = _words(parser, options.type, (CLASSIC, CONSUMER), "types")


def _check_view(parser: Parser, options: Namespace) -> None:
    if len(given(options, VIEWS)) > 1:
        parser.error(f"--describe takes at most one of these options: {flags(VIEWS)}")
    if options.state:
        parser.error("--describe does not take a value for --state")


def _check_deletion(parser: Parser, options: Namespace) -> None:
    if options.topic:
        parser.error("--delete is for whole groups; for some topics there is --delete-offsets")


def _check_deletion_of_offsets(parser: Parser, options: Namespace) -> None:
    if len(options.group) != 1 or not options.topic:
        parser.error("--delete-offsets takes one --group, and --topic")


def _check_reset(parser: Parser, options: Namespace) -> None:
    if options.dry_run and options.execute:
        parser.error("--reset-offsets only accepts one of --execute and --dry-run")
    if one_rule_at_most(parser, options) is None:
        parser.error(f"--reset-offsets takes one of these options: {flags(RULES)}")
    if not (options.topic or options.all_topics or options.from_file is not None):
        parser.error("One of the reset scopes should be defined: --all-topics, --topic")


def _words(parser: Parser, text: str | None, known: Sequence[str], what: str) -> set[str]:
    """Of a list in any case; none for all."""
    by_word = {each.lower(): each for each in known}
    words = [each.strip().lower() for each in (text or "").split(",") if text]
    if not all(each in by_word for each in words):
        parser.error(f"Invalid {what} list '{text}'. Valid {what.removesuffix('s')}s are: {', '.join(known)}")
    return {by_word[each] for each in words}

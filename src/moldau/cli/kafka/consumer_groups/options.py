"""The options of ConsumerGroupCommand, which of them go together, and what a reset is asked to do."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from typing import TypeVar

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import UsageError
from moldau.cli.kafka.scopes import milliseconds
from moldau.cli.parsing import Parser, whole
from moldau.client.groups.listing import CLASSIC, CONSUMER
from moldau.client.groups.resetting import (
    CURRENT,
    EARLIEST,
    LATEST,
    Rule,
    Target,
    datetime_ms,
    iso_duration_ms,
)

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
RULES = (
    "to_offset", "shift_by", "to_datetime", "by_duration", "to_earliest", "to_latest", "to_current", "from_file",
)  # fmt: skip
STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
LONG = whole(-(2**63), 2**63 - 1, "offset")
T = TypeVar("T")


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
    group.add_argument("--group", metavar="GROUP", action="append", default=[], help="may be repeated")
    group.add_argument("--all-groups", action="store_true")
    group.add_argument(
        "--topic", metavar="TOPIC[:0,1]", action="append", default=[], help="of all or of these partitions"
    )
    group.add_argument("--all-topics", action="store_true", help="all that the group has committed something for")
    group.add_argument("--members", action="store_true", help="describe them instead of offsets")
    group.add_argument("--offsets", action="store_true", help="describe them, which is the default")
    group.add_argument(
        "--state", metavar="STATE,...", nargs="?", const="", help="describe or list it; list those in these states"
    )
    group.add_argument("--type", metavar="TYPE,...", nargs="?", const="", help="list it, or those of these types")
    group.add_argument("--verbose", action="store_true", help="describe more")


def _add_rules(parser: Parser) -> None:
    group = parser.add_argument_group("where a reset goes to")
    group.add_argument("--to-offset", metavar="OFFSET", type=LONG)
    group.add_argument("--to-datetime", metavar="YYYY-MM-DDThh:mm:ss.sss", type=_told(datetime_ms), help="in UTC")
    group.add_argument("--by-duration", metavar="PnDTnHnMnS", type=_told(iso_duration_ms), help="so long ago")
    group.add_argument("--to-earliest", action="store_true")
    group.add_argument("--to-latest", action="store_true")
    group.add_argument("--to-current", action="store_true", help="where it is, or the end where it is nowhere")
    group.add_argument("--shift-by", metavar="N", type=LONG, help="forward or, if negative, back")
    group.add_argument("--from-file", metavar="FILE", help="CSV as --export prints it")
    group.add_argument("--dry-run", action="store_true", help="only show it, which is the default")
    group.add_argument("--execute", action="store_true", help="do it")
    group.add_argument("--export", action="store_true", help="print CSV")


def _told(read: Callable[[str], T]) -> Callable[[str], T]:
    def parsed(text: str) -> T:
        try:
            return read(text)
        except ValueError as wrong:
            raise ArgumentTypeError(str(wrong)) from None

    return parsed


def _check(parser: Parser, options: Namespace) -> None:
    actions = _given(options, ACTIONS)
    if len(actions) != 1:
        parser.error(f"Command must include exactly one action: {_flags(ACTIONS)}")
    action = actions[0]
    if options.group and options.all_groups:
        parser.error("--group and --all-groups exclude each other")
    if action in ("describe", "delete", "reset_offsets") and not options.group and not options.all_groups:
        parser.error(f"{_flags([action])} takes one of these options: --group, --all-groups")
    allowed = {"describe": (*VIEWS, "verbose"), "list": ("state", "type")}.get(action, ())
    stray = [each for each in _given(options, (*VIEWS, "verbose", "type")) if each not in allowed]
    if stray:
        parser.error(f"{_flags(stray[:1])} is for {'--list' if stray[0] == 'type' else '--describe'}")
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
    if len(_given(options, VIEWS)) > 1:
        parser.error(f"--describe takes at most one of these options: {_flags(VIEWS)}")
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
    rules = _given(options, RULES)
    if len(rules) != 1:
        parser.error(f"--reset-offsets takes exactly one of these options: {_flags(RULES)}")
    if not (options.topic or options.all_topics or options.from_file is not None):
        parser.error("One of the reset scopes should be defined: --all-topics, --topic")


def _given(options: Namespace, names: Sequence[str]) -> list[str]:
    return [each for each in names if getattr(options, each) not in (None, False)]


def _flags(names: Sequence[str]) -> str:
    return ", ".join(f"--{each.replace('_', '-')}" for each in names)


def _words(parser: Parser, text: str | None, known: Sequence[str], what: str) -> set[str]:
    """Of a list in any case; none for all."""
    by_word = {each.lower(): each for each in known}
    words = [each.strip().lower() for each in (text or "").split(",") if text]
    if not all(each in by_word for each in words):
        parser.error(f"Invalid {what} list '{text}'. Valid {what.removesuffix('s')}s are: {', '.join(known)}")
    return {by_word[each] for each in words}


def rule_of(options: Namespace, *, now_ms: int) -> Rule | None:
    """None where a file says it."""
    plain = (("to_earliest", EARLIEST), ("to_latest", LATEST), ("to_current", CURRENT))
    for name, rule in plain:
        if getattr(options, name, False):
            return rule
    if options.to_offset is not None:
        return Rule(Target.OFFSET, options.to_offset)
    if options.shift_by is not None:
        return Rule(Target.SHIFT, options.shift_by)
    if options.to_datetime is not None:
        return Rule(Target.TIMESTAMP, options.to_datetime)
    if options.by_duration is not None:
        return Rule(Target.TIMESTAMP, now_ms - options.by_duration)
    return None


def text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as wrong:
        raise UsageError(f"cannot read {path}: {wrong.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {path}: it is no text in UTF-8") from None

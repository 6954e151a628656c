"""The options by which Apache Kafka's tools say where a group is to read on."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from argparse import _ArgumentGroup as ArgumentGroup
from collections.abc import Sequence

from moldau.cli.failures import UsageError
from moldau.cli.parsing import Parser, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from moldau.client.groups.resetting import Rule

RULES = (
    "to_offset", "shift_by", "to_datetime", "by_duration", "to_earliest", "to_latest", "to_current", "from_file",
)  # fmt: skip
LONG = whole(-(2**63), 2**63 - 1, "offset")


def add_rule_options(parser: Parser) -> ArgumentGroup:
    group = parser.add_argument_group("where a reset goes to")
    group.add_argument("--to-offset", metavar="OFFSET", type=LONG)
    group.add_argument("--to-datetime", metavar="YYYY-MM-DDThh:mm:ss.sss", type=_time_ms, help="in UTC")
    group.add_argument("--by-duration", metavar="PnDTnHnMnS", type=_duration_ms, help="so long ago")
    group.add_argument("--to-earliest", action="store_true")
    group.add_argument("--to-latest", action="store_true")
    group.add_argument("--shift-by", metavar="N", type=LONG, help="forward or, if negative, back")
    group.add_argument("--from-file", metavar="FILE", help="CSV of topic,partition,offset")
    return group


def _time_ms(text: str) -> int:
    from moldau.client.groups.resetting import datetime_ms

    try:
        return datetime_ms(text)
    except ValueError as wrong:
        raise ArgumentTypeError(str(wrong)) from None


def _duration_ms(text: str) -> int:
    from moldau.client.groups.resetting import iso_duration_ms

    try:
        return iso_duration_ms(text)
    except ValueError as wrong:
        raise ArgumentTypeError(str(wrong)) from None


def one_rule_at_most(parser: Parser, options: Namespace) -> str | None:
    """Its option's name."""
    rules = given(options, RULES)
    if len(rules) > 1:
        parser.error(f"{' and '.join(map(flag, rules[:2]))} exclude each other")
    return rules[0] if rules else None


def given(options: Namespace, names: Sequence[str]) -> list[str]:
    return [each for each in names if getattr(options, each, None) not in (None, False)]


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def flags(names: Sequence[str]) -> str:
    return ", ".join(map(flag, names))


def rule_of(options: Namespace, *, now_ms: int) -> Rule | None:
    """None where a file says it."""
    from moldau.client.groups.resetting import CURRENT, EARLIEST, LATEST, Rule, Target

    for name, rule in (("to_earliest", EARLIEST), ("to_latest", LATEST), ("to_current", CURRENT)):
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

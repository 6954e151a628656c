"""Which options of a tool go together, told as Apache Kafka's tools tell it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable

from moldau.cli.parsing import Parser


def is_given(options: Namespace, name: str) -> bool:
    """By the option's name without its dashes; a switch that is off and a list that is empty were not given."""
    value = getattr(options, name.replace("-", "_"))
    return value is not None and value is not False and value != []


def given_of(options: Namespace, names: Iterable[str]) -> list[str]:
    return [name for name in names if is_given(options, name)]


def check_required(parser: Parser, options: Namespace, *names: str) -> None:
    for name in names:
        if not is_given(options, name):
            parser.error(f'Missing required argument "[{name}]"')


def check_apart(parser: Parser, options: Namespace, name: str, others: Iterable[str]) -> None:
    """None of the others may be given when this one is."""
    if is_given(options, name):
        for other in others:
            if other != name and is_given(options, other):
                parser.error(f'Option "[{name}]" can\'t be used with option "[{other}]"')

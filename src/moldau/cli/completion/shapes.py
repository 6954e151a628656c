"""The shape of a tool's command line, as its parser has it, in a file: a Tab does not wait for the tool to load."""

from __future__ import annotations

import os
from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from moldau.cli.completion.kept import keep, kept
from moldau.cli.completion.kinds import BY_NAME, Completes, Kind

MANY = 1_000_000
COUNTS = {None: (1, 1), "?": (0, 1), "*": (0, MANY), "+": (1, MANY), "...": (0, MANY)}


class Argument(NamedTuple):
    names: list[str]
    """Those of an option; a word that stands alone has none."""
    dest: str
    least: int
    most: int
    help: str
    words: list[str]
    kind: str
    separator: str
    ending: str
    repeats: bool


class Shape(NamedTuple):
    arguments: list[Argument]
    actions: dict[str, tuple[str, Shape]]
    """Each with its help."""


def shape_of(parser: ArgumentParser) -> Shape:
    arguments, actions = [], {}
    for each in parser._actions:  # argparse has no other way to ask
        if isinstance(each, _SubParsersAction):
            told = {choice.dest: choice.help or "" for choice in each._choices_actions}
            actions = {name: (told.get(name, ""), shape_of(inner)) for name, inner in each.choices.items()}
        elif each.help != SUPPRESS:
            arguments.append(_argument(each))
    return Shape(arguments, actions)


def _argument(action: Action) -> Argument:
    least, most = (action.nargs, action.nargs) if isinstance(action.nargs, int) else COUNTS[action.nargs]
    meta = action.metavar if isinstance(action.metavar, Completes) else Completes("", BY_NAME.get(str(action.metavar)))
    if action.dest == "override":  # of `start`, which imports no tool's words
        meta = Completes("KEY=VALUE", Kind.BROKER_CONFIGS, ending="=")
    return Argument(
        names=[*action.option_strings],
        dest=action.dest,
        least=least,
        most=most,
        help=_first_words(action),
        words=[str(each) for each in action.choices] if action.choices is not None else [*meta.words],
        kind=meta.kind or "",
        separator=meta.separator,
        ending=meta.ending,
        repeats=type(action).__name__ in ("_AppendAction", "_ExtendAction"),
    )


def _first_words(action: Action) -> str:
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return " ".join(text.split())


def known_shape(name: str, sources: Iterable[Path], make: Callable[[], Shape]) -> Shape:
    """As it was kept, unless the tool has changed since."""
    written = [(str(path), os.stat(path).st_mtime_ns) for path in sources]
    found = kept("shape", [name, written])
    if found is not None:
        return _loaded(found)
    shape = make()
    keep("shape", [name, written], shape)
    return shape


def _loaded(content: Any) -> Shape:
    arguments, actions = content
    return Shape(
        [Argument(*each) for each in arguments],
        {name: (told, _loaded(inner)) for name, (told, inner) in actions.items()},
    )

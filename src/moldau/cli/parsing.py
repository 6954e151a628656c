"""Command lines: a wrong one is one line that names what was wrong and what was probably meant."""

from __future__ import annotations

import os
import sys
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from contextvars import ContextVar

from moldau.cli.failures import UsageError, meant
from moldau.cli.settling import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
_HEX_DIGITS = 2
COLUMNS_USUAL = 80


# Set while a tool is asked for its parser alone, which every tool makes before it does anything.
_IS_ONLY_MADE: ContextVar[bool] = ContextVar("is_only_made", default=False)


class _Made(Exception):
    """In the place of what a parser would parse."""

    def __init__(self, parser: ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def made_parser(main: Callable[[list[str]], int]) -> ArgumentParser:
    """The parser of a tool, without anything parsed or done."""
    token = _IS_ONLY_MADE.set(True)
    try:
        main([])
    except _Made as made:
        return made.parser
    finally:
        _IS_ONLY_MADE.reset(token)
    raise AssertionError("a tool parses its command line before it does anything")


def help_formatter(prog: str) -> RawDescriptionHelpFormatter:
    """As wide as argparse makes it, which imports shutil and every compression for that."""
    return RawDescriptionHelpFormatter(prog, width=columns() - 2)


def columns() -> int:
    """Of the terminal, as `shutil.get_terminal_size` finds them."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or COLUMNS_USUAL  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):  # closed, or no terminal
        return COLUMNS_USUAL


class Parser(ArgumentParser):
    """argparse with our words; the parsers of its actions are of this kind, too."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", help_formatter)
        super().__init__(**settings)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        """Nothing may be left over, here and in the parser of an action, which knows its own options best."""
        self._check_made()
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._unknown(unknown[0]))
        return options, []

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> Namespace:
        options = super().parse_args(args, namespace)
        settle(options)
        return options

    def parse_words(self, args: Sequence[str], words: str) -> Namespace:
        """As `parse_args`, but these may stand anywhere among the options; argparse takes their first run only."""
        self._check_made()
        options, rest = super().parse_known_args(args)
        unknown = [word for word in rest if word.startswith("-") and word != "-"]
        if unknown:
            self.error(self._unknown(unknown[0]))
        setattr(options, words, [*getattr(options, words), *rest])
        settle(options)
        return options

    def _check_made(self) -> None:
        if _IS_ONLY_MADE.get():
            raise _Made(self)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see: {self.prog} --help")

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"unexpected argument {word!r}"
        name = word.partition("=")[0]
        return f"unknown option {name}{meant(name, self._option_string_actions)}"

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(each) for each in action.choices]
            what = "action" if isinstance(action.choices, dict) and action.dest == "==SUPPRESS==" else "value"
            name = "" if what == "action" else f" of {'/'.join(action.option_strings) or action.metavar or action.dest}"
            near = meant(str(value), choices) or f"; expected {', '.join(choices)}"
            self.error(f"unknown {what} {value!r}{name}{near}")


def with_values(arguments: Sequence[str], option: str) -> list[str]:
    """argparse takes `-5:end` for an option; bound to the name of one it is a value."""
    joined: list[str] = []
    for word in arguments:
        if joined[-1:] == [option] and word[:1] == "-" and word[1:2].isdigit():
            joined[-1] = f"{option}={word}"
        else:
            joined.append(word)
    return joined


def unescaped(text: str) -> str:
    r"""An argument in which \n, \t, \r, \0, \\ and \xHH mean what they do in C: shells pass on what is typed."""
    parts = iter(text.split("\\"))
    found = [next(parts)]
    for part in parts:
        if not part:  # an escaped backslash
            found.append("\\" + next(parts, ""))
        elif part[0] == "x" and len(part) > _HEX_DIGITS:
            found.append(_of_code(part[1 : 1 + _HEX_DIGITS]) + part[1 + _HEX_DIGITS :])
        elif part[0] in _ESCAPES:
            found.append(_ESCAPES[part[0]] + part[1:])
        else:
            raise ArgumentTypeError(rf"unknown escape \{part[0]} in {text!r}; known are \n \t \r \0 \\ \xHH")
    return "".join(found)


def _of_code(digits: str) -> str:
    try:
        return chr(int(digits, 16))
    except ValueError:
        raise ArgumentTypeError(rf"\x{digits}: expected two hexadecimal digits") from None


def whole(least: int, most: int, what: str) -> Callable[[str], int]:
    """A type of argument: a whole number in these bounds."""

    def parsed(text: str) -> int:
        number = int(text) if text.removeprefix("-").isdecimal() and text.isascii() else None
        if number is None or not least <= number <= most:
            raise ArgumentTypeError(f"{text!r} is no {what}; expected {least} to {most}")
        return number

    return parsed


def log_level(text: str) -> str:
    """A type of argument: in any case."""
    from moldau.core.logs import LOG_LEVELS

    if text.upper() not in LOG_LEVELS:
        raise ArgumentTypeError(f"{text!r} is no level; expected {', '.join(LOG_LEVELS)}")
    return text.upper()

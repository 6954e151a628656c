"""Before something is lost: people are asked, and programs say --yes."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from moldau.cli.failures import CommandFailed, UsageError


def add_yes_option(parser: ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do it without a question")


def ask(question: str, *, yes: bool) -> None:
    """Returns when it may be done."""
    if not yes:
        if not is_terminal():
            raise UsageError(f"{question} Without a terminal to ask at it takes --yes; nothing was done")
        ask_people(question)


def ask_people(question: str) -> None:
    sys.stdout.flush()  # it may say what the question is about
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandFailed("nothing was done")


def is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()

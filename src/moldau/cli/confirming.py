"""A question before something that can't be taken back. `--yes` answers it where nobody can be asked."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from moldau.cli.failures import UsageError

YES = ("y", "yes")


def add_yes_option(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")


def confirm(question: str, *, yes: bool) -> None:
    """Raises UsageError unless somebody has agreed."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(f"{question}? Nothing was done: add --yes to do it")
    sys.stdout.flush()  # it says what the question is about
    print(f"{question}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in YES:
        raise UsageError("nothing was done")

"""How a tool ends: three exit codes that stay as they are, and errors of one line that say what to do next."""

from __future__ import annotations

from collections.abc import Iterable

OK = 0
FAILED = 1  # the cluster said no, or did not answer
USAGE = 2  # the command line or its input is wrong; argparse uses the same
INTERRUPTED = 130  # Ctrl-C, as shells count it


class CommandFailed(Exception):
    """The line that a user sees instead of a stack trace."""

    def __init__(self, message: str, *, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class UsageError(CommandFailed):
    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=USAGE)


def meant(word: str, known: Iterable[str]) -> str:
    """For the end of a message: what was probably meant, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(word, [*known], n=1)
    return f"; did you mean {near[0]}?" if near else ""

"""Where a new password comes from. Not from the command line: every program of the machine can read that."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace

from moldau.cli.failures import UsageError

VARIABLE = "MOLDAU_USER_PASSWORD"
STANDARD_INPUT = "-"
GENERATED_BYTES = 24


def add_password_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("password", f"default: {VARIABLE}, or a question if this is a terminal")
    given = group.add_mutually_exclusive_group()
    given.add_argument("--password-file", metavar="FILE", help="whose first line it is; - is standard input")
    given.add_argument("--generate", action="store_true", help="a random one, which is printed")


def new_password(options: Namespace) -> str:
    """UsageError if there is none, or an empty one."""
    if options.generate:
        import secrets

        return secrets.token_urlsafe(GENERATED_BYTES)
    if options.password_file is not None:
        password = _first_line(options.password_file)
    elif VARIABLE in os.environ:
        password = os.environ[VARIABLE]
    elif sys.stdin is not None and sys.stdin.isatty():
        password = _asked()
    else:
        raise UsageError(f"there is no password; give it by --password-file FILE, {VARIABLE} or --generate")
    if not password:
        raise UsageError("the password is empty")
    return password


def _asked() -> str:
    from getpass import getpass

    password = getpass("New password: ")
    if password != getpass("The same again: "):
        raise UsageError("the two passwords differ")
    return password


def _first_line(path: str) -> str:
    if path == STANDARD_INPUT:
        return sys.stdin.readline().rstrip("\r\n")
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().rstrip("\r\n")
    except (OSError, UnicodeError) as wrong:
        raise UsageError(f"--password-file: cannot read {path}: {getattr(wrong, 'strerror', wrong)}") from None

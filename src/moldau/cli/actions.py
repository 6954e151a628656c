"""Tools of several actions: `moldau NAME ACTION …`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from moldau.cli.parsing import Parser


def action_parser(name: str, description: str, examples: str) -> Parser:
    return Parser(prog=f"moldau {name}", description=description, epilog=examples)


def run_action(options: Namespace) -> int:
    """What `set_defaults(action=…)` of the chosen one says."""
    action: Callable[[Namespace], int] = options.action
    return action(options)

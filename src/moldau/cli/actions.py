"""Tools of several actions: `moldau NAME ACTION …`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from importlib import import_module

from moldau.cli.parsing import Parser


def action_parser(name: str, description: str, examples: str) -> Parser:
    return Parser(prog=f"moldau {name}", description=description, epilog=examples)


def run_action(options: Namespace) -> int:
    """What `set_defaults(action=…)` of the chosen one says."""
    action: Callable[[Namespace], int] = options.action
    return action(options)


class ImportedAction:
    """An action whose module is imported once it was chosen: what --help prints needs no client."""

    __slots__ = ("function", "module")

    def __init__(self, module: str, function: str) -> None:
        self.module = module
        self.function = function

    def __call__(self, options: Namespace) -> int:
        action: Callable[[Namespace], int] = getattr(import_module(self.module), self.function)
        return action(options)

"""Tools of several actions: `moldau NAME ACTION …`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable


def action_parser(name: str, description: str, examples: str) -> ArgumentParser:
    return ArgumentParser(
        prog=f"moldau {name}",
        description=description,
        epilog=examples,
        formatter_class=RawDescriptionHelpFormatter,
    )


def run_action(options: Namespace) -> int:
    """What `set_defaults(action=…)` of the chosen one says."""
    action: Callable[[Namespace], int] = options.action
    return action(options)

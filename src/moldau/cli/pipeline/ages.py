"""Ages on the command line: `--from -2h`."""

from __future__ import annotations


def with_ages(arguments: list[str]) -> list[str]:
    """`--from -2h` as `--from=-2h`: argparse would take an age for an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] == "--from" and argument.startswith("-"):
            joined[-1] = f"--from={argument}"
        else:
            joined.append(argument)
    return joined

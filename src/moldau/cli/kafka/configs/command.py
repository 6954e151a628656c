"""The command line of `moldau configs`."""

from __future__ import annotations

from moldau.cli.kafka.configs.options import parse


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.configs.acting import run

    return run(options)

"""The command line of `moldau consumer-groups`."""

from __future__ import annotations

from moldau.cli.kafka.consumer_groups.options import parse


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.consumer_groups.acting import run

    return run(options)

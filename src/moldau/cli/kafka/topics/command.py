"""The command line of `moldau topics` with Apache Kafka's options."""

from __future__ import annotations

from moldau.cli.kafka.topics.options import parse


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.kafka.topics.acting import run

    return run(options)

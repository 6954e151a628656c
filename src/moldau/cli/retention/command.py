"""The command line of `moldau retention`."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from pathlib import Path

from moldau.cli.completion.kinds import GROUP
from moldau.cli.connection import add_connection_options
from moldau.cli.output import add_output_option
from moldau.cli.parsing import Parser

EXAMPLES = """\
examples:
  moldau retention moldau-spark-shouting                 how long its first unread record stays at least
  moldau retention --pipeline orders.sql --within 2d     exit code 1 if it is less than two days
  moldau retention --pipeline orders.sql --hold          raise retention while it is less, put it back after

Groups are those of consumers of any kind; a Spark query's is moldau-spark-NAME. With --hold, run it more often than
--within says: a topic is held for twice that long from now on. What was there before is noted in the cluster.
"""
WITHIN_MS = 24 * 3_600_000


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.retention.margins import run

    return run(options)


def within(text: str) -> int:
    from moldau.spark.pipelines.language.durations import duration_ms

    try:
        return duration_ms(text)
    except ValueError as wrong:
        raise ArgumentTypeError(str(wrong)) from None


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau retention",
        description="Readers that retention may pass: how long their first unread record stays at least.",
        epilog=EXAMPLES,
    )
    parser.add_argument("group", nargs="*", metavar=GROUP, help="a consumer group")
    parser.add_argument(
        "--pipeline", type=Path, metavar="FILE", action="append", default=[], help="the groups of its queries"
    )
    parser.add_argument(
        "--within", type=within, metavar="TIME", default=WITHIN_MS, help="what counts as too little (default: 24h)"
    )
    parser.add_argument(
        "--hold", action="store_true", help="raise the topics' retention while it is too little, put it back after"
    )
    add_output_option(parser)
    add_connection_options(parser)
    return parser.parse_args(arguments)

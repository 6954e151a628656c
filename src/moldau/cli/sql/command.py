"""The command line of `moldau sql`."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from moldau.cli.connection import add_connection_options
from moldau.cli.parsing import Parser

if TYPE_CHECKING:
    pass

EXAMPLES = """\
examples:
  moldau sql "select * from orders limit 10"
  moldau sql "select customer, sum(amount) from orders group by customer" -o csv
  moldau sql --follow "select * from orders where amount > 100"
  moldau sql --follow --plot "select customer, sum(amount) from orders group by customer"
  moldau sql "create stream big_orders as select * from orders where amount > 100"
  moldau sql "show streams"
  moldau sql                                        a shell, with history and completion

A topic's values are read as JSON objects where they are such, else as text or bytes. Beside a value's own columns
there are _key, _topic, _partition, _offset and _timestamp. A name with other characters goes in `back quotes`.
"""
OUTPUTS = ("table", "json", "csv")


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    from moldau.cli.sql.asking import run

    return run(options)


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau sql",
        description="Ask topics in SQL, on Spark.",
        epilog=EXAMPLES,
    )
    parser.add_argument("statement", nargs="?", metavar="SQL", help="one or more statements; without it, a shell")
    parser.add_argument("--follow", action="store_true", help="go on with what arrives, until Ctrl-C")
    parser.add_argument("--plot", action="store_true", help="draw the last column as bars, named by the others")
    parser.add_argument("-o", "--output", choices=OUTPUTS, default="table", help="(default: %(default)s)")
    parser.add_argument("--master", help="local[2], spark://… or a Connect URL, sc://… (default: this machine)")
    parser.add_argument(
        "--keep-classes",
        action="store_true",
        help="make an archive of Spark's classes (170 MB in ~/.cache/moldau) for faster starts, and wait for it",
    )
    add_connection_options(parser)
    return parser.parse_args(arguments)

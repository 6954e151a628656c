"""What the tools print: an aligned table for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence

Row = Mapping[str, object]

TABLE, JSON, JSON_LINES = "table", "json", "jsonl"


def add_output_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        choices=(TABLE, JSON, JSON_LINES),
        default=TABLE,
        help="a table (default), one JSON document, or one JSON object a line",
    )


def print_rows(rows: Sequence[Row], *, columns: Sequence[str], output: str) -> None:
    """A table shows the columns; JSON shows everything a row holds."""
    if output == JSON:
        print(json.dumps([*rows], indent=2))
    elif output == JSON_LINES:
        for row in rows:
            print(json.dumps(row))
    else:
        print_table(
            [[cell(row[column]) for column in columns] for row in rows], header=[name.upper() for name in columns]
        )


def print_table(lines: Iterable[Sequence[str]], *, header: Sequence[str]) -> None:
    table = [header, *lines]
    widths = [max(len(line[index]) for line in table) for index in range(len(header))]
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def cell(value: object) -> str:
    """One cell of a table; `-` keeps an empty one visible to awk."""
    if value is None or value == "":
        return "-"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value)) or "-"
    return str(value)


def close_quietly() -> None:
    """The reader of our output went away, as `head` does: nothing that is still buffered may be written at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)

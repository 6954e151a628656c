"""What the tools print: an aligned table for people, and JSON, YAML or CSV for programs.

A command prints one JSON or YAML value, whatever happens: rows, or an object whose `error` says what went wrong.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterable, Mapping, Sequence

from moldau.cli.completion.kinds import Completes
from moldau.cli.failures import meant
from moldau.core.visible import in_one_line

Row = Mapping[str, object]

TABLE, WIDE, JSON, JSON_LINES, YAML, CSV = FORMATS = ("table", "wide", "json", "jsonl", "yaml", "csv")


def output_format(text: str) -> str:
    if text not in FORMATS:
        raise ArgumentTypeError(f"{text!r} is no format{meant(text, FORMATS) or f'; expected {_known()}'}")
    return text


def _known() -> str:
    return ", ".join(FORMATS)


def add_output_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar=Completes("FORMAT", words=FORMATS),
        type=output_format,
        help=f"{_known()} (default: table); wide has more columns",
    )


def is_for_people(output: str) -> bool:
    return output in (TABLE, WIDE)


def print_rows(rows: Sequence[Row], *, columns: Sequence[str], output: str, more: Sequence[str] = ()) -> None:
    """A table shows the columns, a wide one `more` of them; everything else holds all that a row does."""
    if is_for_people(output):
        shown = [*columns, *more] if output == WIDE else [*columns]
        print_table([[cell(row.get(name)) for name in shown] for row in rows], header=[each.upper() for each in shown])
    elif output == JSON_LINES:
        import json

        for row in rows:
            print(json.dumps(row))
    elif output == CSV:
        print_csv(rows, names=[*dict.fromkeys([*columns, *more, *(name for row in rows for name in row)])])
    else:
        print_value([*rows], output=output)


class Change:
    """Something that a command did, or could not do: people hear of a failure on standard error instead."""

    __slots__ = ("line", "row")

    def __init__(self, row: Row, line: str | None = None) -> None:
        self.row = row
        self.line = line


def print_changes(changes: Sequence[Change], *, output: str) -> None:
    """A line of each for people, and the rows for programs."""
    if is_for_people(output):
        for change in changes:
            if change.line is not None:
                print(change.line)
    else:
        rows = [change.row for change in changes]
        print_rows(rows, columns=[*dict.fromkeys(name for row in rows for name in row)], output=output)


def print_value(value: object, *, output: str) -> None:
    """One value that is no list of rows."""
    import json

    if output == YAML:
        import yaml

        print(yaml.safe_dump(json.loads(json.dumps(value)), sort_keys=False, allow_unicode=True), end="")
    else:
        print(json.dumps(value, indent=None if output == JSON_LINES else 2))


def print_csv(rows: Sequence[Row], *, names: Sequence[str]) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_plain(row.get(name)) for name in names])


def _plain(value: object) -> object:
    """A cell of CSV: empty for none, JSON for what is more than a text or a number."""
    if value is None or isinstance(value, str | int | float):
        return value
    import json

    return json.dumps(value)


def print_failure(message: str, *, output: str | None) -> None:
    """Beside the line for people that goes to standard error."""
    if output in (JSON, JSON_LINES, YAML):
        print_value({"error": message}, output=output)


def print_table(lines: Iterable[Sequence[str]], *, header: Sequence[str]) -> None:
    table = [header, *lines]
    widths = [max(len(line[index]) for line in table) for index in range(len(header))]
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def cell(value: object) -> str:
    """One cell of a table; `-` keeps an empty one visible to awk."""
    if value is None:
        return "-"
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = ",".join(map(str, value))
    elif isinstance(value, Mapping):
        value = ",".join(f"{name}={each}" for name, each in value.items())
    return in_one_line(str(value)) or "-"


def close_quietly() -> None:
    """The reader of our output went away, as `head` does: nothing that is still buffered may be written at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)

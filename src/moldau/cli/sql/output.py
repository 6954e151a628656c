"""Rows of a result as a table, as JSON lines or as CSV; a stream's rows are printed as they come."""

from __future__ import annotations

import csv
import itertools
import json
import math
import sys
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from moldau.cli.output import cell, print_table
from moldau.spark.sql.session import Result

TABLE_ROWS = 1_000  # a table's widths are those of this many rows; the next ones get widths of their own


def print_result(result: Result, *, output: str, flush: bool = False) -> None:
    if result.message is not None:
        print(result.message)
        return
    rows = iter(result.rows)
    if output == "json":
        _print_json(result.columns, rows, flush=flush)
    elif output == "csv":
        _print_csv(result.columns, rows, flush=flush)
    else:
        _print_tables(result.columns, rows, flush=flush)


def _print_json(columns: Sequence[str], rows: Iterator[Sequence[Any]], *, flush: bool) -> None:
    for row in rows:
        print(json.dumps({name: plain(value) for name, value in zip(columns, row, strict=True)}), flush=flush)


def _print_csv(columns: Sequence[str], rows: Iterator[Sequence[Any]], *, flush: bool) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if value is None else text(value) for value in row])
        if flush:
            sys.stdout.flush()


def _print_tables(columns: Sequence[str], rows: Iterator[Sequence[Any]], *, flush: bool) -> None:
    """A stream can't wait for its widest row: its rows are lines with the columns' names before them once."""
    if flush:
        print("  ".join(columns), flush=True)
        for row in rows:
            print("  ".join(cell(text(value)) for value in row), flush=True)
        return
    part = [[cell(text(value)) for value in row] for row in itertools.islice(rows, TABLE_ROWS)]
    while True:
        print_table(part, header=columns)
        part = [[cell(text(value)) for value in row] for row in itertools.islice(rows, TABLE_ROWS)]
        if not part:
            return


def text(value: Any) -> str:
    """One value for a person, on one line."""
    if value is None:
        return ""
    value = plain(value)
    shown = value if isinstance(value, str) else json.dumps(value)
    return shown.replace("\n", "\\n")


def plain(value: Any) -> Any:
    """Spark's values as JSON knows them; it has no number for what is none."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="backslashreplace")
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if hasattr(value, "asDict"):
        return {name: plain(one) for name, one in value.asDict().items()}
    if isinstance(value, dict):
        return {str(plain(key)): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value

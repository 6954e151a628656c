"""Tables as Apache Kafka's tools print them."""

from __future__ import annotations

from collections.abc import Sequence


def print_pretty_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = [heads, *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(heads))]
    for row in table:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)))

"""How Apache Kafka's tools print: an empty line before, columns of their own widths, errors on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

MISSING = "-"


def print_error(message: str) -> None:
    print(f"\nError: {message}")


def print_warning(message: str) -> None:
    print(f"\n{message}", file=sys.stderr)


def shown(value: object) -> str:
    return MISSING if value is None else str(value)


def print_columns(lines: Iterable[Sequence[str]], widths: Sequence[int]) -> None:
    """Each line begins with its line break; a width of 0 is that of whatever stands there."""
    for line in lines:
        print("\n" + " ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)), end="")
    print()


def widest(least: int, texts: Iterable[str]) -> int:
    return max([least, *map(len, texts)])

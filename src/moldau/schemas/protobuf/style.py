"""Which text of a schema is printed, and what both have in common: options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.schemas.protobuf.options import (
    Option,
    bracketed,
    interpreted,
    print_option,
    read_brackets,
    read_statement,
)
from moldau.schemas.protobuf.source import Path, Source

# They stand after all others, whichever way they were written.
LAST = ("default", "json_name")


@dataclass(frozen=True, slots=True)
class Style:
    """With a source as it was written, else in full names; `in_order` of numbers for the normalized text."""

    source: Source | None
    in_order: bool
    syntax: str  # proto3, editions, or nothing for proto2
    changed: Mapping[Path, Sequence[Option]] = field(default_factory=dict)
    """Options that stand in for those of the source at their paths."""

    def written(self, *path: int) -> str | None:
        return self.source.written(path) if self.source else None


def written_statements(source: Source, path: Path) -> list[Option]:
    return [read_statement(text) for text in source.statements(path)]


def written_brackets(source: Source, path: Path) -> list[Option]:
    written = source.written(path)
    return [] if written is None else read_brackets(written)


def option_statements(message: Any, style: Style, path: Path) -> str:
    """`option name = value;` for each option of a file, message, enum, oneof, service or method."""
    if style.source is None:
        found = interpreted(message)
    else:
        found = [*style.changed[path]] if path in style.changed else written_statements(style.source, path)
    return "".join(f"option {print_option(option)};\n" for option in found if not _is_map_entry(option))


def option_brackets(message: Any, style: Style, path: Path, more: tuple[Option, ...] = ()) -> str:
    """` [name = value, ...]` of a field or a constant; `more` are options that no options message has."""
    if style.source is None:
        found = [*interpreted(message), *more]
        if style.in_order:
            found.sort(key=lambda option: option.name.strip("()"))
    else:
        found = [*style.changed[path]] if path in style.changed else written_brackets(style.source, path)
        found.sort(key=lambda option: LAST.index(option.name) + 1 if option.name in LAST else 0)
    return f" {bracketed([print_option(option) for option in found])}" if found else ""


def _is_map_entry(option: Option) -> bool:
    return option.name == "map_entry"  # the compiler's own, of a message that no text declares

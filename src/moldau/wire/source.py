"""Python source in the making, for the functions that the codec compiles."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from moldau.wire.schema import Field, Kind, fields_of


class Source:
    """Lines of one function, with the constants they name."""

    def __init__(self, **constants: Any) -> None:
        self.constants: dict[str, Any] = dict(constants)
        self._lines: list[str] = []
        self._depth = 0
        self._names = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, stem: str) -> str:
        """A variable name that nothing else in this function uses."""
        self._names += 1
        return f"{stem}_{self._names}"

    def constant(self, stem: str, value: Any) -> str:
        for name, known in self.constants.items():
            if known is value:
                return name
        name = self.fresh(stem)
        self.constants[name] = value
        return name

    def compile(self, name: str, origin: str) -> Callable[..., Any]:
        text = "\n".join(self._lines)
        exec(compile(text, f"<{origin}>", "exec"), self.constants)  # the text is made of class and field names only
        function: Callable[..., Any] = self.constants[name]
        return function


class FixedRun:
    """Neighbouring values of fixed size, which are packed or unpacked in one call."""

    def __init__(self) -> None:
        self.letters = ""
        self.names: list[str] = []

    def add(self, letter: str, name: str) -> None:
        self.letters += letter
        self.names.append(name)

    def take(self) -> tuple[struct.Struct, list[str]] | None:
        """What was gathered so far, and a new beginning."""
        if not self.names:
            return None
        run = struct.Struct(">" + self.letters), self.names
        self.letters, self.names = "", []
        return run


def bytes_min(cls: type[Struct], version: int, *, is_flexible: bool) -> int:
    """The fewest bytes that an object of this class can take, by which a hostile count is recognised."""
    present = [field for field in fields_of(cls) if version in field.versions and field.tag is None]
    return sum(_field_bytes_min(field, version, is_flexible) for field in present) + is_flexible


def element_bytes_min(field: Field, version: int, *, is_flexible: bool) -> int:
    """The fewest bytes of one element of an array field."""
    if not isinstance(field.type, Kind):
        return bytes_min(field.type, version, is_flexible=is_flexible)
    if field.type.is_fixed:
        return struct.calcsize(">" + field.type.value)
    return _prefix_bytes(field.type, is_flexible)


def _field_bytes_min(field: Field, version: int, is_flexible: bool) -> int:
    if field.is_array:
        return 1 if is_flexible else 4
    if not isinstance(field.type, Kind):
        return 1 if field.is_nullable_in(version) else bytes_min(field.type, version, is_flexible=is_flexible)
    return element_bytes_min(field, version, is_flexible=is_flexible)


def _prefix_bytes(kind: Kind, is_flexible: bool) -> int:
    if is_flexible:
        return 1
    return 2 if kind is Kind.STRING else 4

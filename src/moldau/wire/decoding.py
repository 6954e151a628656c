"""Writes the decoder of one class at one version.

The result is one function with the nested classes' loops inside it. Positions run in `at`, the frame's end is `end`.
An index or an unpack beyond the end raises by itself; slices don't, so every slice and every count is compared first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msgspec import Struct

from moldau.core.errors import ProtocolViolation, Truncated
from moldau.core.limits import ELEMENTS_MAX, STRING_BYTES_MAX, TAGGED_FIELDS_MAX
from moldau.wire.schema import Field, Kind, fields_of
from moldau.wire.source import FixedRun, Source, element_bytes_min
from moldau.wire.varint import read_uvarint

Decoder = Callable[[memoryview, int], tuple[Any, int]]


def compile_decoder(cls: type[Struct], version: int, *, is_flexible: bool, elements_max: int = ELEMENTS_MAX) -> Decoder:
    """A function (view, at) -> (object, end) that raises nothing but ProtocolViolation."""
    source = Source(
        unpack_from=struct.unpack_from,
        uvarint_from=read_uvarint,
        skip_tags=skip_tags,
        short=_short,
        refuse=_refuse,
        Violation=ProtocolViolation,
        Truncated=Truncated,
        UnpackError=struct.error,
    )
    writer = _DecoderWriter(source, version, is_flexible)
    with source.block("def decode(view, at):"):
        source.line("end = len(view)")
        source.line(f"elements = {elements_max}")
        with source.block("try:"):
            source.line(f"return {writer.read_struct(cls)}, at")
        with source.block("except (UnpackError, IndexError):"):
            source.line(f"raise Truncated(needed=at + 1, have=end) from None  # {cls.__name__}")
        with source.block("except UnicodeDecodeError as wrong:"):
            source.line(f"raise Violation(f'{cls.__name__}: a string is not UTF-8: {{wrong}}') from None")
    return source.compile("decode", f"decoder of {cls.__name__} v{version}")


class _DecoderWriter:
    def __init__(self, source: Source, version: int, is_flexible: bool) -> None:
        self.source = source
        self.version = version
        self.is_flexible = is_flexible
        self.run = FixedRun()

    def read_struct(self, cls: type[Struct]) -> str:
        """Emit the reading of all fields; the result is the expression that builds the object."""
        fields = fields_of(cls)
        values = {field.name: self._read_or_default(cls, field) for field in fields}
        self.flush()
        if self.is_flexible:
            tagged = [field for field in fields if field.tag is not None and self.version in field.versions]
            self._read_tags(cls, tagged, values)
        return f"{self.source.constant(cls.__name__, cls)}({', '.join(values.values())})"

    def _read_or_default(self, cls: type[Struct], field: Field) -> str:
        if self.version in field.versions and field.tag is None:
            return self._read_field(cls, field)
        if field.tag is not None and self.version in field.versions:
            self.flush()
            target = self.source.fresh(field.name)
            self.source.line(f"{target} = {self._default(field)}")
            return target
        return self._default(field)

    def _default(self, field: Field) -> str:
        default = field.default()
        if default is None or isinstance(default, bool | int | str | bytes):
            return repr(default)
        if isinstance(default, list) and not default:
            return "[]"
        if field.default() is default:
            return self.source.constant(field.name, default)
        return f"{self.source.constant(field.name, field.default)}()"

    def flush(self) -> None:
        taken = self.run.take()
        if taken is None:
            return
        packed, names = taken
        unpack = self.source.constant("unpack", packed.unpack_from)
        self.source.line(f"{', '.join(names)}, = {unpack}(view, at)")
        self.source.line(f"at += {packed.size}")

    def _read_field(self, cls: type[Struct], field: Field) -> str:
        label = f"{cls.__name__}.{field.name}"
        is_nullable = field.is_nullable_in(self.version)
        if field.is_array:
            return self._read_array(label, field, is_nullable)
        if isinstance(field.type, Kind):
            return self._read_primitive(label, field.type, is_nullable)
        return self._read_nested(label, field.type, is_nullable, is_tagged=field.tag is not None)

    def _read_primitive(self, label: str, kind: Kind, is_nullable: bool) -> str:
        target = self.source.fresh(label.rpartition(".")[2])
        if kind.is_fixed:
            self.run.add(kind.value, target)
            return target
        size = self._read_length(label, is_nullable, letter="h" if kind is Kind.STRING else "i")
        with self._unless_null(size, target, is_nullable):
            self.source.line(f"until = at + {size}")
            self.source.line("if until > end: raise short(until, end)")
            piece = "view[at:until]"
            self.source.line(f"{target} = " + (f'str({piece}, "utf-8")' if kind is Kind.STRING else piece))
            self.source.line("at = until")
        return target

    def _read_length(self, label: str, is_nullable: bool, *, letter: str) -> str:
        """Emit the reading of a length or count: at least zero, or -1 where null is allowed."""
        size = self.source.fresh("size")
        if self.is_flexible:
            self.flush()
            self._read_uvarint(size)
            self.source.line(f"{size} -= 1")
        else:
            self.run.add(letter, size)
            self.flush()
        lowest = -1 if is_nullable else 0
        is_wrong = f"{size} < {lowest}"
        if self.is_flexible and letter == "h":
            # Apache Kafka's limit as well; an answer of an older version could not repeat a longer one.
            is_wrong = f"not {lowest} <= {size} <= {STRING_BYTES_MAX}"
        self.source.line(f"if {is_wrong}: raise refuse({label!r}, {size})")
        return size

    def _read_uvarint(self, target: str) -> None:
        self.source.line(f"{target} = view[at]")
        self.source.line("at += 1")
        self.source.line(f"if {target} > 127: {target}, at = uvarint_from(view, at - 1)")

    def _unless_null(self, size: str, target: str, is_nullable: bool) -> AbstractContextManager[None]:
        """The block for a value that is there; a nullable one is None otherwise."""
        if not is_nullable:
            return nullcontext()
        self.source.line(f"{target} = None")
        return self.source.block(f"if {size} >= 0:")

    def _read_array(self, label: str, field: Field, is_nullable: bool) -> str:
        target = self.source.fresh(field.name)
        count = self._read_length(label, is_nullable, letter="i")
        least = element_bytes_min(field, self.version, is_flexible=self.is_flexible)
        assert least > 0, f"{label} has elements without bytes, whose number nothing would bound"
        with self._unless_null(count, target, is_nullable):
            self.source.line(f"if {count} * {least} > end - at: raise short(at + {count} * {least}, end)")
            self.source.line(f"elements -= {count}")
            self.source.line(f"if elements < 0: raise refuse({label!r}, {count})")
            self._read_elements(label, field, target, count)
        return target

    def _read_elements(self, label: str, field: Field, target: str, count: str) -> None:
        if isinstance(field.type, Kind) and field.type.is_fixed:
            letter, size = field.type.value, struct.calcsize(">" + field.type.value)
            # "16s" can't be repeated by a number in front of it.
            letters = f'"{letter}" * {count}' if len(letter) > 1 else f'f"{{{count}}}{letter}"'
            self.source.line(f'{target} = list(unpack_from(">" + {letters}, view, at))')
            self.source.line(f"at += {size} * {count}")
            return
        self.source.line(f"{target} = []")
        with self.source.block(f"for _ in range({count}):"):
            if isinstance(field.type, Kind):
                element = self._read_primitive(label, field.type, is_nullable=False)
            else:
                element = self.read_struct(field.type)
            self.flush()
            self.source.line(f"{target}.append({element})")

    def _read_nested(self, label: str, cls: type[Struct], is_nullable: bool, *, is_tagged: bool) -> str:
        """A nested object; a nullable one begins with a byte that is 1, and for null -1, or 0 where it is tagged."""
        target = self.source.fresh(label.rpartition(".")[2])
        if not is_nullable:
            built = self.read_struct(cls)
            self.source.line(f"{target} = {built}")
            return target
        marker = self.source.fresh("marker")
        self.run.add("b", marker)
        self.flush()
        self.source.line(f"{target} = None")
        with self.source.block(f"if {marker} > {0 if is_tagged else -1}:"):
            built = self.read_struct(cls)
            self.source.line(f"{target} = {built}")
        return target

    def _read_tags(self, cls: type[Struct], tagged: list[Field], values: dict[str, str]) -> None:
        """The tagged fields at an object's end: known ones replace their defaults, others are skipped."""
        count = self.source.fresh("tags")
        self.source.line(f"{count} = view[at]")
        self.source.line("at += 1")
        if not tagged:
            self.source.line(f"if {count}: at = skip_tags(view, at - 1)")
            return
        with self.source.block(f"if {count}:"):
            self.source.line(f"if {count} > 127: {count}, at = uvarint_from(view, at - 1)")
            self.source.line(f"if {count} > {TAGGED_FIELDS_MAX}: raise refuse('{cls.__name__} tags', {count})")
            with self.source.block(f"for _ in range({count}):"):
                self._read_tag(cls, tagged, values)

    def _read_tag(self, cls: type[Struct], tagged: list[Field], values: dict[str, str]) -> None:
        tag, size, until = (self.source.fresh(stem) for stem in ("tag", "size", "until"))
        self._read_uvarint(tag)
        self._read_uvarint(size)
        self.source.line(f"{until} = at + {size}")
        self.source.line(f"if {until} > end: raise short({until}, end)")
        for field in tagged:
            with self.source.block(f"if {tag} == {field.tag}:"):
                value = self._read_field(cls, field)
                self.flush()
                self.source.line(f"{values[field.name]} = {value}")
                self.source.line(f"if at != {until}: raise refuse('{cls.__name__}.{field.name}', {size})")
        self.source.line(f"at = {until}")


def skip_tags(view: memoryview, at: int) -> int:
    """The position after a section of tagged fields, none of which is known."""
    if at < len(view) and view[at] == 0:
        return at + 1
    count, at = read_uvarint(view, at)
    if count > TAGGED_FIELDS_MAX:
        raise _refuse("tags", count)
    for _ in range(count):
        _, at = read_uvarint(view, at)
        size, at = read_uvarint(view, at)
        at += size
        if at > len(view):
            raise _short(at, len(view))
    return at


def _short(needed: int, have: int) -> Truncated:
    return Truncated(needed=needed, have=have)


def _refuse(label: str, number: int) -> ProtocolViolation:
    return ProtocolViolation(f"{label} may not have a length or count of {number}")

"""Writes the encoder of one class at one version.

The result is one function with the nested classes' loops inside it. Small pieces gather in a list; records are not
copied into it but placed between the pieces.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from moldau.core.limits import STRING_BYTES_MAX
from moldau.core.text import cut
from moldau.wire.schema import Field, Kind, fields_of
from moldau.wire.source import FixedRun, Source
from moldau.wire.unencodable import EncodeError, encode_error
from moldau.wire.varint import ONE_BYTE, write_uvarint

Encoder = Callable[[Any, list[Any]], None]

# Below this, a copy is cheaper than one more buffer in a gathering write.
JOIN_BYTES_MAX = 1024

# To join so many pieces takes about a millisecond, in which no other thread gets to run.
PIECES_MAX = 8_192


def compile_encoder(cls: type[Struct], version: int, *, is_flexible: bool, in_steps: bool = False) -> Encoder:
    """A function (object, parts) that appends the object's bytes to parts, as few buffers, or raises EncodeError.

    `in_steps` joins the pieces of a very large object some at a time, so that a thread that encodes holds up no other.
    """
    source = Source(
        pack=struct.pack,
        ONE_BYTE=ONE_BYTE,
        write_uvarint=write_uvarint,
        place=_place,
        unsupported=_unsupported,
        write_string_size=_write_string_size,
        join=b"".join,
        join_step=_join_step,
        cut=cut,
        encode_error=encode_error,
    )
    writer = _EncoderWriter(source, version, is_flexible, in_steps=in_steps)
    with source.block("def encode(message, parts):"):
        with source.block("try:"):
            source.line("pieces = []")
            source.line("add = pieces.append")
            writer.write_struct(cls, "message")
            writer.flush()
            source.line("if pieces or not parts: parts.append(join(pieces))  # nothing may stand behind records")
        with source.block("except Exception as wrong:"):
            source.line(f"raise encode_error({source.constant('cls', cls)}, {version}, message, wrong) from None")
    return source.compile("encode", f"encoder of {cls.__name__} v{version}")


class _EncoderWriter:
    def __init__(self, source: Source, version: int, is_flexible: bool, *, in_steps: bool) -> None:
        self.source = source
        self.version = version
        self.is_flexible = is_flexible
        self.in_steps = in_steps
        self.run = FixedRun()

    def write_struct(self, cls: type[Struct], value: str) -> None:
        tagged: list[Field] = []
        for field in fields_of(cls):
            if self.version not in field.versions:
                self._check_absent(cls, field, value)
            elif field.tag is not None:
                tagged.append(field)
            else:
                self._write_field(cls, field, f"{value}.{field.name}")
        if self.is_flexible:
            self._write_tags(cls, tagged, value)

    def flush(self) -> None:
        taken = self.run.take()
        if taken is not None:
            packed, names = taken
            self.source.line(f"add({self.source.constant('pack', packed.pack)}({', '.join(names)}))")

    def _check_absent(self, cls: type[Struct], field: Field, value: str) -> None:
        """A version without the field can carry its default only, unless the field may be dropped."""
        if not field.is_ignorable:
            default = self.source.constant("default", field.default())
            self.source.line(
                f"if {value}.{field.name} != {default}: "
                f"raise unsupported('{cls.__name__}', '{field.name}', {self.version}, {value}.{field.name})"
            )

    def _write_field(self, cls: type[Struct], field: Field, value: str) -> None:
        if field.is_fixed:
            self.run.add(str(getattr(field.type, "value", "")), value)
            return
        held = self.source.fresh(field.name)
        self.source.line(f"{held} = {value}")
        if field.is_prose:
            self.source.line(f"if {held}: {held} = cut({held}, {STRING_BYTES_MAX})")
        if field.is_nullable_in(self.version):
            # What was gathered before must be out before the paths part, and after them they must meet empty.
            self.flush()
            with self.source.block(f"if {held} is None:"):
                self._write_null(field)
            with self.source.block("else:"):
                self._write_present(field, held)
                self.flush()
            return
        if field.nullable is not None:
            self.source.line(
                f"if {held} is None: raise unsupported('{cls.__name__}', '{field.name}', {self.version}, None)"
            )
        self._write_present(field, held)

    def _write_null(self, field: Field) -> None:
        if isinstance(field.type, Kind) or field.is_array:
            letter = "h" if field.type is Kind.STRING and not field.is_array else "i"
            null = b"\0" if self.is_flexible else struct.pack(">" + letter, -1)
        else:
            null = b"\xff" if field.tag is None else b"\0"  # a tagged object's mark is an unsigned varint
        self.source.line(f"add({null!r})")

    def _write_present(self, field: Field, held: str) -> None:
        if field.is_array:
            self._write_array(field, held)
        elif isinstance(field.type, Kind):
            self._write_variable(field.type, held)
        else:
            if field.is_nullable_in(self.version):
                self.run.add("b", "1")
            self.write_struct(field.type, held)

    def _write_variable(self, kind: Kind, held: str) -> None:
        if kind is Kind.STRING:
            raw = self.source.fresh("raw")
            self.source.line(f"{raw} = {held}.encode()")
            self._write_length(raw, letter="h")
            self.source.line(f"add({raw})")
            return
        self._write_length(held, letter="i")
        if kind is Kind.RECORDS:
            self.source.line(f"place({held}, pieces, parts)")
        else:
            self.source.line(f"add({held})")

    def _write_length(self, held: str, *, letter: str) -> None:
        if not self.is_flexible:
            self.run.add(letter, f"len({held})")
            self.flush()
            return
        self.flush()
        size = self.source.fresh("size")
        write = "write_string_size" if letter == "h" else "write_uvarint"
        self.source.line(f"{size} = len({held}) + 1")
        self.source.line(f"add(ONE_BYTE[{size}] if {size} < 128 else {write}({size}))")

    def _write_array(self, field: Field, held: str) -> None:
        self._write_length(held, letter="i")
        if isinstance(field.type, Kind) and field.type.is_fixed:
            letter = field.type.value
            letters = f'"{letter}" * len({held})' if len(letter) > 1 else f'f"{{len({held})}}{letter}"'
            self.source.line(f'if {held}: add(pack(">" + {letters}, *{held}))')
            return
        element = self.source.fresh("element")
        with self.source.block(f"for {element} in {held}:"):
            if isinstance(field.type, Kind):
                self._write_variable(field.type, element)
            else:
                self.write_struct(field.type, element)
            self.flush()
            if self.in_steps:
                self.source.line(f"if len(pieces) > {PIECES_MAX}: join_step(pieces, parts)")

    def _write_tags(self, cls: type[Struct], tagged: list[Field], value: str) -> None:
        """Tagged fields are written when they differ from their defaults, in the order of their tags."""
        if not tagged:
            self.run.add("B", "0")
            return
        self.flush()
        tagged.sort(key=lambda field: field.tag or 0)
        helds = {field.name: self.source.fresh(field.name) for field in tagged}
        tests = []
        for field in tagged:
            default = self.source.constant("default", field.default())
            self.source.line(f"{helds[field.name]} = {value}.{field.name}")
            tests.append(f"({helds[field.name]} is not {default} and {helds[field.name]} != {default})")
        count = self.source.fresh("tags")
        self.source.line(f"{count} = {' + '.join(tests)}")
        self.source.line(f"add(ONE_BYTE[{count}])")
        with self.source.block(f"if {count}:"):
            for field, test in zip(tagged, tests, strict=True):
                with self.source.block(f"if {test}:"):
                    self._write_tag(cls, field, helds[field.name])

    def _write_tag(self, cls: type[Struct], field: Field, held: str) -> None:
        """A tag, a size and the value, which is written to pieces of its own because its size comes first."""
        outer = self.source.fresh("outer")
        body = self.source.fresh("body")
        self.source.line(f"{outer} = pieces; pieces = []; add = pieces.append")
        in_steps, self.in_steps = self.in_steps, False  # these pieces belong together: their size comes before them
        self._write_field(cls, field, held)
        self.flush()
        self.in_steps = in_steps
        self.source.line(f"{body} = join(pieces); pieces = {outer}; add = pieces.append")
        self.source.line(f"add(write_uvarint({field.tag}) + write_uvarint(len({body})) + {body})")


def _place(records: Any, pieces: list[Any], parts: list[Any]) -> None:
    """Put records between the pieces before and after them, without a copy unless they are small."""
    size = len(records)
    if not size:
        return
    if size <= JOIN_BYTES_MAX and isinstance(records, bytes | bytearray | memoryview):
        pieces.append(records)
        return
    parts.append(b"".join(pieces))
    parts.append(records)
    pieces.clear()


def _write_string_size(size: int) -> bytes:
    if size > STRING_BYTES_MAX + 1:
        raise ValueError(f"a string of {size - 1} bytes")
    return write_uvarint(size)


def _join_step(pieces: list[Any], parts: list[Any]) -> None:
    parts.append(b"".join(pieces))
    pieces.clear()


def _unsupported(cls: str, field: str, version: int, value: object) -> EncodeError:
    return EncodeError(f"{cls} version {version} cannot carry {field} = {value!r}")

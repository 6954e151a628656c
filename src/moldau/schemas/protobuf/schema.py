"""A Protobuf schema: one compiled file with what it imports, in a descriptor pool of its own.

Two subjects may have messages of the same name, so nothing is ever put into the process's default pool.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from moldau.schemas.model import Incompatibility, InvalidSchema, Json, ReferencedText, SchemaType
from moldau.schemas.protobuf import compiler, differences, messages, printing
from moldau.schemas.protobuf.options import quoted

# The name that Confluent's registry gives to the file of a text, which has none.
FILE_NAME = "default"
# Of a text that does no more than import what a descriptor does.
IMPORTING = "importing.proto"
DECLARED = ("message_type", "enum_type", "extension", "service", "dependency")


def parse(text: str, references: Sequence[ReferencedText] = ()) -> ProtobufSchema:
    """The schema of a text in Protobuf's language, or of a FileDescriptorProto in base64. Raises InvalidSchema."""
    text, compiled = compiled_text(text, references)
    file = compiled.file[-1]
    if not any(getattr(file, part) for part in DECLARED):
        raise InvalidSchema("the schema declares nothing: no message, no enum, no import")
    try:
        canonical = printing.print_written(file, text)
    except (ValueError, RecursionError) as wrong:
        raise InvalidSchema(f"the schema cannot be printed: {wrong}") from wrong
    for known in compiled.file:
        known.ClearField("source_code_info")  # larger than all the rest, and needed no more
    schema = ProtobufSchema(canonical, compiled)
    _ = schema.pool  # what could not be read later on is refused now
    return schema


def compiled_text(text: str, references: Sequence[ReferencedText]) -> tuple[str, FileDescriptorSet]:
    """The text that was compiled, and its file after all that it imports. Raises InvalidSchema."""
    texts: dict[str, str] = {}
    for reference in references:
        texts[reference.name] = _as_text(reference.text, texts)
    name = FILE_NAME
    while name in texts:
        name += "_"
    text = _as_text(text, texts)
    return text, compiler.compile_files(name, {name: text, **texts})


def _as_text(text: str, references: Mapping[str, str]) -> str:
    """Clients in Python register descriptors: printed, the compiler judges them as it does any text."""
    try:
        serialized = base64.b64decode(text, validate=True)
        file = FileDescriptorProto.FromString(serialized)
    except (ValueError, DecodeError):
        return text
    if not file.ListFields():
        return text
    try:
        return printing.print_descriptor(file, _pool_of(file, references))
    except (TypeError, AttributeError) as wrong:  # proto2 gives strings that are no UTF-8 as bytes
        raise InvalidSchema("the FileDescriptorProto cannot be printed: it has names that are no UTF-8") from wrong
    except (ValueError, LookupError, RecursionError, DecodeError) as wrong:
        raise InvalidSchema(f"the FileDescriptorProto cannot be printed: {wrong}") from wrong


def _pool_of(file: FileDescriptorProto, references: Mapping[str, str]) -> Any:
    """What a descriptor needs to know for its options: the extensions in the files that it imports, and its own."""
    pool = DescriptorPool()
    if not file.dependency:
        return pool
    importing = "".join(f"import {quoted(name.encode())};\n" for name in file.dependency)
    files = compiler.compile_files(IMPORTING, {IMPORTING: importing, **references})
    for known in (*files.file[:-1], file):
        _add(pool, known)
    return pool


def _add(pool: Any, file: FileDescriptorProto) -> None:
    try:
        pool.AddSerializedFile(file.SerializeToString())
    except (TypeError, ValueError) as wrong:
        raise InvalidSchema(f"{file.name}: {wrong}") from wrong


@dataclass(frozen=True, eq=False)
class ProtobufSchema:
    """Its text and, after all that it imports, its file."""

    canonical: str
    files: FileDescriptorSet = field(repr=False)

    @property
    def type(self) -> SchemaType:
        return SchemaType.PROTOBUF

    @property
    def file(self) -> FileDescriptorProto:
        return self.files.file[-1]

    @property
    def record_name(self) -> str | None:
        """The first message, as Confluent's serializers have it; of a file without any, the first enum."""
        for declared in (self.file.message_type, self.file.enum_type):
            if declared:
                return ".".join(filter(None, (self.file.package, declared[0].name)))
        return None

    @property
    def fields(self) -> Collection[str]:
        fields = [each for message in self.file.message_type for each in message.field]
        return {each.name for each in fields if each.proto3_optional or not each.HasField("oneof_index")}

    @cached_property
    def normalized(self) -> str:
        return printing.print_normalized(self.file, self.pool)

    def formatted(self, form: str) -> str:
        if form != "serialized":
            return self.canonical
        file = FileDescriptorProto()
        file.CopyFrom(self.file)
        file.name = FILE_NAME
        return base64.b64encode(file.SerializeToString()).decode()

    def incompatibilities(self, writer: Self) -> Sequence[Incompatibility]:
        return differences.incompatibilities(writer.files, self.files)

    def decode(self, payload: bytes, message: Sequence[int] = ()) -> Json:
        return messages.decode(self.pool, self.message_class(message), payload)

    def encode(self, value: Json, message: Sequence[int] = ()) -> bytes:
        return messages.encode(self.pool, self.message_class(message), value)

    def message_class(self, message: Sequence[int] = ()) -> Any:
        """The class of the message that message indexes lead to; the first one without any. Raises InvalidValue."""
        name = messages.name_at(self.file, message)
        if name not in self._classes:
            self._classes[name] = messages.message_class(self.pool, name)
        return self._classes[name]

    def message_indexes(self, name: str) -> tuple[int, ...]:
        """The way to a message by its name, full or without the package. Raises InvalidValue."""
        return messages.indexes_of(self.file, name)

    @cached_property
    def _classes(self) -> dict[str, Any]:
        return {}

    @cached_property
    def pool(self) -> Any:
        pool = DescriptorPool()
        for file in self.files.file:
            _add(pool, file)
        return pool

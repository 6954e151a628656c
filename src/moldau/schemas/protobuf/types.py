"""The types of a compiled schema by their full names, and the fields of a message as compatibility looks at them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet

Number = FieldDescriptorProto
GENERAL, SIGNED, STRING_OR_BYTES = "GENERAL_NUMBER", "SIGNED_NUMBER", "STRING_OR_BYTES"
# Scalars of one kind read each other's bytes.
SCALAR_KINDS = {
    Number.TYPE_INT32: GENERAL,
    Number.TYPE_INT64: GENERAL,
    Number.TYPE_UINT32: GENERAL,
    Number.TYPE_UINT64: GENERAL,
    Number.TYPE_BOOL: GENERAL,
    Number.TYPE_ENUM: GENERAL,
    Number.TYPE_SINT32: SIGNED,
    Number.TYPE_SINT64: SIGNED,
    Number.TYPE_STRING: STRING_OR_BYTES,
    Number.TYPE_BYTES: STRING_OR_BYTES,
    Number.TYPE_FIXED32: "FIXED32",
    Number.TYPE_SFIXED32: "FIXED32",
    Number.TYPE_FIXED64: "FIXED64",
    Number.TYPE_SFIXED64: "FIXED64",
    Number.TYPE_FLOAT: "FLOAT",
    Number.TYPE_DOUBLE: "DOUBLE",
}


class Shape(Enum):
    SCALAR = "scalar"
    MAP = "map"
    MESSAGE = "message"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Declared:
    """A message, the package of its file, and whether that file is the schema's own."""

    message: DescriptorProto
    name: str
    package: str
    own: bool

    @property
    def local_name(self) -> str:
        return self.name.removeprefix(f"{self.package}.") if self.package else self.name


class Types:
    """All messages of a compiled schema and of what it imports."""

    def __init__(self, files: FileDescriptorSet) -> None:
        self.file = files.file[-1]
        self.messages: dict[str, Declared] = {}
        for file in files.file:
            prefix = f".{file.package}" if file.package else ""
            waiting = [(prefix, message) for message in file.message_type]
            while waiting:
                scope, message = waiting.pop()
                name = f"{scope}.{message.name}"
                self.messages[name] = Declared(message, name[1:], file.package, file.name == self.file.name)
                waiting += [(name, nested) for nested in message.nested_type]

    def shape(self, field: Any) -> Shape:
        if field.type == Number.TYPE_GROUP:
            return Shape.GROUP
        if field.type != Number.TYPE_MESSAGE:
            return Shape.SCALAR
        return Shape.MAP if self.messages[field.type_name].message.options.map_entry else Shape.MESSAGE

    def label(self, field: Any) -> str | None:
        """As a text says it: a field without a label is not compared with one that has any."""
        if field.label == Number.LABEL_REPEATED:
            return None if self.shape(field) is Shape.MAP else "repeated"
        if field.label == Number.LABEL_REQUIRED:
            return "required"
        unlabelled = self.file.syntax in ("proto3", "editions") or field.HasField("oneof_index")
        return "optional" if field.proto3_optional or not unlabelled else None


def type_name(field: Any) -> str:
    return field.type_name.removeprefix(".") or str(Number.Type.Name(field.type)).removeprefix("TYPE_").lower()


def oneof_of(message: DescriptorProto, field: Any) -> str | None:
    """The oneof that a field is in; those that the compiler makes for proto3's optional fields are none."""
    if field.proto3_optional or not field.HasField("oneof_index"):
        return None
    return str(message.oneof_decl[field.oneof_index].name)

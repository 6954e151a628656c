"""Kinds of changes between two schemas, by Confluent's names, and which of them a reader cannot live with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

LABEL_REQUIRED = FieldDescriptorProto.LABEL_REQUIRED
LABEL_REPEATED = FieldDescriptorProto.LABEL_REPEATED


class Kind(StrEnum):
    PACKAGE_CHANGED = "PACKAGE_CHANGED"
    MESSAGE_ADDED = "MESSAGE_ADDED"
    MESSAGE_REMOVED = "MESSAGE_REMOVED"
    MESSAGE_MOVED = "MESSAGE_MOVED"
    ENUM_ADDED = "ENUM_ADDED"
    ENUM_REMOVED = "ENUM_REMOVED"
    ENUM_CONST_ADDED = "ENUM_CONST_ADDED"
    ENUM_CONST_CHANGED = "ENUM_CONST_CHANGED"
    ENUM_CONST_REMOVED = "ENUM_CONST_REMOVED"
    FIELD_ADDED = "FIELD_ADDED"
    FIELD_REMOVED = "FIELD_REMOVED"
    FIELD_NAME_CHANGED = "FIELD_NAME_CHANGED"
    FIELD_KIND_CHANGED = "FIELD_KIND_CHANGED"
    FIELD_SCALAR_KIND_CHANGED = "FIELD_SCALAR_KIND_CHANGED"
    FIELD_NAMED_TYPE_CHANGED = "FIELD_NAMED_TYPE_CHANGED"
    FIELD_NUMERIC_LABEL_CHANGED = "FIELD_NUMERIC_LABEL_CHANGED"
    FIELD_STRING_OR_BYTES_LABEL_CHANGED = "FIELD_STRING_OR_BYTES_LABEL_CHANGED"
    REQUIRED_FIELD_ADDED = "REQUIRED_FIELD_ADDED"
    REQUIRED_FIELD_REMOVED = "REQUIRED_FIELD_REMOVED"
    ONEOF_ADDED = "ONEOF_ADDED"
    ONEOF_REMOVED = "ONEOF_REMOVED"
    ONEOF_FIELD_ADDED = "ONEOF_FIELD_ADDED"
    ONEOF_FIELD_REMOVED = "ONEOF_FIELD_REMOVED"
    ONEOF_FIELD_MOVED_TO_TOP_LEVEL = "ONEOF_FIELD_MOVED_TO_TOP_LEVEL"
    MULTIPLE_FIELDS_MOVED_TO_ONEOF = "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
    FIELD_MOVED_TO_EXISTING_ONEOF = "FIELD_MOVED_TO_EXISTING_ONEOF"


# What a reader cannot live with, and how it is told; every other kind is compatible. `{before}` is the writer's.
INCOMPATIBLE = {
    Kind.PACKAGE_CHANGED: "The package of the {reader} schema is {after}, that of the {writer} schema {before}",
    Kind.MESSAGE_REMOVED: "The message at path '{path}' of the {writer} schema is missing in the {reader} schema",
    Kind.FIELD_KIND_CHANGED: "The field at path '{path}' is a {after} in the {reader} schema and a {before} in the "
    "{writer} schema",
    Kind.FIELD_SCALAR_KIND_CHANGED: "The field at path '{path}' is of type {after} in the {reader} schema and of type "
    "{before} in the {writer} schema, which is written differently",
    Kind.FIELD_NAMED_TYPE_CHANGED: "The field at path '{path}' is a message {after} in the {reader} schema, which does "
    "not match {before} in the {writer} schema",
    Kind.FIELD_NUMERIC_LABEL_CHANGED: "The number at path '{path}' is {after} in the {reader} schema and {before} in "
    "the {writer} schema",
    Kind.REQUIRED_FIELD_ADDED: "The required field at path '{path}' of the {reader} schema is missing in the {writer} "
    "schema",
    Kind.REQUIRED_FIELD_REMOVED: "The required field at path '{path}' of the {writer} schema is missing in the "
    "{reader} schema",
    Kind.ONEOF_FIELD_REMOVED: "The field of a oneof at path '{path}' of the {writer} schema is missing in the {reader} "
    "schema",
    Kind.MULTIPLE_FIELDS_MOVED_TO_ONEOF: "Several fields in the oneof at path '{path}' of the {reader} schema are "
    "independent of each other in the {writer} schema",
    Kind.FIELD_MOVED_TO_EXISTING_ONEOF: "A field in the oneof at path '{path}' of the {reader} schema is independent "
    "of the others in the {writer} schema",
}


@dataclass(frozen=True, slots=True)
class Difference:
    kind: Kind
    path: str
    before: str = ""
    after: str = ""

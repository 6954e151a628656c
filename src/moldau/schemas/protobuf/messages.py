"""Payloads of Protobuf and their JSON form, by a schema's own pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError, EncodeError

from moldau.schemas.model import InvalidValue, Json

FIRST = (0,)
# As deep as Protobuf's own decoders go.
DEPTH_MAX = 100
# Messages of this package may have a JSON form that is no object.
WELL_KNOWN = "google.protobuf."
# What the JSON form's reader raises for JSON that it did not expect: its own errors are the first.
ODD_VALUES = (json_format.Error, EncodeError, ValueError, TypeError, AttributeError, KeyError, RecursionError)


def message_class(pool: Any, name: str) -> Any:
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def decode(pool: Any, message: Any, payload: bytes) -> Json:
    """The JSON form, with fields that have no presence even where they are at their defaults. Raises InvalidValue."""
    name = message.DESCRIPTOR.full_name
    try:
        decoded = message.FromString(bytes(payload))
    except (DecodeError, ValueError, RecursionError) as wrong:
        raise InvalidValue(f"the payload is no {name}: {wrong}") from wrong
    try:
        return cast(
            Json, json_format.MessageToDict(decoded, always_print_fields_with_no_presence=True, descriptor_pool=pool)
        )
    except ODD_VALUES as wrong:
        raise InvalidValue(f"a {name} that has no JSON form: {wrong}") from wrong


def encode(pool: Any, message: Any, value: Json) -> bytes:
    """The payload of a JSON form; fields may have their own names or JSON's. Raises InvalidValue."""
    name = message.DESCRIPTOR.full_name
    filled = message()
    if not isinstance(value, dict) and not name.startswith(WELL_KNOWN):
        raise InvalidValue(f"the value is no {name}: expected an object, found {str(value)[:100]!r}")
    try:
        json_format.ParseDict(value, filled, descriptor_pool=pool, max_recursion_depth=DEPTH_MAX)
        return bytes(filled.SerializeToString(deterministic=True))
    except ODD_VALUES as wrong:
        raise InvalidValue(f"the value is no {name}: {' '.join(str(wrong).split())}") from wrong


def name_at(file: FileDescriptorProto, message: Sequence[int]) -> str:
    """The full name of the message that message indexes lead to. Raises InvalidValue.

    Java's clients count the messages that a text declares, all others those of the descriptor, where a map's entry is a
    message, too. An index that leads to an entry can only be one of Java's.
    """
    way = tuple(message) or FIRST
    for declared_only in (False, True):
        found = _walk(file, way, declared_only)
        if found is not None:
            return ".".join(filter(None, (file.package, *(step.name for step in found))))
    raise InvalidValue(f"the schema has no message at the indexes {list(way)}")


def _walk(file: FileDescriptorProto, way: tuple[int, ...], declared_only: bool) -> list[DescriptorProto] | None:
    steps: list[DescriptorProto] = []
    choices: Sequence[DescriptorProto] = file.message_type
    for index in way:
        if declared_only:
            choices = [choice for choice in choices if not choice.options.map_entry]
        if not 0 <= index < len(choices) or choices[index].options.map_entry:
            return None
        steps.append(choices[index])
        choices = choices[index].nested_type
    return steps


def indexes_of(file: FileDescriptorProto, name: str) -> tuple[int, ...]:
    """Message indexes of a message by its name, full or within the package. Raises InvalidValue."""
    wanted = name.removeprefix(".")
    local = wanted.removeprefix(f"{file.package}.") if file.package else wanted
    for found, indexes in _named(file.message_type, "", ()):
        if found in (wanted, local):
            return indexes
    known = ", ".join(found for found, _ in _named(file.message_type, "", ()))
    raise InvalidValue(f"the schema has no message {name!r}; it has: {known or 'none'}")


def _named(
    declared: Sequence[DescriptorProto], prefix: str, before: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    for index, message in enumerate(declared):
        if not message.options.map_entry:
            yield prefix + message.name, (*before, index)
            yield from _named(message.nested_type, f"{prefix}{message.name}.", (*before, index))

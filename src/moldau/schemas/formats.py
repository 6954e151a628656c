"""The formats of schemas by their type, each imported when the first schema of it comes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from moldau.schemas.model import InvalidSchema, ParsedSchema, ReferencedText, SchemaType

PACKAGES = {
    SchemaType.AVRO: "moldau.schemas.avro",
    SchemaType.JSON: "moldau.schemas.json_schema",
    SchemaType.PROTOBUF: "moldau.schemas.protobuf",
}


def parse(type: SchemaType, text: str, references: Sequence[ReferencedText] = ()) -> ParsedSchema:
    """The schema that a text is; references stand before those that need them. Raises InvalidSchema."""
    try:
        package = import_module(PACKAGES[type])
    except ModuleNotFoundError as missing:
        raise InvalidSchema(
            f"{type} schemas need the module {missing.name}; install it with: pip install 'moldau[registry]'"
        ) from missing
    parsed: ParsedSchema = package.parse(text, references)
    return parsed

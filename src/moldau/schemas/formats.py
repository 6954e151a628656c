"""The formats of schemas by their type, each imported when the first schema of it comes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from moldau.schemas.model import InvalidSchema, ParsedSchema, ReferencedText, SchemaType
from moldau.schemas.tagging import Tagging

PACKAGES = {
    SchemaType.AVRO: "moldau.schemas.avro",
    SchemaType.JSON: "moldau.schemas.json_schema",
    SchemaType.PROTOBUF: "moldau.schemas.protobuf",
}


def parse(type: SchemaType, text: str, references: Sequence[ReferencedText] = ()) -> ParsedSchema:
    """The schema that a text is; references stand before those that need them. Raises InvalidSchema."""
    parsed: ParsedSchema = _package(type).parse(text, references)
    return parsed


def tagged(type: SchemaType, text: str, references: Sequence[ReferencedText], taggings: Sequence[Tagging]) -> str:
    """The text with other tags. Raises InvalidSchema for a path that leads nowhere."""
    changed: str = _package(type).tagged(text, references, taggings)
    return changed


def _package(type: SchemaType) -> Any:
    try:
        return import_module(PACKAGES[type])
    except ModuleNotFoundError as missing:
        raise InvalidSchema(
            f"{type} schemas need the module {missing.name}; install it with: pip install 'moldau[registry]'"
        ) from missing

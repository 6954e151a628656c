"""JSON Schema of drafts 4 to 2020-12: texts, the compatibility of Confluent's registry, and values."""

from moldau.schemas.json_schema.schema import JsonSchema, parse

__all__ = ["JsonSchema", "parse"]

"""JSON Schema of drafts 4 to 2020-12: texts, the compatibility of Confluent's registry, and values."""

from moldau.schemas.json_schema.schema import JsonSchema, parse
from moldau.schemas.json_schema.tagging import tagged

__all__ = ["JsonSchema", "parse", "tagged"]

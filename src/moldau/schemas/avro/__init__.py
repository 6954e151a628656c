"""Avro schemas: parsed and printed as Java does, compared by its rules, and their values in binary and JSON."""

from moldau.schemas.avro.schema import AvroSchema, parse

__all__ = ["AvroSchema", "parse"]

"""Avro schemas: parsed and printed as Java does, compared by its rules, and their values in binary and JSON."""

from moldau.schemas.avro.schema import AvroSchema, parse
from moldau.schemas.avro.tagging import tagged

__all__ = ["AvroSchema", "parse", "tagged"]

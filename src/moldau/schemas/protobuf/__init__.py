"""Schemas in Protobuf: protoc compiles them, each lives in a descriptor pool of its own."""

from moldau.schemas.protobuf.schema import ProtobufSchema, parse
from moldau.schemas.protobuf.tagging import tagged

__all__ = ["ProtobufSchema", "parse", "tagged"]

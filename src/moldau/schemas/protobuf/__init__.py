"""Schemas in Protobuf: protoc compiles them, each lives in a descriptor pool of its own."""

from moldau.schemas.protobuf.schema import ProtobufSchema, parse

__all__ = ["ProtobufSchema", "parse"]

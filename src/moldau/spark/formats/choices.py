"""Formats by name, plain or with a registry that knows their schemas.

What a format needs is imported when it is chosen: every query starts Python processes, and waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import pyarrow as pa

from moldau.spark.formats.interface import Decoder, Encoder, FormatError, Side, SideOptions
from moldau.spark.formats.plain import BinaryDecoder, BinaryEncoder, StringDecoder, StringEncoder
from moldau.spark.registry_names import URL, WRITTEN_PREFIX, uses_registry

DEFAULT_FORMAT = "binary"

XML_HINT = (
    "; XML is read and written as string, with Spark's from_xml and to_xml, and so is valueFormat=xml in pipelines"
)

Made = TypeVar("Made")


def decoder_of(format_name: str, options: Mapping[str, str], *, side: Side) -> Decoder:
    """The decoder that `keyFormat` or `valueFormat` names; FormatError says what is wrong with the options."""
    if uses_registry(format_name, options):
        from moldau.spark.formats.registry.decoder import registry_decoder
        from moldau.spark.formats.registry.options import subject_options

        return registry_decoder(subject_options(format_name, SideOptions(side, options)))
    return _chosen(DECODERS, format_name, side=side)(SideOptions(side, options))


def encoder_of(format_name: str, options: Mapping[str, str], *, side: Side) -> Encoder:
    if uses_registry(format_name, options) or SideOptions(side, options).get(WRITTEN_PREFIX) is not None:
        from moldau.spark.formats.registry.encoder import registry_encoder

        return registry_encoder(format_name, SideOptions(side, options))
    return _chosen(ENCODERS, format_name, side=side)(SideOptions(side, options))


def json_decoder(asked: pa.DataType, *, side: Side) -> Decoder:
    """For a type that is known, be it given or inferred."""
    from moldau.spark.formats.json.decoder import JsonDecoder

    return JsonDecoder(asked, side=side)


def wants_inference(format_name: str, options: Mapping[str, str], *, side: Side) -> bool:
    """Whether the schema has to be looked for in the topic; the schema that is found is given as an option then."""
    if format_name.lower() != "json" or uses_registry(format_name, options):
        return False
    return SideOptions(side, options).get("Schema") is None


def _chosen(table: Mapping[str, Callable[[SideOptions], Made]], format_name: str, *, side: Side) -> Callable[..., Made]:
    made = table.get(format_name.strip().lower())
    if made is None:
        if format_name.strip().lower() == "protobuf":
            raise FormatError(f"option {URL} is missing: {side}Format=protobuf is for records of a registry")
        hint = XML_HINT if format_name.strip().lower() == "xml" else ""
        raise FormatError(f"option {side}Format = {format_name!r}: allowed is one of {', '.join(table)}{hint}")
    return made


def _json_decoder(options: SideOptions) -> Decoder:
    from moldau.spark.formats.schema_text import parse_schema_text

    name = options.name_of("Schema")
    text = options.get("Schema")
    if text is None:
        raise FormatError(f"option {name} is missing: {options.name_of('Format')}=json needs a schema here")
    return json_decoder(parse_schema_text(text, place=f"option {name}"), side=options.side)


def _json_encoder(options: SideOptions) -> Encoder:
    from moldau.spark.formats.json.encoder import JsonEncoder

    return JsonEncoder(options.side)


def _avro_decoder(options: SideOptions) -> Decoder:
    from moldau.spark.formats.avro.decoder import AvroDecoder
    from moldau.spark.formats.avro.schema import parse_avro_schema

    name = options.name_of("AvroSchema")
    text = options.get("AvroSchema")
    if text is None:
        raise FormatError(f"option {name} is missing: {options.name_of('Format')}=avro needs the Avro schema, as JSON")
    return AvroDecoder(parse_avro_schema(text, place=f"option {name}"), side=options.side)


def _avro_encoder(options: SideOptions) -> Encoder:
    from moldau.spark.formats.avro.encoder import AvroEncoder
    from moldau.spark.formats.avro.schema import parse_avro_schema

    text = options.get("AvroSchema")
    place = f"option {options.name_of('AvroSchema')}"
    return AvroEncoder(None if text is None else parse_avro_schema(text, place=place), side=options.side)


DECODERS: Mapping[str, Callable[[SideOptions], Decoder]] = {
    "binary": lambda _: BinaryDecoder(),
    "string": lambda options: StringDecoder(options.side),
    "json": _json_decoder,
    "avro": _avro_decoder,
}
ENCODERS: Mapping[str, Callable[[SideOptions], Encoder]] = {
    "binary": lambda options: BinaryEncoder(options.side),
    "string": lambda options: StringEncoder(options.side),
    "json": _json_encoder,
    "avro": _avro_encoder,
}

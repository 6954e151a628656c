"""An Avro schema as the registry, its clients and the tools see it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from moldau.schemas.avro import compatibility
from moldau.schemas.avro.decoding import Decoder
from moldau.schemas.avro.encoding import Encoder
from moldau.schemas.avro.normalizing import normalize
from moldau.schemas.avro.parsing import Parsed, parse_types
from moldau.schemas.avro.printing import print_types
from moldau.schemas.avro.types import Record, known
from moldau.schemas.model import Incompatibility, Json, ReferencedText, SchemaType


@dataclass(frozen=True, slots=True, eq=False)
class AvroSchema:
    """A ParsedSchema. `canonical` is Java's text of it, in which what a reference defines is a name."""

    parsed: Parsed
    canonical: str
    resolved: str
    decoder: Decoder

    @property
    def type(self) -> SchemaType:
        return SchemaType.AVRO

    @property
    def record_name(self) -> str | None:
        root = known(self.parsed.root, self.parsed.names)
        return root.heading.full_name if isinstance(root, Record) else None

    @property
    def fields(self) -> Collection[str]:
        root = known(self.parsed.root, self.parsed.names)
        return [each.name for each in root.fields] if isinstance(root, Record) else []

    @property
    def normalized(self) -> str:
        return normalize(self.parsed.root, self.parsed.names, known=self.parsed.referenced)

    def formatted(self, form: str) -> str:
        """With `resolved` everything that references define stands in the text."""
        return self.resolved if form == "resolved" else self.canonical

    def incompatibilities(self, writer: AvroSchema) -> Sequence[Incompatibility]:
        return compatibility.incompatibilities(
            compatibility.Schema(self.parsed.root, self.parsed.names),
            compatibility.Schema(writer.parsed.root, writer.parsed.names),
        )

    def decode(self, payload: bytes, message: Sequence[int] = ()) -> Json:  # noqa: ARG002  Protobuf has indexes
        return self.decoder.decode(payload)

    def encode(self, value: Json, message: Sequence[int] = ()) -> bytes:  # noqa: ARG002  Protobuf has indexes
        encoder = Encoder(self.parsed.names, bytearray())
        encoder.write(value, self.parsed.root)
        return bytes(encoder.out)


def parse(text: str, references: Sequence[ReferencedText] = ()) -> AvroSchema:
    """Raises InvalidSchema. Both texts are made at once, so that a schema that was parsed can be printed."""
    parsed = parse_types(text, references)
    resolved = print_types(parsed.root, parsed.names)
    canonical = print_types(parsed.root, parsed.names, known=parsed.referenced) if references else resolved
    return AvroSchema(parsed, canonical, resolved, Decoder(parsed.root, parsed.names))

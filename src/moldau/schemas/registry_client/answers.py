"""What a registry stores and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from moldau.schemas.model import Reference, SchemaType
from moldau.schemas.registry_client.errors import RegistryError


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema as it is registered: its text, and the names by which it refers to others."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()

    def body(self) -> dict[str, Any]:
        """Avro is not named: registries from before there was any other type do not know `schemaType`."""
        body: dict[str, Any] = {"schema": self.text}
        if self.type is not SchemaType.AVRO:
            body["schemaType"] = str(self.type)
        if self.references:
            body["references"] = [
                {"name": one.name, "subject": one.subject, "version": one.version} for one in self.references
            ]
        return body


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema that a registry has; what an answer does not say is None."""

    schema: SchemaText
    id: int | None = None
    guid: UUID | None = None
    subject: str | None = None
    version: int | None = None

    @classmethod
    def read(cls, answer: Any, url: str, **known: Any) -> StoredSchema:
        """Of an answer; `known` is what was asked for. Raises RegistryError."""
        try:
            facts = {
                name: answer[name] for name in ("id", "guid", "subject", "version") if answer.get(name) is not None
            }
            facts = {**known, **facts}
            if isinstance(facts.get("guid"), str):
                facts["guid"] = UUID(facts["guid"])
            return cls(_text(answer), **facts)
        except (KeyError, TypeError, ValueError, AttributeError) as wrong:
            raise RegistryError(502, f"an answer that is no schema: {wrong!r}", url) from wrong


def _text(answer: Mapping[str, Any]) -> SchemaText:
    if not isinstance(answer["schema"], str):
        raise TypeError("the schema is no text")
    references = answer.get("references") or ()
    return SchemaText(
        SchemaType(answer.get("schemaType") or SchemaType.AVRO),
        answer["schema"],
        tuple(Reference(str(one["name"]), str(one["subject"]), int(one["version"])) for one in references),
    )


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Whether a schema may become a subject's next version, and why not."""

    compatible: bool
    messages: tuple[str, ...] = ()

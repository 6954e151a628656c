"""Tags inside of a schema's text, which say what its records and fields hold: `PII`, for rules that look for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moldau.schemas.json_text import write_json
from moldau.schemas.model import InvalidSchema, Json

TAGS = "confluent:tags"


@dataclass(frozen=True, slots=True)
class Tagging:
    """Tags to be added to a record or a field, and those to be removed after that. `path` is Confluent's entityPath."""

    path: str
    is_record: bool
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return self.path.rstrip(".").split(".")

    def of(self, tags: Iterable[str]) -> list[str]:
        """What becomes of an entity's tags, each once."""
        return [each for each in dict.fromkeys((*tags, *self.added)) if each not in self.removed]

    def missing(self) -> InvalidSchema:
        return InvalidSchema(f"No matching path '{self.path}' found in the schema")


def tag(node: dict[str, Json], tagging: Tagging) -> None:
    """Change the property of a record or a field in JSON, as Avro and JSON Schema have it. Raises InvalidSchema."""
    tags = node.get(TAGS, [])
    if not isinstance(tags, list):
        raise InvalidSchema(f"{TAGS} of '{tagging.path}' is no array")
    changed = tagging.of(each if isinstance(each, str) else write_json(each) for each in tags)
    if changed:
        node[TAGS] = [*changed]
    else:
        node.pop(TAGS, None)

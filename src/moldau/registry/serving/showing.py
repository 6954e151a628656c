"""Schemas and settings as answers have them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

from starlette.requests import Request

from moldau.registry.identity import guid_of_stored
from moldau.registry.records import AVRO, Settings, StoredSchema
from moldau.web.requests import number

LIMIT_MAX = 1_000  # of schemas in one answer, each of which may be a megabyte
BYTES_MAX = 16 << 20  # of them together
NAMES_MAX = 20_000  # of subjects and versions in one
T = TypeVar("T")


def shown(schema: StoredSchema, *, text: str | None = None, has_id: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {"subject": schema.subject, "version": schema.version}
    if has_id:
        found["id"] = schema.id
    found["guid"] = str(guid_of_stored(schema))
    if schema.type != AVRO:
        found["schemaType"] = schema.type
    if schema.references:
        found["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references
        ]
    if schema.metadata is not None:
        found["metadata"] = schema.metadata
    if schema.rule_set is not None:
        found["ruleSet"] = schema.rule_set
    found["schema"] = schema.text if text is None else text
    if schema.timestamp_ms:
        found["ts"] = schema.timestamp_ms
    return {**found, "deleted": schema.is_deleted}


def shown_change(config: Settings) -> Settings:
    """A configuration as requests to change one name it."""
    return {("compatibility" if name == "compatibilityLevel" else name): each for name, each in config.items()}


def page(request: Request, found: Iterable[T], limit_max: int = NAMES_MAX) -> list[T]:
    """What comes behind it is not looked for."""
    offset, limit = number(request, "offset", default=0), number(request, "limit", default=-1)
    limit = limit if 0 < limit <= limit_max else limit_max
    return list(islice(found, max(0, offset), max(0, offset) + limit))


def page_of_schemas(request: Request, found: Iterable[StoredSchema]) -> list[StoredSchema]:
    """Fewer than were asked for, where they are large; whoever asks goes on behind them."""
    kept: list[StoredSchema] = []
    size = 0
    for each in page(request, found, LIMIT_MAX):
        size += len(each.text)
        if kept and size > BYTES_MAX:
            break
        kept.append(each)
    return kept

"""Tags in an Avro schema: the property `confluent:tags` of records and their fields.

A path is a record's name with or without its namespace, and the name of a field. Without a namespace it is the first
record of that name, the outer ones before those inside. What a reference defines is no part of the text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from moldau.schemas.avro.schema import parse
from moldau.schemas.json_text import read_schema_text, write_json
from moldau.schemas.model import ReferencedText
from moldau.schemas.tagging import Tagging, tag


def tagged(text: str, references: Sequence[ReferencedText], taggings: Sequence[Tagging]) -> str:
    """Raises InvalidSchema for a path that leads nowhere."""
    root = read_schema_text(parse(text, references).canonical)
    records = list(_records(root))
    for each in taggings:
        tag(_found(records, each), each)
    return write_json(root)


def _records(root: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """With their namespaces."""
    waiting = deque([(root, "")])
    while waiting:
        node, namespace = waiting.popleft()
        if isinstance(node, list):
            waiting.extend((each, namespace) for each in node)
        if not isinstance(node, dict):
            continue
        kind = node["type"]
        if kind == "record":
            namespace = node.get("namespace", namespace)
            yield namespace, node
            waiting.extend((each, namespace) for each in node["fields"])
        elif not isinstance(kind, str):
            waiting.append((kind, namespace))
        elif kind in ("array", "map"):
            waiting.append((node["items" if kind == "array" else "values"], namespace))


def _found(records: Sequence[tuple[str, dict[str, Any]]], tagging: Tagging) -> dict[str, Any]:
    names = tagging.names
    field = None if tagging.is_record else names.pop()
    wanted = ".".join(names[:-1])
    for namespace, record in records:
        if not names or record["name"] != names[-1] or wanted not in ("", namespace):
            continue
        if field is None:
            return record
        for each in record["fields"]:
            if each["name"] == field:
                found: dict[str, Any] = each
                return found
    raise tagging.missing()

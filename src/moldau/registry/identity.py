"""By what schemas are the same: Confluent's GUID, an MD5 over text, references, metadata and rules in its own order."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from moldau.registry.records import Settings, StoredSchema
from moldau.schemas.model import Reference

PRESENT = b"\x01"  # tells an empty object from none
RULE_TEXTS = ("name", "doc", "kind", "mode", "type")
RULE_ENDS = ("expr", "onSuccess", "onFailure")


def guid_of(
    text: str, references: Sequence[Reference], metadata: Settings | None, rule_set: Settings | None
) -> uuid.UUID:
    found = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for each in references:
        found.update(each.name.encode() + each.subject.encode() + each.version.to_bytes(4, "big", signed=True))
    if metadata is not None:
        found.update(PRESENT + b"".join(_metadata(metadata)))
    if rule_set is not None:
        found.update(PRESENT + b"".join(_rule_set(rule_set)))
    return uuid.UUID(bytes=found.digest())


def guid_of_stored(schema: StoredSchema) -> uuid.UUID:
    if schema.md5 is not None:
        try:
            return uuid.UUID(bytes=base64.b64decode(schema.md5))
        except ValueError:
            pass
    return guid_of(schema.text, schema.references, schema.metadata, schema.rule_set)


def _metadata(metadata: Settings) -> Iterable[bytes]:
    """Its maps and sets are sorted by their keys, as Java's classes do on reading."""
    for key, values in sorted((metadata.get("tags") or {}).items()):
        yield _text(key)
        yield from map(_text, sorted(set(values)))
    for key, value in sorted((metadata.get("properties") or {}).items()):
        yield _text(key) + _text(value)
    yield from map(_text, sorted(set(metadata.get("sensitive") or ())))


def _rule_set(rule_set: Settings) -> Iterable[bytes]:
    for kind in ("migrationRules", "domainRules", "encodingRules"):
        for rule in rule_set.get(kind) or ():
            yield from _rule(rule)
    if rule_set.get("enableAt") is not None:
        yield _text(rule_set["enableAt"])


def _rule(rule: Settings) -> Iterable[bytes]:
    yield from (_text(rule[name]) for name in RULE_TEXTS if rule.get(name) is not None)
    yield from map(_text, sorted(set(rule.get("tags") or ())))
    for key, value in sorted((rule.get("params") or {}).items()):
        yield _text(key) + _text(value)
    yield from (_text(rule[name]) for name in RULE_ENDS if rule.get(name) is not None)
    if rule.get("disabled"):
        yield PRESENT


def _text(value: Any) -> bytes:
    return str(value).encode("utf-8", "surrogatepass")

"""All that is in `_schemas`, as one value in memory: `apply` is the only way to change it, records the only reason."""

from __future__ import annotations

import logging
from bisect import insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from moldau.registry import records
from moldau.registry.identity import guid_of_stored
from moldau.registry.names import GLOBAL_SETTINGS, context_key, context_of, in_context, is_below
from moldau.registry.records import Entry, SchemaKey, Settings, StoredSchema
from moldau.schemas.model import Reference
from moldau.schemas.subjects import DEFAULT_CONTEXT

T = TypeVar("T")

LOGGER = logging.getLogger(__name__)
LEVEL_KEY = "compatibilityLevel"
IMPORTING = ("IMPORT", "FORWARD")
READ_ONLY = ("READONLY", "READONLY_OVERRIDE")


class State:
    def __init__(self, *, default_level: str = "BACKWARD", default_mode: str = "READWRITE") -> None:
        self.default_level = default_level
        self.default_mode = default_mode
        self.subjects: dict[str, dict[int, StoredSchema]] = {}
        self.names: list[str] = []
        """Of the subjects, sorted."""
        self.configs: dict[str | None, Settings] = {}
        self.modes: dict[str | None, str] = {}
        self.contexts: set[str] = {DEFAULT_CONTEXT}
        self.max_ids: defaultdict[str, int] = defaultdict(int)
        self._places: dict[tuple[str, int], dict[SchemaKey, None]] = {}
        self._ids: dict[tuple[str, UUID], int] = {}
        self._guids: dict[UUID, dict[str, int]] = {}
        self._referrers: defaultdict[SchemaKey, dict[SchemaKey, None]] = defaultdict(dict)

    def apply(self, entry: Entry) -> None:
        key, value = entry.key, entry.value
        if isinstance(key, SchemaKey):
            self._apply_schema(key, value)
        elif isinstance(key, records.ConfigKey):
            _set(self.configs, key.subject, None if value is None else _fields(value))
        elif isinstance(key, records.ModeKey):
            _set(self.modes, key.subject, None if value is None else _fields(value).get("mode"))
        elif isinstance(key, records.ContextKey):
            self._apply_context(key.context, is_there=value is not None)
        elif value is not None and isinstance(key, records.DeleteSubjectKey):
            self._delete_up_to(key.subject, int(_fields(value).get("version", 0)))
        elif value is not None and isinstance(key, records.ClearSubjectKey):
            self._clear(key.subject)

    def _apply_context(self, context: str, *, is_there: bool) -> None:
        if is_there:
            self.contexts.add(context)
        elif context != DEFAULT_CONTEXT:
            self.contexts.discard(context)

    def _clear(self, scope: str) -> None:
        for name in [each for each in self.names if is_below(each, scope)]:
            for version in [*self.subjects[name]]:
                self._remove(SchemaKey(name, version))

    def _apply_schema(self, key: SchemaKey, value: records.Value) -> None:
        if value is None:
            self._remove(key)
            return
        assert isinstance(value, StoredSchema), "the key says so"
        context = context_of(key.subject)
        other = self.by_id(context, value.id)
        if other is not None and other.text != value.text and other.key != key:
            LOGGER.error("%s version %d has id %d of another schema: passed over", key.subject, key.version, value.id)
            return
        # Whatever is wrong with a record is found before anything is changed by it.
        guid = guid_of_stored(value)
        targets = [self.target(key.subject, each) for each in value.references]
        self._remove(key)
        if key.subject not in self.subjects:
            self.subjects[key.subject] = {}
            insort(self.names, key.subject)
        versions = self.subjects[key.subject]
        versions[key.version] = value
        if next(reversed(versions)) != max(versions):
            self.subjects[key.subject] = dict(sorted(versions.items()))
        self._places.setdefault((context, value.id), {})[key] = None
        self._ids[context, guid] = value.id
        self._guids.setdefault(guid, {})[context] = value.id
        self.max_ids[context] = max(self.max_ids[context], value.id)
        for each in targets:
            self._referrers[each][key] = None

    def _remove(self, key: SchemaKey) -> None:
        old = self.subjects.get(key.subject, {}).pop(key.version, None)
        if old is None:
            return
        if not self.subjects[key.subject]:
            del self.subjects[key.subject]
            self.names.remove(key.subject)
        context = context_of(key.subject)
        places = self._places[context, old.id]
        del places[key]
        if not places:
            del self._places[context, old.id]
            guid = guid_of_stored(old)
            self._ids.pop((context, guid), None)
            self._guids.get(guid, {}).pop(context, None)
            if not self._guids.get(guid):
                self._guids.pop(guid, None)
        for each in old.references:
            self._referrers[self.target(key.subject, each)].pop(key, None)

    def _delete_up_to(self, subject: str, version: int) -> None:
        versions = self.subjects.get(subject, {})
        for each in versions.values():
            if each.version <= version and not each.is_deleted:
                versions[each.version] = replace(each, is_deleted=True)

    # What is asked.

    def target(self, subject: str, reference: Reference) -> SchemaKey:
        """Where a schema of this subject refers to."""
        return SchemaKey(in_context(context_of(subject), reference.subject), reference.version)

    def get(self, subject: str, version: int, *, deleted: bool = False) -> StoredSchema | None:
        """-1 is the latest."""
        versions = self.subjects.get(subject, {})
        if version > 0:
            found = versions.get(version)
            return found if found is not None and (deleted or not found.is_deleted) else None
        return next((each for each in reversed(versions.values()) if deleted or not each.is_deleted), None)

    def versions(self, subject: str, *, deleted: bool = False) -> list[StoredSchema]:
        """From the first to the latest."""
        return [each for each in self.subjects.get(subject, {}).values() if deleted or not each.is_deleted]

    def has(self, subject: str, *, deleted: bool = False) -> bool:
        return any(deleted or not each.is_deleted for each in self.subjects.get(subject, {}).values())

    def by_id(self, context: str, schema_id: int) -> StoredSchema | None:
        return next(self.places(context, schema_id), None)

    def places(self, context: str, schema_id: int) -> Iterator[StoredSchema]:
        for key in self._places.get((context, schema_id), {}):
            yield self.subjects[key.subject][key.version]

    def id_of(self, context: str, guid: UUID) -> int | None:
        return self._ids.get((context, guid))

    def ids_of(self, guid: UUID) -> dict[str, int]:
        """By contexts."""
        return dict(self._guids.get(guid, {}))

    def referrers(self, key: SchemaKey, *, deleted: bool = False) -> list[StoredSchema]:
        found = (self.subjects[each.subject][each.version] for each in self._referrers.get(key, {}))
        return [each for each in found if deleted or not each.is_deleted]

    def config(self, subject: str | None) -> Settings:
        """What counts for a subject or a context: its own, over that of its context or of all."""
        own = self.configs.get(subject) if subject is not None else None
        return {LEVEL_KEY: self.default_level, **self._above(self.configs, subject), **(own or {})}

    def _above(self, settings: dict[str | None, Settings], subject: str | None) -> Settings:
        key = None if subject is None else context_key(context_of(subject)) or None
        found = settings.get(key)
        return found if found is not None else settings.get(GLOBAL_SETTINGS, {})

    def mode(self, subject: str | None) -> str:
        if "READONLY_OVERRIDE" in (self.modes.get(None), self.modes.get(GLOBAL_SETTINGS)):
            return "READONLY_OVERRIDE"
        context = None if subject is None else context_key(context_of(subject)) or None
        for key in (subject, context, GLOBAL_SETTINGS):
            if key in self.modes:
                return self.modes[key]
        return self.default_mode


def _set(settings: dict[str | None, T], key: str | None, value: T | None) -> None:
    if value is None:
        settings.pop(key, None)
    else:
        settings[key] = value


def _fields(value: Settings | StoredSchema) -> Settings:
    """Of settings, without what says whose they are, and what they leave open."""
    assert not isinstance(value, StoredSchema), "the key says so"
    return {name: each for name, each in value.items() if each is not None and name not in {"subject", "offset", "ts"}}

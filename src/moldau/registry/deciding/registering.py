"""What a registration becomes: an id that there is, or the next one; a version behind all others of its subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moldau.registry import refusals
from moldau.registry.bodies import SchemaBody, TagsBody
from moldau.registry.deciding.decision import Decision
from moldau.registry.deciding.settings import check_writable
from moldau.registry.identity import guid_of
from moldau.registry.names import INT_MAX, context_key, context_of
from moldau.registry.records import ContextKey, Entry, SchemaKey, Settings, StoredSchema
from moldau.registry.state import IMPORTING, State
from moldau.schemas.model import Reference, SchemaType
from moldau.schemas.subjects import DEFAULT_CONTEXT

VERSION_PROPERTY = "confluent:version"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schema in the form in which it would be stored."""

    subject: str
    text: str
    type: SchemaType
    references: tuple[Reference, ...] = ()
    metadata: Settings | None = None
    rule_set: Settings | None = None
    version: int = 0
    id: int = -1

    def is_same(self, stored: StoredSchema) -> bool:
        """With an id, only what has that id."""
        return (
            (self.id < 0 or self.id == stored.id)
            and self.text == stored.text
            and self.references == stored.references
            and self.rule_set == stored.rule_set
            and _comparable(self.metadata) == _comparable(stored.metadata)
        )


def _comparable(metadata: Settings | None) -> Settings | None:
    """Without the version, which only says which one is meant."""
    if metadata is None:
        return None
    properties = {name: each for name, each in (metadata.get("properties") or {}).items() if name != VERSION_PROPERTY}
    found = {**metadata, "properties": properties}
    return {name: each for name, each in found.items() if each} or None


def check_mode(state: State, subject: str, body: SchemaBody) -> None:
    """Raises 42205."""
    check_writable(state, subject)
    mode, context = state.mode(subject), context_key(context_of(subject))
    if body.id >= 0 and mode not in IMPORTING:
        raise refusals.not_permitted(f"Subject {subject} in context {context} is not in import mode")
    if body.id < 0 and mode != "READWRITE":
        raise refusals.not_permitted(f"Subject {subject} in context {context} is not in read-write mode")


def completed(state: State, subject: str, body: SchemaBody) -> SchemaBody:
    """With what the configuration adds, and what the version before had where the request says nothing."""
    if state.mode(subject) in IMPORTING:
        return body
    config, previous = state.config(subject), state.get(subject, -1)
    text, kind, references = body.text, body.type, body.references
    if not text.strip() and previous is not None:
        text, kind, references = previous.text, SchemaType(previous.type), previous.references
    own_metadata = body.metadata if body.metadata is not None or previous is None else previous.metadata
    own_rules = body.rule_set if body.rule_set is not None or previous is None else previous.rule_set
    metadata = merged(merged(config.get("defaultMetadata"), own_metadata), config.get("overrideMetadata"))
    rules = merged_rules(merged_rules(config.get("defaultRuleSet"), own_rules), config.get("overrideRuleSet"))
    has_version = VERSION_PROPERTY in ((metadata or {}).get("properties") or {})
    if body.version != 0 or has_version:
        number = {VERSION_PROPERTY: str(next_version(state, subject))}
        metadata = merged(metadata, {"properties": number})
    return SchemaBody(text, kind, references, metadata, rules, body.version, body.id)


def merged(below: Settings | None, above: Settings | None) -> Settings | None:
    if below is None or above is None:
        return above if below is None else below
    found: dict[str, object] = {}
    for name in ("tags", "properties"):
        both = {**(below.get(name) or {}), **(above.get(name) or {})}
        if both:
            found[name] = dict(sorted(both.items()))
    sensitive = {*(below.get("sensitive") or ()), *(above.get("sensitive") or ())}
    return {**found, "sensitive": sorted(sensitive)} if sensitive else found


def merged_rules(below: Settings | None, above: Settings | None) -> Settings | None:
    """Rules of the same name are replaced, and stand behind those that stay."""
    if below is None or above is None:
        return above if below is None else below
    found: dict[str, object] = {}
    for kind in ("migrationRules", "domainRules", "encodingRules"):
        new = above.get(kind) or []
        names = {each["name"] for each in new}
        both = [*(each for each in below.get(kind) or () if each["name"] not in names), *new]
        if both:
            found[kind] = both
    enabled = above.get("enableAt") or below.get("enableAt")
    return {**found, "enableAt": enabled} if enabled else found


def changed_rules(state: State, subject: str, body: TagsBody) -> Settings | None:
    """Those that are given, or those of the version before with what is to be merged and removed."""
    if body.merged is None and body.removed is None:
        return body.rule_set
    previous = state.get(subject, body.version - 1 if body.version > 0 else -1)
    rules = merged_rules(None if previous is None else previous.rule_set, body.merged)
    if rules is None or body.removed is None:
        return rules
    return {
        kind: [each for each in found if each["name"] not in body.removed] if isinstance(found, list) else found
        for kind, found in rules.items()
    }


def next_version(state: State, subject: str) -> int:
    versions = state.versions(subject, deleted=True)
    return versions[-1].version + 1 if versions else 1


def registered(state: State, candidate: Candidate, *, deleted: bool = False) -> StoredSchema | None:
    """The version of the subject that the candidate is already, the latest of several."""
    if candidate.version > 0:
        found = state.get(candidate.subject, candidate.version, deleted=deleted)
        return found if found is not None and candidate.is_same(found) else None
    return next((each for each in reversed(state.versions(candidate.subject, deleted=deleted))
                 if candidate.is_same(each)), None)  # fmt: skip


def decide_registration(state: State, candidate: Candidate, problems: Sequence[str]) -> Decision[StoredSchema]:
    """`problems` are those of its compatibility, which was checked on this same state."""
    found = registered(state, candidate)
    if found is not None and (candidate.version <= 0 or candidate.version == found.version):
        return Decision((), found)
    if problems:
        raise refusals.incompatible(candidate.subject, f"[{', '.join(problems)}]")
    subject, context = candidate.subject, context_of(candidate.subject)
    version = _version(state, candidate)
    schema_id = _id(state, candidate)
    stored = StoredSchema(
        subject,
        version,
        schema_id,
        candidate.text,
        candidate.type.value,
        candidate.references,
        candidate.metadata,
        candidate.rule_set,
    )
    entries: list[Entry] = []
    if context != DEFAULT_CONTEXT and context not in state.contexts:
        entries.append(Entry(ContextKey(context), {"tenant": "default", "context": context}))
    for each in state.versions(subject, deleted=True):
        # A soft-deleted version of the same id is the same schema: it comes back under its new number.
        is_replaced = each.is_deleted and each.id == schema_id and each.version < version
        if is_replaced and not state.referrers(each.key, deleted=True):
            entries.append(Entry(SchemaKey(subject, each.version)))
    return Decision((*entries, Entry(stored.key, stored)), stored)


def _version(state: State, candidate: Candidate) -> int:
    following = next_version(state, candidate.subject)
    if candidate.version <= 0:
        return following
    if candidate.version != following and state.mode(candidate.subject) not in IMPORTING:
        raise refusals.invalid_schema("Version is not one more than previous version")
    return candidate.version


def _id(state: State, candidate: Candidate) -> int:
    context = context_of(candidate.subject)
    if candidate.id >= 0:
        other = state.by_id(context, candidate.id)
        if other is not None and other.text != candidate.text:
            raise refusals.id_does_not_match(f"Overwrite new schema with id {candidate.id} is not permitted.")
        return candidate.id
    guid = guid_of(candidate.text, candidate.references, candidate.metadata, candidate.rule_set)
    known = state.id_of(context, guid)
    if known is not None:
        return known
    following = state.max_ids[context] + 1
    if following > INT_MAX:
        raise refusals.store_failed("Error while registering the schema due to generating an ID that is too large.")
    return following

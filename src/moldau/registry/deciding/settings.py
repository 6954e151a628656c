"""Compatibility levels and what else a configuration has, and modes: of a subject, of a context, of all."""

from __future__ import annotations

from typing import Any

from moldau.registry import refusals
from moldau.registry.deciding.decision import Decision
from moldau.registry.names import context_key, context_of, is_below
from moldau.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    Entry,
    ModeKey,
    SchemaKey,
    Settings,
)
from moldau.registry.state import IMPORTING, READ_ONLY, State
from moldau.schemas.subjects import DEFAULT_CONTEXT


def check_writable(state: State, subject: str | None) -> None:
    """Raises 42205."""
    if state.mode(subject) in READ_ONLY:
        context = "" if subject is None else context_key(context_of(subject))
        raise refusals.not_permitted(f"Subject {subject} in context {context} is in read-only mode")


def decide_config(state: State, subject: str | None, changes: Settings) -> Decision[Settings]:
    """What the changes don't name stays as it is."""
    check_writable(state, subject)
    merged = {**state.configs.get(subject, {}), **changes}
    kept = {name: each for name, each in merged.items() if each is not None}
    return Decision((Entry(ConfigKey(subject), _named(subject, kept)),), kept)


def decide_config_deletion(state: State, subject: str | None) -> Decision[Settings]:
    """The reply is the configuration that was."""
    if subject is not None and subject not in state.configs:
        raise refusals.subject_not_found(subject)
    check_writable(state, subject)
    old = state.configs.get(subject) or {"compatibilityLevel": state.default_level}
    entries = (Entry(ConfigKey(subject)),) if subject in state.configs else ()
    return Decision(entries, old)


def _named(subject: str | None, fields: Settings) -> dict[str, Any]:
    return {**({} if subject is None else {"subject": subject}), **fields}


def decide_mode(state: State, subject: str | None, mode: str | None, *, is_forced: bool) -> Decision[str | None]:
    """Importing begins on empty ground: ids of somewhere else must not meet those that were given here."""
    entries: list[Entry] = []
    if mode == "IMPORT" and state.mode(subject) not in IMPORTING and not is_forced:
        below = [name for name in state.names if is_below(name, subject)]
        if any(state.has(name) for name in below):
            raise refusals.not_permitted("Cannot import since found existing subjects")
        gone = [each for name in below for each in state.versions(name, deleted=True)]
        for each in gone:
            if state.referrers(each.key, deleted=True):
                raise refusals.reference_exists(each.subject, each.version)
        entries += [Entry(SchemaKey(each.subject, each.version)) for each in gone]
        if gone and subject is not None:
            entries.append(Entry(ClearSubjectKey(subject), {"subject": subject}))
    value = None if mode is None else _named(subject, {"mode": mode})
    entries.append(Entry(ModeKey(subject), value))
    return Decision(tuple(entries), mode)


def decide_mode_deletion(state: State, subject: str | None, *, is_recursive: bool) -> Decision[str | None]:
    """The reply is the mode that was; of everything below a context too, if that is wanted."""
    old = state.modes.get(subject)
    if old is None and subject is not None and not is_recursive:
        raise refusals.subject_not_found(subject)
    below = [each for each in state.modes if each is not None and is_below(each, subject)] if is_recursive else []
    entries = [Entry(ModeKey(each)) for each in dict.fromkeys([subject, *below]) if each in state.modes]
    return Decision(tuple(entries), old if old is not None or subject is not None else state.default_mode)


def decide_context_deletion(state: State, context: str) -> Decision[None]:
    if context not in state.contexts:
        raise refusals.context_not_found(context)
    if any(context_of(each) == context for each in state.names):
        raise refusals.context_not_empty(context)
    if context == DEFAULT_CONTEXT:
        raise refusals.not_permitted("The default context cannot be deleted")
    return Decision((Entry(ContextKey(context)),), None)

"""Versions and subjects are deleted softly first, and then for good; what others refer to is not."""

from __future__ import annotations

from dataclasses import replace

from moldau.registry import refusals
from moldau.registry.deciding.decision import Decision
from moldau.registry.deciding.settings import check_writable
from moldau.registry.records import ConfigKey, DeleteSubjectKey, Entry, ModeKey, SchemaKey
from moldau.registry.state import State


def decide_version_deletion(state: State, subject: str, version: int, *, is_permanent: bool) -> Decision[int]:
    """The reply is the version's number; -1 is the latest."""
    found = state.get(subject, version, deleted=version > 0 or is_permanent)
    if found is None:
        if not state.has(subject, deleted=True):
            raise refusals.subject_not_found(subject)
        raise refusals.version_not_found(version)
    if found.is_deleted and not is_permanent:
        raise refusals.version_soft_deleted(subject, found.version)
    check_writable(state, subject)
    if state.referrers(found.key, deleted=is_permanent):
        raise refusals.reference_exists(subject, found.version)
    if not is_permanent:
        return Decision((Entry(found.key, replace(found, is_deleted=True)),), found.version)
    if not found.is_deleted:
        raise refusals.version_not_soft_deleted(subject, found.version)
    is_last = len(state.versions(subject, deleted=True)) == 1
    return Decision((Entry(found.key), *(_settings_gone(state, subject) if is_last else ())), found.version)


def decide_subject_deletion(state: State, subject: str, *, is_permanent: bool) -> Decision[list[int]]:
    """The reply is the versions that are deleted."""
    if not state.has(subject, deleted=True):
        raise refusals.subject_not_found(subject)
    if not is_permanent and not state.has(subject):
        raise refusals.subject_soft_deleted(subject)
    check_writable(state, subject)
    versions = state.versions(subject, deleted=is_permanent)
    for each in versions:
        if any(other.subject != subject for other in state.referrers(each.key, deleted=is_permanent)):
            raise refusals.reference_exists(subject, each.version)
        if is_permanent and not each.is_deleted:
            raise refusals.subject_not_soft_deleted(subject)
    numbers = [each.version for each in versions]
    if not is_permanent:
        value = {"subject": subject, "version": numbers[-1]}
        return Decision((Entry(DeleteSubjectKey(subject), value),), numbers)
    tombstones = [Entry(SchemaKey(subject, each)) for each in reversed(numbers)]
    return Decision((*tombstones, *_settings_gone(state, subject)), numbers)


def _settings_gone(state: State, subject: str) -> list[Entry]:
    mode = [Entry(ModeKey(subject))] if subject in state.modes else []
    config = [Entry(ConfigKey(subject))] if subject in state.configs else []
    return mode + config

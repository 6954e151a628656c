"""New certificates without a restart: which files to watch, when they have changed, and which changes Kafka allows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from moldau.security.tls.contexts import LoadedTls
from moldau.security.tls.settings import TlsConfigError, TlsSettings

FileState = tuple[int, int, int, int] | None
"""Inode, size, and when contents and inode changed; None for a file that is not there."""


@dataclass(frozen=True, slots=True)
class StoreFiles:
    states: Mapping[str, FileState]


@dataclass(frozen=True, slots=True)
class Watch:
    """Polled by whoever owns the context. A change counts when two looks saw the same: files are written in pieces."""

    loaded: StoreFiles | None
    """As they were before the context in use was made; None while it is not of these files at all."""
    seen: StoreFiles

    @staticmethod
    def of(files: StoreFiles) -> Watch:
        """From the moment at which a context of these files is in use."""
        return Watch(files, files)

    def look(self, files: StoreFiles) -> tuple[Watch, bool]:
        """The watch to go on with, and whether to make a new context.

        One that can't be made is tried again at each look: what kept it from being made may have been no fault of the
        files, such as a lack of descriptors.
        """
        return replace(self, seen=files), files == self.seen != self.loaded


def look_at(settings: TlsSettings) -> StoreFiles:
    """Take this before the context is made: what changes in between is then a change."""
    paths = [path for path in (settings.keystore_location, settings.truststore_location) if path is not None]
    return StoreFiles(MappingProxyType({path: _state(path) for path in paths}))


def _state(path: str) -> FileState:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def check_change(
    before: LoadedTls, after: LoadedTls, *, allow_dn_changes: bool = False, allow_san_changes: bool = False
) -> None:
    """Kafka's rules for certificates that change while a broker runs. Raises TlsConfigError.

    Clients and other brokers know a broker by its distinguished name and its host names. The names may become more.
    """
    if bool(before.chain) != bool(after.chain):
        what = "removed from" if before.chain else "added to"
        raise TlsConfigError("ssl.keystore.location", f"a key store can't be {what} a listener that runs")
    if after.has_truststore and not before.has_truststore:
        raise TlsConfigError("ssl.truststore.location", "a trust store can't be added to a listener that runs")
    if not before.chain:
        return
    old, new = before.chain[0], after.chain[0]
    if not allow_dn_changes and _canonical(old.subject) != _canonical(new.subject):
        what = f"the distinguished name would change from {old.subject} to {new.subject}"
        raise TlsConfigError("ssl.keystore.location", f"{what}; ssl.allow.dn.changes=true allows it")
    missing = sorted(old.alternative_names - new.alternative_names)
    if not allow_san_changes and missing:
        what = f"the new certificate lacks {', '.join(missing)}; ssl.allow.san.changes=true allows it"
        raise TlsConfigError("ssl.keystore.location", what)


def _canonical(subject: str) -> str:
    """Names that differ in case and in the number of blanks are equal, as in Java's X500Principal."""
    return " ".join(subject.lower().split())

"""The tables of the SQLite store, and how a file is recognised as one."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

from moldau.store.store import CorruptStore, StoreError

APPLICATION_ID = 0x4D4F4C44  # "MOLD", in the file's header where `file` and SQLite look for it
SCHEMA_VERSION = 1
BUSY_TIMEOUT_MS = 10_000  # another broker's append takes milliseconds; a disk that hangs longer is an error to report

_TABLES = """
CREATE TABLE log (position INTEGER PRIMARY KEY, payload BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE snapshot (position INTEGER PRIMARY KEY, payload BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE registration (
    broker_id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, started INTEGER NOT NULL, heartbeat_ms INTEGER NOT NULL,
    payload BLOB NOT NULL
);
CREATE TABLE controller (broker_id INTEGER, epoch INTEGER NOT NULL);
INSERT INTO controller (broker_id, epoch) VALUES (NULL, 0);
"""


def checksum(payload: bytes) -> int:
    """SQLite checks the shape of its pages, not what is stored in them."""
    return zlib.crc32(payload)


def open_database(path: Path, *, synchronous: str) -> sqlite3.Connection:
    """A connection to a store that is there or is made now; CorruptStore when the file is something else."""
    try:
        db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000)
    except sqlite3.Error as wrong:
        raise StoreError(f"metadata store {path} can't be opened: {wrong}") from wrong
    try:
        _prepare(db, path)
        db.execute(f"PRAGMA synchronous={synchronous}")
    except BaseException as wrong:
        db.close()
        # Busy, full and read-only files are OperationalErrors, and no one's damage.
        if isinstance(wrong, sqlite3.DatabaseError) and not isinstance(wrong, sqlite3.OperationalError):
            raise CorruptStore(f"{path} is not a Moldau metadata store, or is damaged: {wrong}") from wrong
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    application_id, version = _identity(db)
    if (application_id, version) == (0, 0):
        _create(db, path)
    elif application_id != APPLICATION_ID:
        raise CorruptStore(f"{path} is a SQLite file of another application")
    elif version != SCHEMA_VERSION:
        raise StoreError(f"{path} has version {version}; this release reads version {SCHEMA_VERSION}")
    db.execute("PRAGMA journal_mode=WAL").fetchone()
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise CorruptStore(f"{path} is damaged: {verdict}")


def _identity(db: sqlite3.Connection) -> tuple[int, int]:
    (application_id,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return application_id, version


def _create(db: sqlite3.Connection, path: Path) -> None:
    """Two brokers may come here at once; the second finds the first one's tables once it has the lock."""
    db.execute("BEGIN IMMEDIATE")
    if _identity(db) == (0, 0):
        (tables,) = db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if tables:
            db.execute("ROLLBACK")
            raise CorruptStore(f"{path} is a SQLite file of another application")
        for statement in filter(str.strip, _TABLES.split(";")):
            db.execute(statement)
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    db.execute("COMMIT")

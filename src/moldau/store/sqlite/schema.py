"""The tables of the SQLite store, and how a file is recognised as one."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from moldau.core.limits import MIB
from moldau.store.store import CorruptStore, StoreError

APPLICATION_ID = 0x4D4F4C44  # "MOLD", in the file's header where `file` and SQLite look for it
SCHEMA_VERSION = 2  # 1 had registrations without sessions, by the wall clock
BUSY_TIMEOUT_MS = 10_000  # another broker's append takes milliseconds; a disk that hangs longer is an error to report
OWNER_ALONE = 0o600
BUSY_LOOK_S = 0.01
WRITE_AHEAD_BYTES = 4 * MIB  # as SQLite's own limit of 1,000 pages

_SESSIONS = """
CREATE TABLE registration (
    broker_id INTEGER PRIMARY KEY, session INTEGER NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT NULL,
    boot TEXT NOT NULL, namespace TEXT NOT NULL, timeout_ms INTEGER NOT NULL, heartbeat_ms INTEGER NOT NULL,
    payload BLOB NOT NULL
);
CREATE TABLE controller (broker_id INTEGER, session INTEGER, epoch INTEGER NOT NULL);
"""
_TABLES = f"""
CREATE TABLE log (position INTEGER PRIMARY KEY, payload BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE snapshot (position INTEGER PRIMARY KEY, payload BLOB NOT NULL, crc INTEGER NOT NULL);
{_SESSIONS}
INSERT INTO controller (epoch) VALUES (0);
"""
_FROM_VERSION_1 = f"""
DROP TABLE registration;
ALTER TABLE controller RENAME TO elections;
{_SESSIONS}
INSERT INTO controller (epoch) SELECT epoch FROM elections;
DROP TABLE elections;
"""


def checksum(payload: bytes) -> int:
    """SQLite checks the shape of its pages, not what is stored in them."""
    return zlib.crc32(payload)


def open_database(path: Path, *, synchronous: str) -> sqlite3.Connection:
    """A connection to a store that is there or is made now; CorruptStore when the file is something else."""
    try:
        _keep_to_its_owner(path)
        db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000)
    except sqlite3.Error as wrong:
        raise StoreError(f"metadata store {path} can't be opened: {wrong}") from wrong
    try:
        _prepare(db, path)
        db.execute(f"PRAGMA synchronous={synchronous}")
        db.execute("PRAGMA wal_autocheckpoint=0")  # the store does it, see `shorten`
        db.execute("PRAGMA journal_size_limit=0")  # the write-ahead log is as long as what is in it
    except BaseException as wrong:
        db.close()
        # Busy, full and read-only files are OperationalErrors, and no one's damage.
        if isinstance(wrong, sqlite3.DatabaseError) and not isinstance(wrong, sqlite3.OperationalError):
            raise CorruptStore(f"{path} is not a Moldau metadata store, or is damaged: {wrong}") from wrong
        raise
    return db


def _keep_to_its_owner(path: Path) -> None:
    """Keys of TLS and what verifies passwords are in it. SQLite gives its other files the same mode.

    A file that is there is not opened for this: closing it would drop the locks of this process's other connections.
    """
    with contextlib.suppress(OSError):  # another's file, or a folder that is read-only, is told by whoever opens it
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ALONE))
        except FileExistsError:
            os.chmod(path, OWNER_ALONE)


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    # In one transaction, or another broker could make the tables between the two questions.
    with transaction(db, "DEFERRED"):
        application_id, version = _identity(db)
    if (application_id, version) == (0, 0):
        _create(db, path)
    elif application_id != APPLICATION_ID:
        raise CorruptStore(f"{path} is a SQLite file of another application")
    elif version == 1:
        _migrate(db)
    elif version != SCHEMA_VERSION:
        raise StoreError(f"{path} has version {version}; this release reads version {SCHEMA_VERSION}")
    _write_ahead(db)
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise CorruptStore(f"{path} is damaged: {verdict}")


def _write_ahead(db: sqlite3.Connection) -> None:
    """SQLite does not wait for the others who have the file open while its journal is changed; whoever does wins."""
    deadline_s = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while db.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            db.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as wrong:
            if wrong.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(BUSY_LOOK_S)


def _identity(db: sqlite3.Connection) -> tuple[int, int]:
    (application_id,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return application_id, version


def _create(db: sqlite3.Connection, path: Path) -> None:
    """Two brokers may come here at once; the second finds the first one's tables once it has the lock."""
    with transaction(db):
        if _identity(db) != (0, 0):
            return
        (tables,) = db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if tables:
            raise CorruptStore(f"{path} is a SQLite file of another application")
        _execute_all(db, _TABLES)
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")


def _migrate(db: sqlite3.Connection) -> None:
    """The log stays as it is, and epochs go on; brokers that are alive register anew."""
    with transaction(db):
        if _identity(db) == (APPLICATION_ID, 1):
            _execute_all(db, _FROM_VERSION_1)


def _execute_all(db: sqlite3.Connection, statements: str) -> None:
    for statement in filter(str.strip, statements.split(";")):
        db.execute(statement)
    db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")


def shorten(db: sqlite3.Connection, other: sqlite3.Connection, path: Path) -> None:
    """Copy a write-ahead log that is long into the file, so that the next write begins it anew.

    SQLite before 3.51.3 may lose what is committed while that is done a second time, so nobody may commit meanwhile:
    `other` has the lock. `db` is the connection that waits for the disk: what is not there yet must stay in the log.
    """
    if path.with_name(f"{path.name}-wal").stat().st_size >= WRITE_AHEAD_BYTES:
        with transaction(other):
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


@contextlib.contextmanager
def transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise

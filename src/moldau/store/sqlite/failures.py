"""What SQLite's errors mean for the store."""

from __future__ import annotations

import sqlite3

PRIMARY_CODE = 0xFF  # SQLite's extended codes tell more in the bits above


def is_disk_failure(wrong: sqlite3.DatabaseError) -> bool:
    """Not a full disk, which SQLite tells apart and after which it goes on with what it had."""
    return _primary_code(wrong) == sqlite3.SQLITE_IOERR


def is_full(wrong: sqlite3.DatabaseError) -> bool:
    return _primary_code(wrong) == sqlite3.SQLITE_FULL


def lacks_memory(wrong: sqlite3.DatabaseError) -> bool:
    """No room for the file that its users share as memory, which is made anew and holds nothing that counts."""
    return getattr(wrong, "sqlite_errorcode", 0) in (sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN)


def _primary_code(wrong: sqlite3.DatabaseError) -> int:
    return getattr(wrong, "sqlite_errorcode", 0) & PRIMARY_CODE

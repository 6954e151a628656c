"""The metadata store of one machine: a SQLite file that all its brokers open."""

from moldau.store.sqlite.store import FILE_NAME, LOCATION_FILE, SqliteStore

__all__ = ["FILE_NAME", "LOCATION_FILE", "SqliteStore"]

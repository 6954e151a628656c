"""Tables of databases by their names, and the names that no table can have; known without any database library."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.spark.option_values import wrong_option

POSTGRESQL_SCHEMES = ("postgresql://", "postgres://")
SQLITE_SCHEMES = ("sqlite:",)
# The database cuts a longer name without a word, so that two names would mean one table.
POSTGRESQL_NAME_BYTES_MAX = 63
SQLITE_RESERVED_PREFIX = "sqlite_"
# Other schemas of SQLite are temporary, or files that this connection didn't attach: rows there would be lost.
SQLITE_SCHEMA = "main"
PROGRESS_TABLE = "moldau_progress"
STAGING_PREFIX = "moldau_staging_"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as the user names it, with or without the schema that it is in."""

    schema: str | None
    name: str

    @classmethod
    def parse(cls, text: str, url: str) -> TableName:
        """Raises OptionError for what can't be a table in the database of this URL."""
        schema, dot, name = text.rpartition(".")
        found = cls(schema if dot else None, name)
        allowed = _allowed_characters(found.parts) or _allowed_there(found, url)
        if allowed is not None:
            raise wrong_option("dbtable", text, allowed)
        return found

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.name,) if self.schema is None else (self.schema, self.name)

    def beside(self, name: str) -> str:
        """Another table in the same schema, as statements name it."""
        return quoted(name) if self.schema is None else f"{quoted(self.schema)}.{quoted(name)}"

    def __str__(self) -> str:
        return self.beside(self.name)


def writable_table(text: str, url: str) -> TableName:
    """A table to make and to write to: names that the database or this sink keeps for itself are refused."""
    table = TableName.parse(text, url)
    name = table.name.lower()
    if name == PROGRESS_TABLE or name.startswith(STAGING_PREFIX):
        own = f"{PROGRESS_TABLE} and names that begin with {STAGING_PREFIX}"
        raise wrong_option("dbtable", text, f"allowed is any table but this sink's own: {own}")
    if url.startswith(SQLITE_SCHEMES) and name.startswith(SQLITE_RESERVED_PREFIX):
        raise wrong_option("dbtable", text, f"allowed is a name that doesn't begin with {SQLITE_RESERVED_PREFIX}")
    return table


def _allowed_characters(parts: tuple[str, ...]) -> str | None:
    """What would be allowed, if this is not."""
    if any(not part.strip() for part in parts):
        return "allowed is TABLE or SCHEMA.TABLE, neither of them empty"
    if any("\0" in part or any("\ud800" <= character <= "\udfff" for character in part) for part in parts):
        return "allowed are characters of Unicode, NUL and halves of surrogate pairs excepted"
    return None


def _allowed_there(table: TableName, url: str) -> str | None:
    if url.startswith(POSTGRESQL_SCHEMES):
        longest = max(len(part.encode()) for part in table.parts)
        if longest > POSTGRESQL_NAME_BYTES_MAX:
            return f"allowed in PostgreSQL are {POSTGRESQL_NAME_BYTES_MAX} bytes of UTF-8, this has {longest}"
    if url.startswith(SQLITE_SCHEMES) and table.schema not in (None, SQLITE_SCHEMA):
        return f"allowed in SQLite is TABLE or {SQLITE_SCHEMA}.TABLE"
    return None

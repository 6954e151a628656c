"""Tables of PostgreSQL and SQLite."""

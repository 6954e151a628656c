"""Sinks into lake and database tables: no jar, and each batch of a query is in the table once."""

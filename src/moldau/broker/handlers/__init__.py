"""One module per API, and the table of all of them, which decides what the broker announces."""

from moldau.broker.handlers.table import TABLE

__all__ = ["TABLE"]

"""How a statement fails."""

from __future__ import annotations


class Refused(Exception):
    """A statement that can't be carried out, with the reason."""

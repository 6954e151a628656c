"""Why a record does not fit its schema, and where in it."""

from __future__ import annotations


class Misfit(Exception):
    """The value at `path` is not what the schema says."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def inside(self, step: str) -> Misfit:
        return Misfit(self.message, step + self.path)

    def __str__(self) -> str:
        return f"field {self.path.lstrip('.')}: {self.message}" if self.path else self.message

"""What an endpoint is: where it answers, what it takes, how it may refuse. Routes and OpenAPI come of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.requests import Request

Answer: TypeAlias = Callable[[Request], Awaitable[Any]]
FLAG, NUMBER, TEXT = "boolean", "integer", "string"


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str
    summary: str
    answer: Answer
    parameters: tuple[tuple[str, str], ...] = ()
    """Of the query: names and types."""
    body: str | None = None
    """The name of the schema of its body."""
    refusals: tuple[int, ...] = ()
    """Statuses besides those that any request can get."""
    reply: str = "Anything"
    is_written: bool = False
    """Only the leader can answer it."""


def flags(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, FLAG) for name in names)


PAGE = (("offset", NUMBER), ("limit", NUMBER))

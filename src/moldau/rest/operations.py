"""The table of all operations: what is routed, who may do it, and what the OpenAPI document says of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.responses import Response

from moldau.rest.calls import Call, Json
from moldau.web.logins import Action
from moldau.web.negotiation import JSON

Answer = Callable[[Call], Awaitable[Response]]

CLUSTER_WIDE = ""  # a right for what is nobody's
ANYTHING = "*"  # whoever has a right for some names; the endpoint leaves out the others


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    schema: Json
    description: str = ""
    place: str = "query"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    method: str
    path: str
    answer: Answer
    summary: str
    action: Action
    of: str = CLUSTER_WIDE
    """The parameter of the path whose value has to be allowed."""
    parameters: tuple[Parameter, ...] = ()
    body: str | None = None
    body_types: tuple[str, ...] = (JSON,)
    is_body_needed: bool = True
    success: Mapping[int, str | None] = field(default_factory=lambda: {204: None})
    """Names of schemas by status."""
    answer_types: tuple[str, ...] = (JSON,)
    errors: tuple[int, ...] = ()
    """Besides those that every operation has."""

    @property
    def id(self) -> str:
        words = self.answer.__name__.split("_")
        version = "V2" if "v2" in self.answer.__module__.split(".") else ""
        return words[0] + "".join(each.capitalize() for each in words[1:]) + version

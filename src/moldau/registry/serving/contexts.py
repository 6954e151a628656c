"""A context as the beginning of a path: `/contexts/.staging/subjects/orders` is `/subjects/:.staging:orders`.

So that a client that knows of no contexts is kept in one by its URL alone.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

from moldau.registry.names import context_key
from moldau.schemas.subjects import CONTEXT_PREFIX, CONTEXT_WILDCARD
from moldau.web.errors import ApiError, error_response

BEGINNING = "contexts"
UNREADABLE = 400
SETTINGS = frozenset({"config", "mode"})
LISTS = frozenset({"schemas", "subjects"})


class ContextPaths:
    """Outside of everything else: routes, rights and the way to the leader see qualified subjects."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0].decode("latin-1")
            try:
                path, query = in_context_of_path(raw, scope["query_string"].decode("latin-1"))
            except ApiError as wrong:
                await error_response(wrong)(scope, receive, send)
                return
            scope = {**scope, "raw_path": path.encode("latin-1"), "query_string": query.encode("latin-1")}
        await self.app(scope, receive, send)


def in_context_of_path(path: str, query: str) -> tuple[str, str]:
    """Both as they were sent, with the context moved to the subject. Raises 400 for a name that no context has."""
    first, _, below = path.removeprefix("/").partition("/")
    name, _, rest = below.partition("/")
    if first != BEGINNING or not rest:
        return path, query
    prefix = _prefix(name)
    parts = rest.split("/")
    if parts[0] in SETTINGS and len(parts) == 1 and prefix:
        return f"/{rest}/{quote(prefix)}", query
    place = 1 if parts[0] in SETTINGS else next((n for n, each in enumerate(parts, 1) if each == "subjects"), 0)
    if 0 < place < len(parts) and not _is_qualified(unquote(parts[place])):
        parts[place] = quote(prefix) + parts[place]
    return "/" + "/".join(parts), _query(parts, query, prefix)


def _prefix(name: str) -> str:
    context = unquote(name).removeprefix(":").removesuffix(":")
    if ":" in context:
        raise ApiError(UNREADABLE, f"Context name '{context}' cannot contain a colon")
    return context_key(context if context.startswith(".") else f".{context}")


def _query(parts: list[str], query: str, prefix: str) -> str:
    """An id counts in its context; what is listed are subjects of the context."""
    if parts[:2] == ["schemas", "ids"]:
        name = "subject"
    elif len(parts) == 1 and parts[0] in LISTS:
        name = "subjectPrefix"
    else:
        return query
    found = parse_qsl(query, keep_blank_values=True, encoding="latin-1")
    said = next((value for key, value in found if key == name), "")
    if _is_qualified(said):
        return query
    others = [(key, value) for key, value in found if key != name]
    return urlencode([*others, (name, prefix + said)], encoding="latin-1")


def _is_qualified(subject: str) -> bool:
    return subject.startswith((CONTEXT_PREFIX, CONTEXT_WILDCARD))

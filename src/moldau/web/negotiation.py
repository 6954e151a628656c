"""Which media type a request has, and which its answer is to have: 415 and 406 where there is none."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from starlette.requests import Request

from moldau.web.errors import ApiError

ACCEPT_CHARS_MAX = 4_096
JSON = "application/json"
REGISTRY = "application/vnd.schemaregistry.v1+json"
REST_V2 = "application/vnd.kafka.v2+json"


def media_type_of(header: str) -> str:
    """Without parameters, such as a charset; empty if there is none."""
    return header.partition(";")[0].strip().lower()


def body_type(request: Request, accepted: Collection[str], default: str) -> str:
    """Of the body of a request. Raises 415."""
    found = media_type_of(request.headers.get("content-type", "")) or default
    if found not in accepted:
        raise ApiError(415, "HTTP 415 Unsupported Media Type")
    return found


def answer_type(request: Request, offered: Sequence[str]) -> str:
    """The one of these, the best first, that the client likes best. Raises 406."""
    found = preferred(request.headers.get("accept", ""), offered)
    if found is None:
        raise ApiError(406, "HTTP 406 Not Acceptable")
    return found


def preferred(accept: str, offered: Sequence[str]) -> str | None:
    if not accept.strip():
        return offered[0]
    wishes = [_wish(each) for each in accept[:ACCEPT_CHARS_MAX].split(",") if each.strip()]
    liked = [(_quality(each, wishes), -place, each) for place, each in enumerate(offered)]
    quality, _, best = max(liked)
    return best if quality > 0 else None


def _wish(text: str) -> tuple[str, float]:
    name, *parameters = (each.strip().lower() for each in text.split(";"))
    for each in parameters:
        key, _, value = each.partition("=")
        if key.strip() == "q":
            try:
                return name, min(1.0, max(0.0, float(value)))
            except ValueError:
                return name, 0.0
    return name, 1.0


def _quality(offered: str, wishes: Sequence[tuple[str, float]]) -> float:
    """By the wish that says most: a type, then `application/*`, then `*/*`."""
    for wanted in (offered, offered.partition("/")[0] + "/*", "*/*"):
        found = [quality for name, quality in wishes if name == wanted]
        if found:
            return max(found)
    return 0.0

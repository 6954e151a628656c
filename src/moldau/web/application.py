"""An application of routes, with what all of ours have around them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp

from moldau.core.clock import Clock, SystemClock
from moldau.core.exposition import CONTENT_TYPE, Exposition
from moldau.web.authentication import Authentication
from moldau.web.errors import ApiError, Failures, answer_api_error, answer_http_exception
from moldau.web.guarding import Guard
from moldau.web.limits import Limits
from moldau.web.logins import Judge
from moldau.web.requests import BodyLimit, EncodedPaths, OwnSite
from moldau.web.traffic import Traffic, Watched

Endpoint = Callable[[Request], Awaitable[Response]]
Expose = Callable[[Exposition], None]
Reasons = Callable[[], Sequence[str]]
Look = Callable[[], Awaitable[None]]


def nothing() -> Sequence[str]:
    return ()


async def nowhere() -> None:
    pass


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """`sick` are reasons why the process should be replaced, `unready` why it should get no requests for the moment."""

    name: str
    expose: Expose
    sick: Reasons = nothing
    unready: Reasons = nothing
    look: Look = nowhere
    """Before `unready` is asked: it may ask others, and has to remember what they said."""
    judge: Judge | None = None
    limits: Limits = field(default_factory=Limits)
    clock: Clock = field(default_factory=SystemClock)
    traffic: Traffic = field(init=False)
    guard: Guard | None = None
    """Of the server, which is made after its application."""

    def __post_init__(self) -> None:
        self.traffic = Traffic(f"moldau_{self.name}")


def application(routes: Iterable[BaseRoute], around: Surroundings) -> ASGIApp:
    """Routes match paths as they were sent, without a slash at the end: `moldau.web.requests.path_value` decodes."""
    router = Router(routes=[*routes, *_own_routes(around)], redirect_slashes=False)
    # Not starlette's application: its own answer to failures comes before ours.
    handlers = {ApiError: answer_api_error, HTTPException: answer_http_exception}
    made: ASGIApp = ExceptionMiddleware(router, handlers=handlers)
    made = BodyLimit(made, around.limits)
    made = OwnSite(made)
    made = Authentication(made, around.judge, around.clock, f"moldau {around.name}")
    made = Failures(made)
    made = Watched(made, around.traffic)
    return EncodedPaths(made)


def route(path: str, endpoint: Endpoint, *methods: str) -> Route:
    """Its path is the name of its metrics."""

    async def named(request: Request) -> Response:
        request.state.route = path
        return await endpoint(request)

    return Route(path, named, methods=[*methods] or ["GET"])


def _own_routes(around: Surroundings) -> list[Route]:
    async def health(_: Request) -> Response:
        reasons = [*around.sick()]
        status = "sick" if reasons else "healthy"
        return JSONResponse({"status": status, "reasons": reasons}, 503 if reasons else 200)

    async def ready(_: Request) -> Response:
        await around.look()
        reasons = [*around.unready()]
        return JSONResponse({"status": "starting" if reasons else "ready", "reasons": reasons}, 503 if reasons else 200)

    async def metrics(_: Request) -> Response:
        found = Exposition()
        around.expose(found)
        around.traffic.expose(found, around.guard)
        text = await asyncio.to_thread(found.text)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    return [route("/health", health), route("/ready", ready), route("/metrics", metrics)]

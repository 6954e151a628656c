"""What was asked and how it was answered: a line of the log for each request, and figures for `/metrics`."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moldau.core.exposition import COUNTER, SUMMARY, Exposition
from moldau.web.guarding import Guard

LOGGER = logging.getLogger("moldau.web.access")
UNKNOWN = "other"
PATH_CHARS_MAX = 500  # of a line in the log


@dataclass(slots=True)
class Traffic:
    prefix: str
    """Of the metrics' names, such as `moldau_registry`."""
    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    under_way: int = 0

    def expose(self, found: Exposition, guard: Guard | None) -> None:
        for (method, route, status), count in sorted(self.requests.items()):
            labels = {"method": method, "path": route, "status": status}
            found.add(f"{self.prefix}_http_requests_total", "Requests that were answered", labels, count, COUNTER)
        name, text = f"{self.prefix}_http_request_seconds", "How long requests took"
        lines = found.lines(name, text, SUMMARY)
        for route in sorted(self.seconds):
            count = sum(each for (_, other, _), each in self.requests.items() if other == route)
            lines.append(f'{name}_sum{{path="{route}"}} {self.seconds[route]:.6f}')
            lines.append(f'{name}_count{{path="{route}"}} {count}')
        found.add(f"{self.prefix}_http_requests_in_flight", "Requests that are being answered", {}, self.under_way)
        if guard is not None:
            found.add(f"{self.prefix}_http_connections", "Open connections", {}, len(guard.connections))
            for reason, count in guard.dropped.items():
                name, text = f"{self.prefix}_http_dropped_total", "Connections that were dropped, by what was late"
                found.add(name, text, {"reason": reason}, count, COUNTER)


class Watched:
    """Outside of everything else, so that what is refused is told, too."""

    def __init__(self, app: ASGIApp, traffic: Traffic) -> None:
        self.app = app
        self.traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began_s = asyncio.get_running_loop().time()
        status, size = 0, 0
        scope.setdefault("state", {})

        async def counted(message: Message) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += len(message.get("body", b""))
            await send(message)

        self.traffic.under_way += 1
        try:
            await self.app(scope, receive, counted)
        finally:
            self.traffic.under_way -= 1
            self._tell(scope, status, size, asyncio.get_running_loop().time() - began_s)

    def _tell(self, scope: Scope, status: int, size: int, took_s: float) -> None:
        route = scope["state"].get("route", UNKNOWN)
        method = scope["method"] if route != UNKNOWN else UNKNOWN
        self.traffic.requests[method, route, status] += 1
        self.traffic.seconds[route] += took_s
        login, peer = scope["state"].get("login"), scope.get("client") or ("", 0)
        fields = {
            "peer": peer[0],
            "user": login.principal.name if login is not None else None,
            "method": scope["method"],
            "path": scope["path"][:PATH_CHARS_MAX],
            "status": status,
            "bytes": size,
            "ms": round(took_s * 1_000, 3),
        }
        LOGGER.info("%(peer)s %(user)s %(method)s %(path)s %(status)s %(bytes)s B %(ms)s ms", fields, extra=fields)

"""What an endpoint takes of a request: parts of the path, parameters, a JSON body."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moldau.web.errors import ApiError, error_response
from moldau.web.limits import Limits

UNREADABLE = 400
UNPROCESSABLE = 422
READING = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITES = frozenset({b"none", b"same-origin"})


class EncodedPaths:
    """Routes see paths as they were sent: a name may have a slash in it, as %2F. `path_value` decodes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw = scope.get("raw_path") or scope["path"].encode()
            # With an `app` starlette raises its 404 and 405, instead of answering them itself.
            scope = {**scope, "path": raw.partition(b"?")[0].decode("latin-1"), "app": self}
        await self.app(scope, receive, send)


def path_value(request: Request, name: str) -> str:
    value = request.path_params[name]
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise ApiError(UNREADABLE, f"{name} is no UTF-8") from None


def flag(request: Request, name: str, *, default: bool = False) -> bool:
    """As Java reads a boolean: everything but `true` is none."""
    value = request.query_params.get(name)
    return default if value is None else value.lower() == "true"


def number(request: Request, name: str, *, default: int) -> int:
    """Raises 404, which is what Confluent's servers answer to a parameter of another type."""
    value = request.query_params.get(name)
    if value is None:
        return default
    try:
        found = int(value)
    except ValueError:
        found = 1 << 63
    if not -(1 << 31) <= found < 1 << 31 or not value.lstrip("+-").isascii():
        raise ApiError(404, "HTTP 404 Not Found")
    return found


async def body_bytes(request: Request) -> bytes:
    """ApiError 413 comes of the limit, 400 of a client that went."""
    try:
        return await request.body()
    except ClientDisconnect:
        raise ApiError(UNREADABLE, "the client is gone") from None


async def json_body(request: Request) -> Any:
    """Raises 400 for what is no JSON, as deep nesting is none; 422 is the caller's affair."""
    body = await body_bytes(request)
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ApiError(UNREADABLE, "Request body is not valid JSON") from None
    except RecursionError:
        raise ApiError(UNREADABLE, "Request body is nested too deeply") from None


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class OwnSite:
    """403 for what a page of another site has a browser write: with the user's login, or from the user's machine.

    Browsers say so to localhost and over https. They ask before they send anything but forms and plain bodies, and get
    no leave; these they send at once.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in READING:
            said = next((value for name, value in scope["headers"] if name == b"sec-fetch-site"), b"none")
            if said not in OWN_SITES:
                await error_response(ApiError(403, "a page of another site cannot ask for this"))(scope, receive, send)
                return
        await self.app(scope, receive, send)


class BodyLimit:
    """413 for a body that says it is too large, and for one that turns out to be; 503 if all together are."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app = app
        self.limits = limits
        self.bytes_max = limits.body_bytes
        self.is_stream = limits.is_stream
        self.held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self.is_stream(scope["path"]):
            await self.app(scope, receive, send)
            return
        said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if said.isdigit() and int(said) > self.bytes_max:
            await error_response(self._too_large())(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            size = len(message.get("body", b""))
            received += size
            self.held_bytes += size
            if received > self.bytes_max:
                raise self._too_large()
            if received > self.limits.small_body_bytes and self.held_bytes > self.limits.bodies_bytes:
                headers = {"connection": "close", "Retry-After": "1"}
                raise ApiError(503, "too many bytes of requests are under way; try again", headers=headers)
            return message

        try:
            await self.app(scope, counted, send)
        finally:
            self.held_bytes -= received

    def _too_large(self) -> ApiError:
        headers = {"connection": "close"}  # the rest of it is not waited for
        return ApiError(413, f"The request body is larger than {self.bytes_max} bytes", headers=headers)

"""Errors as answers: `{"error_code": 40401, "message": "..."}` for all of them, and never a stack trace."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

INTERNAL_ERROR = 50_001

LOGGER = logging.getLogger(__name__)


class ApiError(Exception):
    """An answer that is an error. `code` begins with the status, or is the status itself."""

    def __init__(self, code: int, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        return self.code if self.code < 1_000 else self.code // 100

    @property
    def message(self) -> str:
        return str(self)


def error_response(wrong: ApiError, media_type: str = "application/json") -> Response:
    content = {"error_code": wrong.code, "message": wrong.message}
    return JSONResponse(content, wrong.status, headers=wrong.headers, media_type=media_type)


async def answer_api_error(request: Request, wrong: Exception) -> Response:
    assert isinstance(wrong, ApiError), "starlette calls by type"
    return error_response(wrong, request.scope.get("state", {}).get("media_type", "application/json"))


async def answer_http_exception(request: Request, wrong: Exception) -> Response:
    """Of starlette itself: no such path, or no such method."""
    assert isinstance(wrong, HTTPException), "starlette calls by type"
    message = f"HTTP {wrong.status_code} {HTTPStatus(wrong.status_code).phrase}"
    return await answer_api_error(request, ApiError(wrong.status_code, message, headers=wrong.headers))


class Failures:
    """Whatever an answer failed with is told in the log, and the client that it failed."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            LOGGER.debug("%s %s: the client went", scope.get("method"), scope.get("path"))
        except Exception:
            method, path = scope.get("method"), scope.get("path")
            LOGGER.exception("%s %s failed", method, path, extra={"method": method, "path": path})
            if has_begun:
                raise  # there is nothing to be said any more but to hang up
            await error_response(ApiError(INTERNAL_ERROR, "Internal Server Error"))(scope, receive, send)

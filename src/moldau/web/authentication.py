"""HTTP Basic before every endpoint: whoever is not let in gets 401, and no endpoint runs without a login.

A login is `request.state.login`; where nobody has to log in it is the anonymous one, who may do everything.
"""

from __future__ import annotations

import base64
from collections.abc import Collection

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from moldau.core.clock import Clock
from moldau.security.principals import ANONYMOUS, Principal
from moldau.web.errors import ApiError, error_response
from moldau.web.logins import EVERYTHING, Judge, Login, Remembering

OPEN_PATHS = frozenset({"/health", "/ready"})
UNAUTHORIZED = 40_101
FORBIDDEN = 40_301
ANYBODY = Login(ANONYMOUS, EVERYTHING)
BASIC_CHARS_MAX = 4_096


class Authentication:
    def __init__(
        self, app: ASGIApp, judge: Judge | None, clock: Clock, realm: str, open_paths: Collection[str] = OPEN_PATHS
    ) -> None:
        self.app = app
        self.judge = None if judge is None else Remembering(judge)
        self.clock = clock
        self.realm = realm
        self.open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            login = await self._login(scope)
        except ApiError as unknown:  # nobody can tell now, which is no failure of ours
            await error_response(unknown)(scope, receive, send)
            return
        if login is None:
            headers = {"WWW-Authenticate": f'Basic realm="{self.realm}", charset="UTF-8"'}
            wrong = ApiError(UNAUTHORIZED, "Unauthorized", headers=headers)
            await error_response(wrong)(scope, receive, send)
            return
        scope.setdefault("state", {})["login"] = login
        await self.app(scope, receive, send)

    async def _login(self, scope: Scope) -> Login | None:
        if self.judge is None or scope["path"] in self.open_paths:
            return ANYBODY
        said = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        pair = None if said is None else basic_pair(said.decode("latin-1"))
        if pair is None:
            return None
        return await self.judge.judge(*pair, self.clock.elapsed_ms() / 1_000)


def basic_pair(header: str) -> tuple[str, str] | None:
    """User and password of `Authorization: Basic ...`; None if it is something else."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic" or len(encoded) > BASIC_CHARS_MAX:
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError:
        return None
    return (user, password) if colon else None


def login_of(request: Request) -> Login:
    found: Login = request.state.login
    return found


def principal_of(request: Request) -> Principal:
    return login_of(request).principal


def forbidden() -> ApiError:
    return ApiError(FORBIDDEN, "User is denied operation on this resource")

"""The HTTP application: every operation behind logins, rights and a session, and the document that lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from moldau.rest.calls import Call, answer
from moldau.rest.openapi.document import document
from moldau.rest.operations import ANYTHING, Operation
from moldau.rest.proxy import Proxy
from moldau.rest.sessions import Session
from moldau.rest.settings import RestSettings
from moldau.rest.v2.operations import operations as v2_operations
from moldau.rest.v3.operations import operations as v3_operations
from moldau.web.application import Endpoint, Surroundings, application, route
from moldau.web.authentication import forbidden, login_of
from moldau.web.limits import Limits
from moldau.web.logins import Judge


def all_operations(settings: RestSettings) -> Sequence[Operation]:
    return [*(v3_operations() if settings.is_v3 else ()), *(v2_operations() if settings.is_v2 else ())]


def made_application(proxy: Proxy, judge: Judge | None, limits: Limits) -> tuple[ASGIApp, Surroundings]:
    around = Surroundings(
        name="rest",
        expose=proxy.expose,
        look=proxy.readiness.refresh,
        unready=lambda: proxy.readiness.reasons,
        judge=judge,
        limits=limits,
    )
    operations = all_operations(proxy.settings)
    routes = [route(each.path, endpoint(proxy, each), each.method) for each in operations]
    told = document(operations, proxy.settings)

    async def openapi(_: Request) -> Response:
        return answer(told)

    async def root(_: Request) -> Response:
        return answer({})

    routes += [route("/openapi.json", openapi), route("/", root)]
    return application(routes, around), around


def is_stream(path: str) -> bool:
    """Whether a request there may have a body without an end."""
    return path.startswith("/v3/") and path.endswith("/records")


def endpoint(proxy: Proxy, operation: Operation) -> Endpoint:
    is_allowed = _rights(operation)

    async def answered(request: Request) -> Response:
        session = await proxy.session_of(request)
        call = Call(request, proxy, session)
        if not is_allowed(call):
            raise forbidden()
        session.uses += 1  # until the answer is sent: a stream is in use though nothing else is asked
        try:
            found = await operation.answer(call)
        except BaseException:
            session.uses -= 1
            raise
        return _held(found, session)

    return answered


def _held(found: Response, session: Session) -> Response:
    async def send_all(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await found(scope, receive, send)
        finally:
            session.uses -= 1

    return cast(Response, send_all)  # which is called, and asked nothing else


def _rights(operation: Operation) -> Callable[[Call], bool]:
    action, of = operation.action, operation.of
    if of == ANYTHING:
        return lambda call: login_of(call.request).may_some(action)
    if of:
        return lambda call: login_of(call.request).may(action, call.name(of))
    return lambda call: login_of(call.request).may(action)

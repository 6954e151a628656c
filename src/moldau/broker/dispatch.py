"""From a frame to a reply: find the handler by (key, version), decode, call, encode."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future
from collections.abc import Iterable
from inspect import iscoroutine
from struct import Struct
from typing import Any

from moldau.broker.answers import Encoded
from moldau.broker.api import Api
from moldau.broker.context import Context, Peer, Services
from moldau.broker.handlers.api_versions import unsupported_version
from moldau.broker.later import Later
from moldau.broker.outbox import Part
from moldau.core.errors import ProtocolViolation
from moldau.wire.api import ApiKey
from moldau.wire.codec import decoder, encoder
from moldau.wire.decoding import Decoder
from moldau.wire.encoding import Encoder
from moldau.wire.frame import read_request_header, response_parts
from moldau.wire.schema import Message

log = logging.getLogger(__name__)

_KEY_VERSION_CORRELATION = Struct(">hhi")


class HandlerFailed(ProtocolViolation):
    """A handler broke; the peer's connection is closed and nothing else is harmed."""


class Route:
    """Everything about one API at one version that can be looked up beforehand."""

    __slots__ = ("api", "decode", "encoders", "version")

    def __init__(self, api: Api, version: int) -> None:
        self.api = api
        self.version = version
        self.decode: Decoder = decoder(api.request, version)
        self.encoders: dict[type[Message], Encoder] = {}

    def reply(self, response: Message | Encoded[Any], correlation_id: int) -> list[Part]:
        if isinstance(response, Encoded):
            return response_parts(correlation_id, response.kind, self.version, response.body)
        kind = type(response)
        encode = self.encoders.get(kind)
        if encode is None:
            encode = self.encoders[kind] = encoder(kind, self.version)
        body: list[Part] = []
        try:
            encode(response, body)
        except ValueError as wrong:
            log.exception("the answer to %s can't be encoded", self)
            raise HandlerFailed(f"the answer to {self} can't be encoded: {wrong}") from None
        return response_parts(correlation_id, kind, self.version, body)

    def __str__(self) -> str:
        return f"{self.api.key.name} v{self.version}"


class Unanswered:
    """A request whose answer comes later."""

    __slots__ = ("_correlation_id", "_route", "future")

    def __init__(self, future: Future[Any] | Later[Any], route: Route, correlation_id: int) -> None:
        self.future = future
        self._route = route
        self._correlation_id = correlation_id

    def parts(self) -> list[Part] | None:
        """The reply's bytes, once the future is done. None: there is nothing to send."""
        try:
            response = self.future.result()
        except asyncio.CancelledError:
            raise ProtocolViolation(f"{self._route} was cancelled") from None
        except ProtocolViolation:
            raise
        except Exception as wrong:
            log.exception("%s failed", self._route)
            raise HandlerFailed(f"{self._route} failed: {wrong!r}") from None
        return None if response is None else self._route.reply(response, self._correlation_id)


class Dispatch:
    """The handler table at work."""

    __slots__ = ("_apis", "_routes", "_services")

    def __init__(self, table: Iterable[Api], services: Services) -> None:
        self._apis = {int(row.key): row for row in table}
        self._routes: dict[tuple[int, int], Route] = {}
        self._services = services

    def answer(self, frame: memoryview, peer: Peer) -> list[Part] | Unanswered | None:
        key, version, correlation_id = _KEY_VERSION_CORRELATION.unpack_from(frame)
        route = self._routes.get((key, version)) or self._find_route(key, version)
        if route is None:
            return unsupported_version(correlation_id, self._services.api_versions)
        api = route.api
        if api.waits:
            frame = memoryview(bytes(frame))  # the bytes under the view are reused on the next turn of the loop
        header, at = read_request_header(frame)
        request, _ = route.decode(frame, at)
        try:
            answer: Any = api.call(request, Context(self._services, header, peer))
        except ProtocolViolation:
            raise
        except Exception as wrong:
            log.exception("%s failed", route)
            raise HandlerFailed(f"{route} failed: {wrong!r}") from None
        if type(answer) in route.encoders:
            return route.reply(answer, correlation_id)
        if answer is None:
            return None
        if isinstance(answer, Future | Later):
            return Unanswered(answer, route, correlation_id)
        if iscoroutine(answer):
            return Unanswered(asyncio.ensure_future(answer), route, correlation_id)
        return route.reply(answer, correlation_id)

    def _find_route(self, key: int, version: int) -> Route | None:
        """None for the one request that is answered whatever its version."""
        api = self._apis.get(key)
        if api is None:
            raise ProtocolViolation(f"API key {key} is not supported")
        low, high = api.versions
        if not low <= version <= high:
            if key == ApiKey.API_VERSIONS:
                return None
            raise ProtocolViolation(f"{api.key.name} version {version} is not supported; {low} to {high} are")
        route = self._routes[key, version] = Route(api, version)
        return route

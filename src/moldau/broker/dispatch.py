"""From a frame to a reply: find the handler by (key, version), decode, call, encode."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future
from collections.abc import Callable, Iterable
from inspect import iscoroutine
from struct import Struct
from typing import Any, TypeAlias

from moldau.broker.api import Api
from moldau.broker.context import Context, Peer, Services
from moldau.broker.handlers.api_versions import unsupported_version
from moldau.broker.outbox import Part
from moldau.core.errors import ProtocolViolation
from moldau.wire.api import ApiKey
from moldau.wire.codec import decoder, encoder
from moldau.wire.frame import RequestHeader, read_request_header, response_parts

log = logging.getLogger(__name__)

_KEY_AND_VERSION = Struct(">hhi")
_Decode: TypeAlias = Callable[[memoryview, int], tuple[Any, int]]


class HandlerFailed(ProtocolViolation):
    """A handler broke; the peer's connection is closed and nothing else is harmed."""


class Unanswered:
    """A request whose answer comes later."""

    __slots__ = ("_header", "_name", "future")

    def __init__(self, future: Future[Any], header: RequestHeader, name: str) -> None:
        self.future = future
        self._header = header
        self._name = name

    def parts(self) -> list[Part] | None:
        """The reply's bytes, once the future is done. None: there is nothing to send."""
        try:
            response = self.future.result()
        except asyncio.CancelledError:
            raise ProtocolViolation(f"{self._name} was cancelled") from None
        except Exception as wrong:
            log.exception("%s failed", self._name)
            raise HandlerFailed(f"{self._name} failed: {wrong!r}") from None
        return None if response is None else reply(response, self._header)


class Dispatch:
    """The handler table at work."""

    __slots__ = ("_apis", "_decoders", "_services")

    def __init__(self, table: Iterable[Api], services: Services) -> None:
        self._apis = {int(row.key): row for row in table}
        self._decoders: dict[tuple[int, int], _Decode] = {}
        self._services = services

    def __call__(self, frame: memoryview, peer: Peer) -> list[Part] | Unanswered | None:
        key, version, correlation_id = _KEY_AND_VERSION.unpack_from(frame)
        decode = self._decoders.get((key, version)) or self._decoder(key, version)
        if decode is None:
            return unsupported_version(correlation_id)
        row = self._apis[key]
        if row.waits:
            frame = memoryview(bytes(frame))  # the bytes under the view are reused on the next turn of the loop
        header, at = read_request_header(frame)
        request, _ = decode(frame, at)
        try:
            answer = row.call(request, Context(self._services, header, peer))
        except ProtocolViolation:
            raise
        except Exception as wrong:
            log.exception("%s v%d failed", row.key.name, version)
            raise HandlerFailed(f"{row.key.name} failed: {wrong!r}") from None
        if answer is None:
            return None
        if iscoroutine(answer):
            return Unanswered(asyncio.ensure_future(answer), header, row.key.name)
        if isinstance(answer, Future):
            return Unanswered(answer, header, row.key.name)
        return reply(answer, header)

    def _decoder(self, key: int, version: int) -> _Decode | None:
        """The decoder of a version that we answer; None for the one request that must be answered at any version."""
        row = self._apis.get(key)
        if row is None:
            raise ProtocolViolation(f"API key {key} is not supported")
        low, high = row.versions
        if not low <= version <= high:
            if key == ApiKey.API_VERSIONS:
                return None
            raise ProtocolViolation(f"{row.key.name} version {version} is not supported; {low} to {high} are")
        decode = self._decoders[key, version] = decoder(row.request, version)
        return decode


def reply(response: Any, header: RequestHeader) -> list[Part]:
    version = header.api_version
    body: list[Part] = []
    encoder(type(response), version)(response, body)
    return response_parts(header.correlation_id, type(response), version, body)

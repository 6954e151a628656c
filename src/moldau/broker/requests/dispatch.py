"""From a frame to a reply: find the handler by (key, version), decode, call, encode."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from inspect import iscoroutine
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from moldau.broker.api import Api
from moldau.broker.context import Context, Peer, Services
from moldau.broker.handlers.api_versions import unsupported_version
from moldau.broker.network.inbox import PRODUCE
from moldau.broker.network.outbox import Part
from moldau.broker.requests.answers import FORWARD_MS, Encoded, Relayed, time_allowed_ms
from moldau.broker.requests.delayed_response import DelayedResponse
from moldau.broker.requests.large_requests import LargeRequests
from moldau.core.errors import ProtocolViolation
from moldau.core.limits import LARGE_REQUEST_BYTES, PRODUCE_ELEMENTS_MAX, RECEIVE_BYTES, REQUEST_ELEMENTS_MAX
from moldau.wire.api import ApiKey
from moldau.wire.codec import decoder, encoder
from moldau.wire.decoding import Decoder
from moldau.wire.encoding import Encoder
from moldau.wire.frame import RequestHeader, has_flexible_header, response_parts
from moldau.wire.request_header import read_request_header
from moldau.wire.schema import Message

if TYPE_CHECKING:
    from moldau.broker.metrics.metering import Metering
    from moldau.broker.quotas.throttling import Throttling
    from moldau.broker.requests.forwarding import Forwarding

_KEY_VERSION_CORRELATION = Struct(">hhi")
_CLIENT_ID = Struct(">h")
_NAMES = {int(key): key.name for key in ApiKey}
_WAITING = frozenset({ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
_CLIENT_ID_CHARS_MAX = 100  # of what a line in the log repeats; a client id may have 32,767


class Route:
    """Everything about one API at one version that can be looked up beforehand."""

    __slots__ = ("api", "call", "decode", "encoders", "is_forwarded", "version", "waits")

    def __init__(self, api: Api, version: int) -> None:
        self.api = api
        self.call = api.call
        self.is_forwarded = api.forwarded and not api.splits
        self.waits = api.waits or self.is_forwarded
        self.version = version
        elements_max = PRODUCE_ELEMENTS_MAX if api.key == PRODUCE else REQUEST_ELEMENTS_MAX
        self.decode: Decoder = decoder(api.request, version, elements_max)
        self.encoders: dict[type[Message], tuple[Encoder, bool]] = {}  # and whether its header is flexible

    def reply(self, response: Message | Encoded[Any] | Relayed, correlation_id: int) -> list[Part]:
        if isinstance(response, Relayed):
            return response.parts()
        if isinstance(response, Encoded):
            flexible = has_flexible_header(response.kind, self.version)
            # Behind a part of its own: the first one may be many megabytes long, and the header is put before it.
            return response_parts(correlation_id, [b"", *response.body], is_flexible=flexible)
        kind = type(response)
        known = self.encoders.get(kind)
        if known is None:
            known = self.encoders[kind] = encoder(kind, self.version), has_flexible_header(kind, self.version)
        encode, is_flexible = known
        body: list[Part] = []
        encode(response, body)
        return response_parts(correlation_id, body, is_flexible=is_flexible)


class Unanswered:
    """A request whose answer comes later."""

    __slots__ = ("_header", "_route", "future")

    at_once: Sequence[Part] = ()
    """What is sent before anything is waited for."""
    pause_ms: int = 0
    """Once the parts are known: for how long the client's next request is not looked at."""
    may_pause: bool = False
    """Whether the client pauses, or may have to when it is answered."""

    def __init__(self, future: Future[Any] | DelayedResponse[Any], route: Route, header: RequestHeader) -> None:
        self.future = future
        self._route = route
        self._header = header

    def parts(self) -> list[Part] | None:
        """The reply's bytes, once the future is done. None: there is nothing to send."""
        response = self.response()
        return None if response is None else self._route.reply(response, self._header.correlation_id)

    def response(self) -> Any:
        try:
            return self.future.result()
        except asyncio.CancelledError:
            raise ProtocolViolation("the request was cancelled") from None

    @property
    def api(self) -> ApiKey | None:
        """What was asked."""
        return self._route.api.key

    @property
    def waits_for_others(self) -> bool:
        """For records or members, which may take as long as the client says and changes nothing when it is given up."""
        return isinstance(self.future, DelayedResponse) or self._route.api.key in _WAITING

    def __str__(self) -> str:
        header = self._header
        return _described(header.api_key, header.api_version, header.correlation_id, header.client_id)


class Muted(Unanswered):
    """A client that has to pause: its answer is sent, and what it asks next is looked at when the time is over."""

    __slots__ = ("_timer", "at_once")

    may_pause = True

    def __init__(self, pause_ms: int, at_once: Sequence[Part] = ()) -> None:
        self.future = DelayedResponse(self._cancel)
        self.at_once = at_once
        self._timer = asyncio.get_running_loop().call_later(pause_ms / 1_000, self.end)

    def end(self) -> None:
        self._timer.cancel()
        self.future.set_result(None)

    def parts(self) -> list[Part] | None:
        return None

    @property
    def api(self) -> ApiKey | None:
        return None

    @property
    def waits_for_others(self) -> bool:
        return True

    def __str__(self) -> str:
        return "a pause"

    def _cancel(self) -> None:
        self._timer.cancel()


class Begun(NamedTuple):
    """A request in the hands of its handler, and what it gave: a response, none, or one to come."""

    route: Route
    context: Any
    answer: Any
    request: Any = None
    """None where it was not decoded, or in parts."""


class Dispatch:
    """The handler table at work."""

    __slots__ = ("_apis", "_large", "_metering", "_routes", "_services", "_throttling", "answer")

    def __init__(self, table: Iterable[Api], services: Services) -> None:
        self._apis = {int(row.key): row for row in table}
        self._routes: dict[tuple[int, int], Route] = {}
        self._services = services
        self._large = LargeRequests(services)
        self._throttling: Throttling | None = None
        self._metering: Metering | None = None
        self.answer: Callable[[memoryview, Peer], list[Part] | Unanswered | None] = self._answer
        """What to send to whom. It is another one where requests are counted, and while clients have quotas, so that
        nobody else pays for a look."""

    def limit(self, throttling: Throttling | None) -> None:
        """Answer within these quotas from now on, or without any."""
        self._throttling = throttling
        self._choose()

    def meter(self, metering: Metering) -> None:
        """Count what is answered from now on."""
        self._metering = metering
        self._choose()

    def _choose(self) -> None:
        if self._throttling is not None:
            self._throttling.metering = self._metering
            self.answer = partial(self._throttling.answer, self)
        else:
            self.answer = self._answer if self._metering is None else partial(self._metering.answer, self)

    def _answer(self, frame: memoryview, peer: Peer) -> list[Part] | Unanswered | None:
        """Whatever is raised, by a handler too, ends the connection; `describe` names the request."""
        key, version, correlation_id = _KEY_VERSION_CORRELATION.unpack_from(frame)
        route = self._routes.get((key, version)) or self._find_route(key, version)
        if route is None:
            return unsupported_version(correlation_id, self._services.api_versions)
        is_large = len(frame) > LARGE_REQUEST_BYTES and key != PRODUCE
        if is_large or route.waits:
            if len(frame) <= RECEIVE_BYTES:
                # The bytes under the view are reused on the next turn of the loop; a longer one has memory of its own.
                frame = memoryview(bytes(frame))
            if route.is_forwarded and not self._services.controller.is_active and self._services.forwarding is not None:
                return self._forward(frame, route, peer, self._services.forwarding)
        header, at = read_request_header(frame)
        if is_large:
            context = Context(self._services, header, peer)
            work = self._large.answer(frame, at, api=route.api, decode=route.decode, context=context)
            return Unanswered(asyncio.ensure_future(work), route, header)
        request, _ = route.decode(frame, at)
        answer: Any = route.call(request, Context(self._services, header, peer))
        if (known := route.encoders.get(type(answer))) is not None:  # `reply`, without a call for every request
            body: list[Part] = []
            known[0](answer, body)
            return response_parts(correlation_id, body, is_flexible=known[1])
        if answer is None:
            return None
        if iscoroutine(answer):
            answer = asyncio.ensure_future(answer)
        if isinstance(answer, Future | DelayedResponse):
            unanswered = Unanswered(answer, route, header)
            return unanswered.parts() if answer.done() else unanswered
        return route.reply(answer, correlation_id)

    def begun(
        self,
        frame: memoryview,
        peer: Peer,
        context_of: Callable[[Services, RequestHeader, Peer], Context] = Context,
        running: Callable[[Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]] = lambda work: work,
    ) -> Begun | list[Part]:
        """`answer` up to where a response is encoded, for whoever looks at it before; the bytes of one that is not."""
        key, version, correlation_id = _KEY_VERSION_CORRELATION.unpack_from(frame)
        route = self._routes.get((key, version)) or self._find_route(key, version)
        if route is None:
            return unsupported_version(correlation_id, self._services.api_versions)
        is_large = len(frame) > LARGE_REQUEST_BYTES and key != PRODUCE
        if (is_large or route.waits) and len(frame) <= RECEIVE_BYTES:
            frame = memoryview(bytes(frame))
        header, at = read_request_header(frame)
        context = context_of(self._services, header, peer)
        answer: Any
        request = None
        if route.is_forwarded and not self._services.controller.is_active and self._services.forwarding is not None:
            answer = self._relayed(frame, at, route, context, self._services.forwarding)
        elif is_large:
            answer = self._large.answer(frame, at, api=route.api, decode=route.decode, context=context)
        else:
            request = route.decode(frame, at)[0]
            answer = route.call(request, context)
        if iscoroutine(answer):
            answer = asyncio.ensure_future(running(answer))
        return Begun(route, context, answer, request)

    def is_forwarded(self, key: int) -> bool:
        """Whether other brokers send requests of this API on to the controller."""
        api = self._apis.get(key)
        return api is not None and api.forwarded

    async def answered(self, frame: memoryview, peer: Peer) -> bytes:
        """The answer to a request that came in another one, with its size; none of these is read from a file."""
        begun = self.begun(frame, peer)
        if not isinstance(begun, Begun):
            return b"".join(cast("list[bytes]", begun))
        route, context, answer, _ = begun
        assert not isinstance(answer, DelayedResponse), "no request that waits for records is forwarded"
        response = await answer if isinstance(answer, Future) else answer
        parts = [] if response is None else route.reply(response, context.header.correlation_id)
        return b"".join(cast("list[bytes]", parts))

    def _forward(self, frame: memoryview, route: Route, peer: Peer, forwarding: Forwarding) -> Unanswered:
        header, at = read_request_header(frame)
        context = Context(self._services, header, peer)
        return Unanswered(asyncio.ensure_future(self._relayed(frame, at, route, context, forwarding)), route, header)

    async def _relayed(self, frame: memoryview, at: int, route: Route, context: Context, forwarding: Forwarding) -> Any:
        is_large = len(frame) > LARGE_REQUEST_BYTES
        timeout_ms = FORWARD_MS if is_large else time_allowed_ms(route.decode(frame, at)[0])
        relayed = await forwarding.relay(frame, context.peer, timeout_ms=timeout_ms)
        if relayed is not None:
            return relayed
        # The handler here says NOT_CONTROLLER in the words of its API, unless this broker was elected meanwhile.
        return await self._large.answer(frame, at, api=route.api, decode=route.decode, context=context)

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


def describe(asked: memoryview | Unanswered) -> str:
    """A request in words for the log, even one whose header is wrong."""
    if isinstance(asked, Unanswered):
        return str(asked)
    key, version, correlation_id = _KEY_VERSION_CORRELATION.unpack_from(asked)
    at = _KEY_VERSION_CORRELATION.size
    size = _CLIENT_ID.unpack_from(asked, at)[0] if len(asked) >= at + _CLIENT_ID.size else -1
    at += _CLIENT_ID.size
    client_id = None if size < 0 else str(asked[at : at + size], "utf-8", "replace")
    return _described(key, version, correlation_id, client_id)


def _described(key: int, version: int, correlation_id: int, client_id: str | None) -> str:
    name = _NAMES.get(key, f"API key {key}")
    who = "" if client_id is None else client_id[:_CLIENT_ID_CHARS_MAX]
    return f"{name} v{version}, correlation id {correlation_id}, client id {who!r}"

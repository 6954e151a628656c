"""Asking other brokers: the client half of the protocol, for followers, coordinators and whoever needs the controller.

A channel is one connection to one broker, made when somebody asks and made anew, after a pause that grows, when it was
lost. Brokers answer in order, so questions may follow each other before the first is answered; and because a question
stands behind those before it, each purpose has a channel of its own.
"""

from __future__ import annotations

import asyncio
import random
import socket
from asyncio import Future
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from typing import Any, Protocol

from moldau.core.errors import ProtocolViolation
from moldau.core.limits import CHANNEL_RESPONSE_BYTES_MAX, FRAME_BYTES_MAX
from moldau.replication.channel_connection import (
    AuthenticationFailed,
    ChannelError,
    Connection,
    TimedOut,
    Unreachable,
)
from moldau.wire.codec import decoder, encode_parts, is_flexible
from moldau.wire.frame import RequestHeader, read_response_header, request_parts
from moldau.wire.messages.registry import RESPONSES
from moldau.wire.schema import Message

__all__ = [
    "AuthenticationFailed",
    "BrokerChannel",
    "BrokerChannels",
    "ChannelError",
    "TimedOut",
    "Unreachable",
    "ask_while",
]

# Kafka's defaults for the clients inside its brokers, reconnect.backoff.ms and reconnect.backoff.max.ms.
BACKOFF_MS = 50
BACKOFF_MS_MAX = 1_000
BACKOFF_JITTER = 0.2
CONNECT_S_MAX = 10.0  # Kafka's socket.connection.setup.timeout.ms
CORRELATION_ID_MAX = 2**31 - 1
LOOK_S = 0.2  # until who waits for a silent broker sees that another is to be asked


class Endpoint(Protocol):
    """Where a broker listens for other brokers."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


class Channel(Protocol):
    def ask(self, request: Message, version: int, *, timeout_ms: int) -> Awaitable[Any]: ...


class Security(Protocol):
    """What protects a channel: TLS, SASL or both. A plain channel has none."""

    async def secure(self, plain: socket.socket, host: str, made: Callable[[], Connection]) -> Connection:
        """A connection that may ask, over a socket that is connected. AuthenticationFailed, ChannelError or OSError."""
        ...


class BrokerChannel:
    """One connection to one broker."""

    __slots__ = (
        "_broker_id",
        "_client_id",
        "_connecting",
        "_connection",
        "_correlation_id",
        "_endpoint_of",
        "_failures",
        "_is_closed",
        "_jitter",
        "_not_before_s",
        "_on_unreachable",
        "_response_bytes_max",
        "_security",
    )

    def __init__(
        self,
        broker_id: int,
        endpoint_of: Callable[[int], Endpoint | None],
        *,
        client_id: str,
        on_unreachable: Callable[[int], None],
        jitter: Callable[[], float] = random.random,
        response_bytes_max: int = CHANNEL_RESPONSE_BYTES_MAX,
        security: Security | None = None,
    ) -> None:
        self._broker_id = broker_id
        self._endpoint_of = endpoint_of
        self._client_id = client_id
        self._on_unreachable = on_unreachable
        self._jitter = jitter
        self._response_bytes_max = response_bytes_max
        self._security = security
        self._connection: Connection | None = None
        self._connecting: Future[Connection] | None = None
        self._correlation_id = -1
        self._failures = 0
        self._not_before_s = 0.0
        self._is_closed = False

    async def ask(self, request: Message, version: int, *, timeout_ms: int) -> Any:
        """The decoded response; its records and other bytes are views of a buffer that nobody else has.

        The time-out counts from now, with connecting and all that was asked before. A question that was not answered in
        time takes the connection with it: answers are in order, so nothing behind it would be answered either.
        """
        connection: Connection | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                connection = await self._connected()
                await connection.writable()
                answer = connection.send(*self._framed(request, version))
                frame = await answer
        except TimeoutError:
            wrong = TimedOut(f"broker {self._broker_id} did not answer {type(request).__name__} in {timeout_ms} ms")
            if connection is not None:
                connection.fail(wrong)
            raise wrong from None
        self._failures = 0
        return self._decoded(connection, frame, _response_to()[request.API_KEY], version)

    async def close(self) -> None:
        """Whoever waits for an answer is told that there will be none."""
        self._is_closed = True
        connecting = self._connecting
        if connecting is not None:
            connecting.cancel()
            await asyncio.wait([connecting])
        if self._connection is not None:
            self._connection.fail(ChannelError(f"the channel to broker {self._broker_id} was closed"))
            await self._connection.is_lost

    def give_up(self, reason: str) -> None:
        """Whoever waits is told at once, and who asks next has another connection."""
        if self._connection is not None:
            self._connection.fail(ChannelError(f"broker {self._broker_id} is given up: {reason}"))

    def _framed(self, request: Message, version: int) -> tuple[list[Any], int]:
        self._correlation_id = (self._correlation_id + 1) & CORRELATION_ID_MAX
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        parts = request_parts(header, encode_parts(request, version), is_flexible=is_flexible(type(request), version))
        size = sum(map(len, parts))
        if size > FRAME_BYTES_MAX:
            raise ChannelError(f"{type(request).__name__} takes {size} bytes; a frame may have {FRAME_BYTES_MAX}")
        return parts, self._correlation_id

    def _decoded(self, connection: Connection, frame: memoryview, response: type[Message], version: int) -> Any:
        try:
            at = read_response_header(frame, response, version)[1]
            return decoder(response, version)(frame, at)[0]
        except ProtocolViolation as violation:
            wrong = ChannelError(f"broker {self._broker_id} sent no {response.__name__} v{version}: {violation}")
            connection.fail(wrong)
            raise wrong from violation

    async def _connected(self) -> Connection:
        if self._is_closed:
            raise ChannelError(f"the channel to broker {self._broker_id} was closed")
        if self._connection is not None and self._connection.is_usable:
            return self._connection
        if self._connecting is None:
            self._connecting = asyncio.ensure_future(self._connect())
            self._connecting.add_done_callback(self._connect_ended)
        try:
            # Others wait for the same connection, which must not end because one of them gives up.
            return await asyncio.shield(self._connecting)
        except asyncio.CancelledError:
            if self._is_closed:
                raise ChannelError(f"the channel to broker {self._broker_id} was closed") from None
            raise

    def _connect_ended(self, connecting: Future[Connection]) -> None:
        self._connecting = None
        if not connecting.cancelled():
            connecting.exception()  # nobody may be left who asks for it

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        if self._failures:
            await asyncio.sleep(max(0.0, self._not_before_s - loop.time()))
        try:
            connection = await self._connect_once()
        except (ChannelError, OSError) as wrong:
            self._back_off(loop.time())
            where = f"broker {self._broker_id} can't be reached"
            if isinstance(wrong, ConnectionRefusedError | ConnectionResetError):
                self._on_unreachable(self._broker_id)
                raise Unreachable(f"{where}: connection refused") from wrong
            if isinstance(wrong, TimeoutError):
                raise TimedOut(f"{where}: no answer in {CONNECT_S_MAX:g} s") from wrong
            if isinstance(wrong, AuthenticationFailed):
                raise AuthenticationFailed(f"{where}: {wrong}") from None
            raise ChannelError(f"{where}: {wrong}") from wrong
        # A peer that takes connections and answers nothing gets pauses that grow, too: the first answer ends them.
        self._back_off(loop.time())
        self._connection = connection
        connection.is_lost.add_done_callback(partial(self._lost, connection))
        return connection

    async def _connect_once(self) -> Connection:
        endpoint = self._endpoint_of(self._broker_id)
        if endpoint is None:
            raise ChannelError("it is not in the cluster, or has no listener for brokers")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_S_MAX):
            found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
            wrong: OSError | None = None
            for family, kind, protocol, _, address in found:
                try:
                    return await self._connect_to(address, family, kind, protocol, endpoint.host)
                except OSError as refused:
                    wrong = refused
        raise wrong or OSError(f"{endpoint.host} has no address")

    async def _connect_to(self, address: Any, family: int, kind: int, protocol: int, host: str) -> Connection:
        loop = asyncio.get_running_loop()
        plain = socket.socket(family, kind, protocol)
        try:
            plain.setblocking(False)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(plain, address)
            if self._security is not None:
                return await self._security.secure(plain, host, self._new_connection)
            return (await loop.create_connection(self._new_connection, sock=plain))[1]
        except BaseException:
            plain.close()
            raise

    def _new_connection(self) -> Connection:
        return Connection(self._broker_id, self._response_bytes_max)

    def _back_off(self, now_s: float) -> None:
        pause_ms = min(BACKOFF_MS << min(self._failures, 16), BACKOFF_MS_MAX)
        spread = 1 + BACKOFF_JITTER * (2 * self._jitter() - 1)
        self._failures += 1
        self._not_before_s = now_s + pause_ms * spread / 1_000

    def _lost(self, connection: Connection, is_lost: Future[bool]) -> None:
        if self._connection is connection:
            self._connection = None
        if is_lost.result() and not self._is_closed:
            self._on_unreachable(self._broker_id)


class BrokerChannels:
    """The channels of one broker to all others, each made when it is asked for first.

    They are kept by purpose, so that a long poll never stands before a short question.
    """

    def __init__(
        self,
        endpoint_of: Callable[[int], Endpoint | None],
        *,
        client_id: str,
        jitter: Callable[[], float] = random.random,
        security: Security | None = None,
    ) -> None:
        self.on_unreachable: Callable[[int], None] | None = None
        """Told, with a broker's id, when its port refuses or a connection broke under a question."""
        self._endpoint_of = endpoint_of
        self._client_id = client_id
        self._jitter = jitter
        self._security = security
        self._channels: dict[tuple[int, str], BrokerChannel] = {}

    def to(self, broker_id: int, purpose: str) -> BrokerChannel:
        channel = self._channels.get((broker_id, purpose))
        if channel is None:
            channel = self._channels[broker_id, purpose] = BrokerChannel(
                broker_id,
                self._endpoint_of,
                client_id=self._client_id,
                on_unreachable=self._unreachable,
                jitter=self._jitter,
                security=self._security,
            )
        return channel

    def give_up(self, broker_id: int, reason: str) -> None:
        """Nobody waits any longer for what was asked of a broker."""
        for (asked, _), channel in self._channels.items():
            if asked == broker_id:
                channel.give_up(reason)

    async def forget(self, broker_id: int) -> None:
        """Close what leads to a broker that is no longer in the cluster."""
        gone = [key for key in self._channels if key[0] == broker_id]
        await asyncio.gather(*(self._channels.pop(key).close() for key in gone))

    async def close(self) -> None:
        channels, self._channels = self._channels, {}
        await asyncio.gather(*(channel.close() for channel in channels.values()))

    def _unreachable(self, broker_id: int) -> None:
        if self.on_unreachable is not None:
            self.on_unreachable(broker_id)


async def ask_while(
    is_asked: Callable[[], bool], channel: Channel, request: Message, version: int, *, timeout_ms: int
) -> Any:
    """The response. ChannelError also when the broker is no longer the one to ask: it may be silent for long."""
    asking = asyncio.ensure_future(channel.ask(request, version, timeout_ms=timeout_ms))
    try:
        while not asking.done():
            await asyncio.wait([asking], timeout=LOOK_S)
            if not asking.done() and not is_asked():
                raise ChannelError(f"another broker is to be asked for {type(request).__name__} by now")
    finally:
        asking.cancel()
    return asking.result()


@cache
def _response_to() -> Mapping[int, type[Message]]:
    return {response.API_KEY: response for response in RESPONSES}

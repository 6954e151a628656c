"""What only the controller can do, asked of it by a broker that is not it.

A client's request goes to the controller in an envelope, as it came, and the controller's answer to the client. Who the
controller is may just be changing, so it is asked again until somebody is it or the time is up.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from moldau.broker.context import Peer
from moldau.broker.peers import Peers
from moldau.broker.requests.answers import FORWARD_MS, Relayed
from moldau.controller.image import NO_CONTROLLER, ClusterImage
from moldau.controller.runtime import Controller
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.replication.channel_connection import ChannelError
from moldau.security.principals import serialized
from moldau.wire.codec import decode, encode_parts, is_flexible
from moldau.wire.frame import SIZE_BYTES, RequestHeader, read_response_header, request_parts
from moldau.wire.messages.envelope import EnvelopeRequest
from moldau.wire.schema import Message

LOGGER = logging.getLogger(__name__)

ENVELOPE_VERSION = 0
RETRY_S = 0.1  # Kafka's: until another controller is known it takes a few of them
FORWARDED, OWN = "forwarding", "controller"  # channels: what brokers need must not wait for what clients want


class Forwarding:
    def __init__(self, broker_id: int, controller: Controller, peers: Peers) -> None:
        self._broker_id = broker_id
        self._controller = controller
        self._peers = peers

    async def relay(self, frame: memoryview, peer: Peer | None, *, timeout_ms: int) -> Relayed | None:
        """For a client, or for this broker itself, with its own rights, if there is no peer.

        None when nobody answered as the controller in time, and when this broker has become it.

        Raises ProtocolViolation when the controller does not know this version of the API: the client has to connect
        anew and ask for versions again.
        """
        principal = None if peer is None else serialized(peer.principal)
        request = EnvelopeRequest(frame, principal, _packed("" if peer is None else peer.host))
        response = await self.ask(request, ENVELOPE_VERSION, timeout_ms=timeout_ms, purpose=FORWARDED)
        if response is None:
            return None
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise ProtocolViolation("the controller does not know this version")
        if response.error_code != ErrorCode.NONE or response.response_data is None:
            LOGGER.error("the controller refused a forwarded request: error %d", response.error_code)
            return None
        return Relayed(response.response_data)

    async def ask_for_client(
        self,
        request: Message,
        version: int,
        response: type[Message],
        *,
        header: RequestHeader,
        peer: Peer | None,
        timeout_ms: int,
    ) -> Any | None:
        """The controller's response to a request that is made here on behalf of a client; None as for `relay`.

        What a client's question needs and no client may do itself has no peer: it is this broker that asks for it.
        """
        inner = RequestHeader(request.API_KEY, version, header.correlation_id, header.client_id)
        parts = request_parts(inner, encode_parts(request, version), is_flexible=is_flexible(type(request), version))
        frame = memoryview(b"".join(parts))[SIZE_BYTES:]
        relayed = await self.relay(frame, peer, timeout_ms=timeout_ms)
        if relayed is None:
            return None
        answer = memoryview(relayed.frame)
        at = read_response_header(answer, response, version)[1]
        return decode(response, version, answer, at)[0]

    async def ask(self, request: Message, version: int, *, timeout_ms: int, purpose: str = OWN) -> Any | None:
        """The response to a question of this broker's own, of an API whose response has one error code."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1_000
        while not self._controller.is_active and (left_s := deadline_s - loop.time()) > 0:
            controller_id = self._controller.image.controller_id
            if controller_id not in (NO_CONTROLLER, self._broker_id):
                try:
                    response = await self._ask_one(controller_id, request, version, left_s, purpose)
                except ChannelError as wrong:
                    LOGGER.debug("the controller, broker %d, does not answer: %s", controller_id, wrong)
                else:
                    if response.error_code != ErrorCode.NOT_CONTROLLER:
                        return response
            await asyncio.sleep(min(RETRY_S, left_s))
        return None

    async def _ask_one(self, controller_id: int, request: Message, version: int, left_s: float, purpose: str) -> Any:
        """A client that has little time leaves the connection as it is: with it, what others asked would be lost and be
        asked for again, and may be done twice. The connection ends when the controller is silent for longer."""
        from moldau.replication.channel import ask_while  # a broker that is alone asks nobody

        asking = asyncio.ensure_future(
            ask_while(
                lambda: self._controller.image.controller_id == controller_id,
                self._peers.channels.to(controller_id, purpose),
                request,
                version,
                timeout_ms=max(int(left_s * 1_000) + 1, FORWARD_MS),
            )
        )
        try:
            await asyncio.wait([asking], timeout=left_s)
        except asyncio.CancelledError:
            asking.cancel()
            raise
        if asking.done():
            return asking.result()
        asking.add_done_callback(lambda late: late.cancelled() or late.exception())
        raise ChannelError(f"no answer to {type(request).__name__} in {left_s:.1f} s")

    async def seen(self, is_so: Callable[[ClusterImage], bool]) -> None:
        """Wait until this broker has learned of what the controller did."""
        if is_so(self._controller.image):
            return
        seen = asyncio.get_running_loop().create_future()

        def look(_: ClusterImage, new: ClusterImage) -> None:
            if is_so(new) and not seen.done():
                seen.set_result(None)

        unsubscribe = self._controller.subscribe(look)
        try:
            await seen
        finally:
            unsubscribe()


def _packed(host: str) -> bytes:
    """An address as Java's InetAddress has it; without the zone of a link-local one, which means nothing elsewhere."""
    try:
        return ip_address(host.partition("%")[0]).packed
    except ValueError:  # of a local socket
        return socket.inet_aton("127.0.0.1")

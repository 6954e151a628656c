"""The other brokers of the cluster, and the channels to them. A broker that is alone loads and opens nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.controller.image import ClusterImage, Endpoint
from moldau.core.config.listeners import PLAINTEXT

if TYPE_CHECKING:
    from moldau.replication.channel import BrokerChannels, Security


class Peers:
    def __init__(
        self,
        broker_id: int,
        image: Callable[[], ClusterImage],
        *,
        listener_name: str,
        security: Callable[[], Security] | None = None,
        protocol: str = PLAINTEXT,
    ) -> None:
        """`listener_name` is the listener that brokers use among themselves; one that is not plain has `security`."""
        self._broker_id = broker_id
        self._image = image
        self.listener_name = listener_name
        self._security = security
        self._protocol = protocol
        self.on_unreachable: Callable[[int], None] | None = None
        """Told, with a broker's id, when its port refuses or a connection broke under a question."""
        self._channels: BrokerChannels | None = None

    @property
    def channels(self) -> BrokerChannels:
        if self._channels is None:
            from moldau.replication.channel import BrokerChannels

            security = None if self._security is None else self._security()
            self._channels = BrokerChannels(self.endpoint_of, client_id=f"broker-{self._broker_id}", security=security)
            self._channels.on_unreachable = self._tell
        return self._channels

    def endpoint_of(self, broker_id: int) -> Endpoint | None:
        broker = self._image().brokers.get(broker_id)
        if broker is None:
            return None
        named = broker.endpoints.get(self.listener_name)
        # A broker with one listener has it for everybody, whatever its name is. Nobody logs in where TLS is missing.
        found = [named] if named is not None else broker.endpoints.values()
        return next((each for each in found if each.security == self._protocol), None)

    def give_up(self, broker_id: int, reason: str) -> None:
        if self._channels is not None:
            self._channels.give_up(broker_id, reason)

    def _tell(self, broker_id: int) -> None:
        if self.on_unreachable is not None:
            self.on_unreachable(broker_id)

    async def close(self) -> None:
        """Whoever waits for another broker is told."""
        if self._channels is not None:
            await self._channels.close()

"""What a broker does about others whose ports refuse."""

from __future__ import annotations

import asyncio
from typing import Any

from moldau.controller.image import BrokerImage, ClusterImage, Endpoint
from moldau.controller.members.registration import BrokerRegistration, encode_registration
from moldau.node.cluster.evidence import Evidence
from moldau.store.store import Registration
from tests.controller.test_runtime import run, until
from tests.replication.test_channel import refused_port

OTHER = 2


class Cluster:
    """Of a cluster, another broker: in its store, and in the image of this one."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.evicted: list[bytes] = []
        self.next: tuple[bytes, int] | None = None  # the incarnation that comes back at once, and its port
        self._registered: list[Registration] = []
        self._listeners: list[Any] = []

    def subscribe(self, listener: Any) -> Any:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def take_in(self, incarnation: bytes, port: int) -> None:
        endpoints = {"PLAINTEXT": Endpoint("127.0.0.1", port)}
        self._registered = [encode_registration(BrokerRegistration(OTHER, incarnation, endpoints))]
        before = self.image
        self.image = ClusterImage(brokers={OTHER: BrokerImage(OTHER, endpoints, incarnation=incarnation)})
        for listener in self._listeners:
            listener(before, self.image)

    async def registrations(self) -> list[Registration]:
        return self._registered

    async def evict(self, _: Registration) -> bool:
        self.evicted.append(self.image.brokers[OTHER].incarnation)
        if self.next is not None:
            self.take_in(*self.next)
            self.next = None
        return True


def test_a_broker_that_came_back_at_once_is_suspected_again() -> None:
    async def test() -> None:
        cluster: Any = Cluster()
        cluster.take_in(b"first", refused_port())
        evidence = Evidence(cluster, cluster, listener_name="PLAINTEXT")
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        cluster.next = b"second", server.sockets[0].getsockname()[1]
        evidence.suspect(OTHER)
        await until(lambda: not evidence._tasks)
        server.close()
        await server.wait_closed()
        evidence.suspect(OTHER)
        await until(lambda: not evidence._tasks)
        assert cluster.evicted == [b"first", b"second"]
        await evidence.stop()

    run(test)

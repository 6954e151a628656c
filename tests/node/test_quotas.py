"""Quotas of a broker that runs are there while any is set, and only then."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

from moldau.broker.network.connection_quotas import ConnectionQuotas
from moldau.controller.image import ClusterImage, QuotaEntity
from moldau.controller.settings.quotas import quota_entity
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.node.quotas import enforce_quotas
from tests.coordinator.loops import on_a_loop

APP = quota_entity([("client-id", "app")])
LOCAL = quota_entity([("ip", "127.0.0.1")])


class World:
    """The services that quotas need, with an image that changes."""

    def __init__(self) -> None:
        self.config, self.clock = BrokerConfig(), SystemClock()
        self.quotas: Any = None
        self.limits: list[Any] = []
        self.dispatch = SimpleNamespace(limit=self.limits.append)
        self.controller = SimpleNamespace(image=ClusterImage(), subscribe=self._subscribe)
        self.connections = ConnectionQuotas()

    def _subscribe(self, listener: Any) -> Any:
        self._tell = listener
        return lambda: None

    def change(self, quotas: dict[QuotaEntity, dict[str, float]]) -> None:
        old, new = self.controller.image, ClusterImage(client_quotas=quotas)
        self.controller.image = new
        self._tell(old, new)


@on_a_loop
async def test_requests_are_limited_while_a_client_has_a_quota() -> None:
    world: Any = World()
    async with AsyncExitStack() as running:
        enforce_quotas(world, world.connections, running)
        assert world.limits == []
        world.change({APP: {"producer_byte_rate": 1.0}})
        throttling = world.quotas
        assert throttling is not None
        world.change({APP: {"producer_byte_rate": 2.0}})
        assert world.quotas is throttling, "rates outlive a change"
        world.change({LOCAL: {"connection_creation_rate": 1.0}})
        assert world.quotas is None
        assert world.limits == [throttling, None]


def test_a_broker_without_quotas_loads_nothing_of_them() -> None:
    look = (
        "import sys, moldau.node.server;"
        "print([name for name in sys.modules if name.startswith(('moldau.broker.quotas', 'moldau.cli'))])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

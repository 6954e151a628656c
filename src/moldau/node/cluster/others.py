"""How the other brokers of a cluster are asked. A broker that is alone loads nothing of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

from moldau.broker.peers import Peers
from moldau.broker.producing.remote_admission import RemoteAdmission
from moldau.broker.producing.remote_markers import RemoteMarkers
from moldau.broker.requests.forwarding import Forwarding
from moldau.broker.requests.producer_id_blocks import block_elsewhere
from moldau.controller.runtime import Controller
from moldau.core.config.broker import BrokerConfig


class OtherBrokers(NamedTuple):
    forwarding: Forwarding
    markers: RemoteMarkers
    admission: RemoteAdmission
    producer_ids: Callable[[], Awaitable[range | None]]


def other_brokers(config: BrokerConfig, controller: Controller, peers: Peers, running: AsyncExitStack) -> OtherBrokers:
    forwarding = Forwarding(config.node_id, controller, peers)
    timeout_ms = config.int("request.timeout.ms")
    markers = RemoteMarkers(peers, timeout_ms=timeout_ms)
    running.push_async_callback(markers.close)
    admission = RemoteAdmission(peers, timeout_ms=timeout_ms)
    running.push_async_callback(admission.close)
    elsewhere = partial(block_elsewhere, config.node_id, controller, forwarding)
    return OtherBrokers(forwarding, markers, admission, elsewhere)

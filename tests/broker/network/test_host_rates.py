"""How fast one address may connect, by its quota."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

from moldau.broker.context import Services
from moldau.broker.network.connection_quotas import ConnectionQuotas
from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.host_rates import HostLimits, HostRates
from moldau.broker.network.listener import ConnectionLimits, Listener
from moldau.broker.requests.dispatch import Dispatch

WAIT_S_MAX = 20.0


def rates(limits: HostLimits, hosts_max: int = 100) -> HostRates:
    return HostRates(limits, windows=11, window_s=1.0, hosts_max=hosts_max)


def opened(limited: HostRates, host: str, now_s: float = 0.0) -> int:
    """How many connections may come at once."""
    count = 0
    while count < 1_000 and limited.wait_s(host, now_s) == 0:
        count += 1
    return count


def test_an_address_has_its_own_rate_or_the_default_one() -> None:
    limited = rates(HostLimits({"10.0.0.1": 2}, 5))
    assert opened(limited, "10.0.0.1") == 20
    assert opened(limited, "10.0.0.2") == 50
    assert opened(limited, "10.0.0.3") == 50
    assert opened(rates(HostLimits({"10.0.0.1": 2})), "10.0.0.2") == 1_000, "who is not named is not limited"


def test_a_connection_above_the_rate_pauses_for_a_window_at_most_and_is_not_counted() -> None:
    limited = rates(HostLimits({}, 1))
    assert opened(limited, "10.0.0.1") == 10
    assert limited.wait_s("10.0.0.1", 0.5) == 0.5 + 0.5
    assert limited.wait_s("10.0.0.1", 10.6) > 0
    assert limited.wait_s("10.0.0.1", 11.0) == 0


def test_another_limit_begins_anew_for_those_that_it_changes() -> None:
    limited = rates(HostLimits({"10.0.0.1": 1, "10.0.0.2": 1}))
    assert opened(limited, "10.0.0.1") == opened(limited, "10.0.0.2") == 10
    limited.limit(HostLimits({"10.0.0.1": 1, "10.0.0.2": 2}))
    assert opened(limited, "10.0.0.1") == 0
    assert opened(limited, "10.0.0.2") == 20


def test_many_addresses_take_no_more_memory() -> None:
    limited = rates(HostLimits({}, 1), hosts_max=10)
    for number in range(100):
        limited.wait_s(f"10.0.0.{number}", 0.0)
    assert len(limited) == 10


def test_a_throttled_connection_is_accepted_not_served_and_closed() -> None:
    async def test() -> None:
        quotas = ConnectionQuotas()
        quotas.host_rates = HostRates(HostLimits({"127.0.0.1": 1}), windows=2, window_s=0.2)
        listener = Listener("PLAINTEXT")
        listener.bind("127.0.0.1", 0)
        listener.start(Dispatch((), cast("Services", None)), ConnectionLimits(), FrameBudget(), quotas)
        loop = asyncio.get_running_loop()
        first, second = socket.socket(), socket.socket()
        try:
            for sock in (first, second):
                sock.setblocking(False)
                await loop.sock_connect(sock, (listener.host, listener.port))
            assert await loop.sock_recv(second, 1) == b"", "closed after a moment"
            assert len(listener._connections) == 1
            assert not listener._throttled
        finally:
            first.close()
            second.close()
            listener.close()

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))

"""How fast connections may come from one address: `connection_creation_rate` of its quota, or of the default one.

As in Kafka (KIP-612), a connection above the rate is accepted, not served, and closed when its time to pause is over:
a client that connects again at once is slowed down, and keeps nobody else waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moldau.broker.network.connection_quotas import CreationRate
from moldau.core.config.definitions import INT_MAX

HOSTS_MAX = 10_000  # whose rates are remembered; an address costs an attacker little, and us a kilobyte


class HostLimits(NamedTuple):
    """Connections a second; unlimited where an address is not named and there is no default."""

    of_host: Mapping[str, int]
    default: int = INT_MAX

    def of(self, host: str) -> int:
        return self.of_host.get(host, self.default)


class HostRates:
    """The rates of addresses that are limited. One whose limit changes begins anew."""

    __slots__ = ("_hosts_max", "_limits", "_rates", "_window_s", "_windows")

    def __init__(self, limits: HostLimits, *, windows: int, window_s: float, hosts_max: int = HOSTS_MAX) -> None:
        self._limits = limits
        self._windows, self._window_s = windows, window_s
        self._hosts_max = hosts_max
        self._rates: dict[str, tuple[int, CreationRate]] = {}

    def __len__(self) -> int:
        return len(self._rates)

    def limit(self, limits: HostLimits) -> None:
        self._limits = limits
        self._rates = {host: rate for host, rate in self._rates.items() if rate[0] == limits.of(host)}

    def wait_s(self, host: str, now_s: float) -> float:
        """How long a connection from there has to pause; 0 where it may stay, which counts it."""
        per_s_max = self._limits.of(host)
        if per_s_max == INT_MAX:
            return 0.0
        known = self._rates.pop(host, None)
        if known is None:
            known = per_s_max, CreationRate(per_s_max, windows=self._windows, window_s=self._window_s)
            if len(self._rates) >= self._hosts_max:
                del self._rates[next(iter(self._rates))]
        self._rates[host] = known  # at the end: who connects is forgotten last
        wait_s = known[1].wait_s(now_s)
        if wait_s <= 0:
            known[1].record(now_s)
        return wait_s

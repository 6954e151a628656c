"""How many connections there may be, and how fast they may come: for the broker, each listener and each host.

As in Kafka, a listener that is at its limit, or has accepted too fast, does not accept for a while: clients wait in the
backlog of the socket. A host that has too many connections is refused one by one, for it is that host's own doing.

The broker's own limit is not for the listener of the brokers, where it is one of several: clients of the others must
not keep it from being reached. When it takes the broker beyond the limit, another listener closes a connection, the one
that is idle for longest.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import INT_MAX
from moldau.core.config.inter_broker import inter_broker_listener_name

if TYPE_CHECKING:
    from moldau.broker.network.host_rates import HostRates

_WAIT_S_MIN = 0.001  # less is what is left of a wait that is over
_BROKER = ""  # the rate of all listeners together; no listener has this name


class ListenerLimits(msgspec.Struct, frozen=True, kw_only=True):
    connections_max: int = INT_MAX
    creations_per_s_max: int = INT_MAX


class QuotaLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the broker, and those of each listener by its name."""

    connections_max: int = INT_MAX
    descriptors: int = INT_MAX
    protected_listener: str | None = None
    creations_per_s_max: int = INT_MAX
    connections_per_host_max: int = INT_MAX
    connections_of_host_max: Mapping[str, int] = {}
    listeners: Mapping[str, ListenerLimits] = {}
    windows: int = 11
    window_s: float = 1.0


async def quota_limits(config: BrokerConfig, listeners: Iterable[str], *, descriptors: int) -> QuotaLimits:
    """What the configuration says; names of hosts in it are looked up, which may take a moment."""
    names = list(listeners)
    return QuotaLimits(
        connections_max=config.int("max.connections"),
        descriptors=descriptors,
        protected_listener=inter_broker_listener_name(config) if len(names) > 1 else None,
        creations_per_s_max=config.int("max.connection.creation.rate"),
        connections_per_host_max=config.int("max.connections.per.ip"),
        connections_of_host_max=await addresses(config.connections_per_ip_overrides),
        listeners={
            name: ListenerLimits(
                connections_max=config.listener_int(name, "max.connections"),
                creations_per_s_max=config.listener_int(name, "max.connection.creation.rate"),
            )
            for name in names
        },
        windows=config.int("quota.window.num"),
        window_s=config.int("quota.window.size.seconds"),
    )


async def addresses(by_host: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for host, count in by_host.items():
        try:
            resolved = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError:
            found[host] = count  # no host has this name now, so that no connection can come from it
            continue
        found.update({str(address[0]): count for *_, address in resolved})
    return found


class CreationRate:
    """Connections a second, averaged over windows as Kafka does: a burst is fine when little came before it."""

    __slots__ = ("_per_s_max", "_samples", "_window_s", "_windows")

    def __init__(self, per_s_max: int, *, windows: int, window_s: float) -> None:
        self._per_s_max = max(per_s_max, 1 / window_s)  # with 0, one in each window, as Kafka throttles no longer
        self._windows, self._window_s = windows, window_s
        self._samples: deque[tuple[float, int]] = deque()

    def record(self, now_s: float) -> None:
        if self._samples and now_s - self._samples[-1][0] < self._window_s:
            start_s, count = self._samples.pop()
            self._samples.append((start_s, count + 1))
        else:
            self._samples.append((now_s, 1))

    def wait_s(self, now_s: float) -> float:
        """How long the next connection has to wait, at most one window; 0 when it may come now."""
        while self._samples and now_s - self._samples[0][0] >= self._windows * self._window_s:
            self._samples.popleft()
        if not self._samples:
            return 0.0
        elapsed_s = max(now_s - self._samples[0][0], max(self._windows - 1, 1) * self._window_s)
        needed_s = (1 + sum(count for _, count in self._samples)) / self._per_s_max
        wait_s = needed_s - elapsed_s
        return min(wait_s, self._window_s) if wait_s >= _WAIT_S_MIN else 0.0


class ConnectionQuotas:
    """The count of all connections of a broker. Listeners ask before they accept, and report what came and went."""

    def __init__(self, limits: QuotaLimits | None = None) -> None:
        self._total = 0
        self.created: Counter[str] = Counter()
        """Connections since the start, by listener."""
        self._by_listener: Counter[str] = Counter()
        self._by_host: Counter[str] = Counter()
        self._waiting: list[Callable[[], None]] = []
        self._relief: dict[str, Callable[[], None]] = {}
        self._rates: dict[str, CreationRate] = {}
        self.host_rates: HostRates | None = None
        """None where no address has a quota."""
        self.limit(limits or QuotaLimits())

    def limit(self, limits: QuotaLimits) -> None:
        """Take other limits from now on. Connections that are open stay."""
        self._limits = limits
        rates = {name: each.creations_per_s_max for name, each in limits.listeners.items()}
        self._rates = {
            name: CreationRate(per_s_max, windows=limits.windows, window_s=limits.window_s)
            for name, per_s_max in {_BROKER: limits.creations_per_s_max, **rates}.items()
            if per_s_max < INT_MAX
        }
        self._wake()

    def full(self, listener: str) -> str | None:
        """Which limit keeps this listener from accepting until a connection is closed; None when it may accept."""
        limits = self._limits
        if self._total >= limits.descriptors:
            return f"{self._total} connections are open, the most that the limit of open files allows"
        if self._total >= limits.connections_max and listener != limits.protected_listener:
            return f"{self._total} connections are open, the most allowed (max.connections)"
        own = limits.listeners.get(listener)
        if own is not None and self._by_listener[listener] >= own.connections_max:
            return f"it has {self._by_listener[listener]} connections, the most allowed (max.connections)"
        return None

    def when_free(self, accept: Callable[[], None]) -> None:
        """Call this once, when a connection was closed or the limits changed."""
        self._waiting.append(accept)

    def when_exceeded(self, listener: str, close_one: Callable[[], None]) -> None:
        """Call this whenever a connection of this listener has to go for one of the listener that has no limit."""
        self._relief[listener] = close_one

    def wait_s(self, listener: str, now_s: float) -> float:
        """How long this listener must not accept because connections came too fast."""
        if not self._rates:
            return 0.0
        rates = (self._rates.get(_BROKER), self._rates.get(listener))
        return max(rate.wait_s(now_s) for rate in rates if rate is not None) if any(rates) else 0.0

    def most_of(self, host: str) -> int:
        return self._limits.connections_of_host_max.get(host, self._limits.connections_per_host_max)

    def has_too_many(self, host: str) -> bool:
        return self._by_host[host] >= self.most_of(host)

    def opened(self, listener: str, host: str, now_s: float) -> None:
        self._total += 1
        self.created[listener] += 1
        self._by_listener[listener] += 1
        self._by_host[host] += 1
        for name in (_BROKER, listener):
            if name in self._rates:
                self._rates[name].record(now_s)
        if self._total > self._limits.connections_max and listener == self._limits.protected_listener:
            others = [name for name in self._relief if name != listener and self._by_listener[name]]
            if others:
                self._relief[others[0]]()

    def closed(self, listener: str, host: str) -> None:
        self._total -= 1
        self._by_listener[listener] -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for accept in waiting:
            accept()

"""What clients pushed, added up: pure values. A client that pushes no more is forgotten, with all its series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from moldau.broker.telemetry.samples import Sample, Samples
from moldau.broker.telemetry.subscriptions import Client
from moldau.core.limits import TELEMETRY_SERIES_MAX, TELEMETRY_SERIES_PER_CLIENT_MAX

NO_ROOM, UNREADABLE, TOO_MANY = "no room", "not shown", "too many of a client"


class Series:
    __slots__ = ("expires_ms", "family", "help_text", "kind", "text", "time_ns", "value")

    def __init__(self, sample: Sample) -> None:
        self.family, self.kind, self.help_text, self.text = sample[:4]
        self.value: float = 0
        self.expires_ms = 0
        self.time_ns = -1

    def take(self, sample: Sample) -> None:
        """A delta is added, but for one that was pushed before: a client that got no answer pushes again."""
        if not sample.is_delta:
            self.value = sample.value
        elif sample.time_ns != self.time_ns or not sample.time_ns:
            self.value += sample.value
        self.time_ns = sample.time_ns


class ClientSeries:
    __slots__ = ("client", "expires_ms", "oldest_ms", "series")

    def __init__(self, client: Client) -> None:
        self.client = client
        self.expires_ms = self.oldest_ms = 0
        """`oldest_ms` is no later than when the first of its series expires."""
        self.series: dict[str, Series] = {}


class PushedSeries:
    def __init__(self, series_max: int = TELEMETRY_SERIES_MAX) -> None:
        self.clients: dict[bytes, ClientSeries] = {}
        self.left_out: Counter[str] = Counter({NO_ROOM: 0, UNREADABLE: 0, TOO_MANY: 0})
        """Samples that are not shown, by the reason."""
        self.count = 0
        self._series_max = series_max

    def take(self, client: Client, samples: Samples, *, until_ms: int) -> None:
        known = self.clients.get(client.instance_id)
        if known is None:
            known = self.clients[client.instance_id] = ClientSeries(client)
        elif known.client.labelled != client.labelled:
            self._forget(client.instance_id)  # it has another client id now, and so other series
            known = self.clients[client.instance_id] = ClientSeries(client)
        known.client = client
        known.expires_ms = until_ms
        self.left_out[UNREADABLE] += samples.left_out
        self._add(known.series, samples.found, until_ms)
        if not known.series:  # else there would be no end of clients that nothing is known of
            del self.clients[client.instance_id]

    def _add(self, series: dict[str, Series], samples: Iterable[Sample], until_ms: int) -> None:
        for sample in samples:
            found = series.get(sample.series)
            if found is None:
                if len(series) >= TELEMETRY_SERIES_PER_CLIENT_MAX:
                    self.left_out[TOO_MANY] += 1
                    continue
                if self.count >= self._series_max:
                    self.left_out[NO_ROOM] += 1
                    continue
                found = series[sample.series] = Series(sample)
                self.count += 1
            found.take(sample)
            found.expires_ms = until_ms

    def expire(self, now_ms: int) -> None:
        """Clients that push no more, and of others what they push no more: a partition that was revoked, for one."""
        for instance_id in [key for key, each in self.clients.items() if each.expires_ms <= now_ms]:
            self._forget(instance_id)
        for client in self.clients.values():
            if client.oldest_ms <= now_ms:
                self._forget_old(client, now_ms)

    def all(self) -> Sequence[ClientSeries]:
        return [*self.clients.values()]

    def _forget_old(self, client: ClientSeries, now_ms: int) -> None:
        old = [text for text, series in client.series.items() if series.expires_ms <= now_ms]
        for text in old:
            del client.series[text]
        self.count -= len(old)
        client.oldest_ms = min((each.expires_ms for each in client.series.values()), default=client.expires_ms)

    def _forget(self, instance_id: bytes) -> None:
        self.count -= len(self.clients.pop(instance_id).series)

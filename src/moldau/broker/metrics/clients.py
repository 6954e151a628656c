"""Requests by client id. Ids come from strangers: as many are told apart as there is room for, others together."""

from __future__ import annotations

from collections.abc import Callable

from moldau.core.limits import METRICS_CLIENT_ID_BYTES_MAX, METRICS_CLIENTS_MAX
from moldau.core.text import cut

OTHER = "(other)"
IDLE_MS = 600_000  # an id that asked nothing for so long makes room for another one


class ClientCounts:
    """Of one client id, and one API at one version."""

    __slots__ = ("bytes_in", "bytes_out", "errors", "paused_ms", "pauses", "seen")

    def __init__(self) -> None:
        self.bytes_in = self.bytes_out = 0
        self.pauses = self.paused_ms = 0
        """That it had to make for quotas."""
        self.errors: dict[int, int] = {}
        """Requests by the first error in their answers, NONE as well."""
        self.seen = 0
        """How many there were at the last look for idle ones."""

    @property
    def count(self) -> int:
        return sum(self.errors.values())


ByClient = dict[str | None, ClientCounts]


class Clients:
    """All entries there are, in the counts of requests that look them up."""

    def __init__(self, elapsed_ms: Callable[[], int], clients_max: int = METRICS_CLIENTS_MAX) -> None:
        self._elapsed_ms = elapsed_ms
        self._clients_max = clients_max
        self._counts: list[ByClient] = []
        self._count = 0
        self._looked_ms = elapsed_ms()
        self.left_out = 0
        """Times that an id was counted with others for want of room."""

    def follow(self, counts: ByClient) -> None:
        self._counts.append(counts)

    def of(self, counts: ByClient, client_id: str | None) -> ClientCounts:
        """For one that was not found by its id: it is new, or too long, or one too many."""
        key = None if client_id is None else cut(client_id, METRICS_CLIENT_ID_BYTES_MAX)
        found = counts.get(key)
        if found is not None:
            return found
        if self._count >= self._clients_max and not self._has_made_room():
            self.left_out += 1
            found = counts.get(OTHER)
            if found is None:
                found = counts[OTHER] = ClientCounts()
            return found
        self._count += 1
        found = counts[key] = ClientCounts()
        return found

    def _has_made_room(self) -> bool:
        """Forget whoever asked nothing since the last look; not more often than that takes to tell."""
        now_ms = self._elapsed_ms()
        if now_ms - self._looked_ms < IDLE_MS:
            return False
        self._looked_ms = now_ms
        for counts in self._counts:
            for client_id, client in list(counts.items()):
                if client.count == client.seen and client_id != OTHER:
                    del counts[client_id]
                    self._count -= 1
                client.seen = client.count
        return self._count < self._clients_max

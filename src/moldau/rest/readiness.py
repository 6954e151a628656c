"""Whether the cluster answers: looked at when somebody wants to know, and at most every few seconds."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Sequence

from moldau.client.addresses import addresses_of
from moldau.rest.settings import Authentication, RestSettings
from moldau.web.clusters import Clusters
from moldau.web.errors import ApiError

LOOK_S = 3.0
ANSWER_S_MAX = 2.0


class Readiness:
    """`reasons` are those of the last look. Looks have threads of their own: those of requests may all wait."""

    def __init__(self, settings: RestSettings) -> None:
        self.reasons: Sequence[str] = ()
        self._settings = settings
        self._clusters = Clusters(settings.client, min(settings.timeout_s, ANSWER_S_MAX))
        self._looked_s = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Whoever asks at the same time waits for the same look."""
        if self._looking is None and time.monotonic() - self._looked_s >= LOOK_S:
            self._looking = asyncio.get_running_loop().create_task(self._look())
        if self._looking is not None:
            await asyncio.shield(self._looking)

    def close(self) -> None:
        self._clusters.close()

    async def _look(self) -> None:
        try:
            self.reasons = await asyncio.to_thread(self._problems)
        finally:
            self._looked_s, self._looking = time.monotonic(), None

    def _problems(self) -> Sequence[str]:
        try:
            if self._settings.authentication is Authentication.PASSTHROUGH:
                _connect(self._settings.client["bootstrap.servers"])  # there is no login to ask with
            else:
                self._clusters.ask(lambda cluster: cluster.metadata([]))
        except ApiError as wrong:
            return (wrong.message,)
        except OSError:
            return (f"no broker answers at {self._settings.client['bootstrap.servers']}",)
        return ()


def _connect(servers: str) -> None:
    """Raises OSError if none of them is there."""
    wrong: OSError | None = None
    for address in addresses_of(servers):
        try:
            socket.create_connection(address, ANSWER_S_MAX).close()
        except OSError as why:
            wrong = why
        else:
            return
    if wrong is not None:
        raise wrong

"""How long this broker may believe that its session is alive.

The servers end a session when they have not heard of it for its time-out, by clocks of their own. A request that was
answered had been heard after it was sent. So until the time-out has passed since the last answered request was *sent*,
nobody can have taken this broker's place; after it anybody may, and a broker that can't reach the servers would never
be told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from moldau.core.clock import elapsed_s

# A follower of ZooKeeper tells the leader twice in a tick whom it has heard; one that dies takes with it what it has
# not told yet. A time-out has at least two ticks, so a third of it is more than half a tick.
TRUSTED_SHARE = 2 / 3


class Prolonged(Protocol):
    @property
    def session_timeout_s(self) -> float: ...

    @property
    def prolonged_s(self) -> float:
        """When the last request was sent that prolonged the session and was answered."""
        ...


class Lease:
    """Held from `begin` to `end`, or until it lapses, by a clock that nobody sets and that no suspension stops."""

    def __init__(
        self, client: Prolonged, *, on_lapse: Callable[[], None], now_s: Callable[[], float] = elapsed_s
    ) -> None:
        self._client = client
        self._on_lapse = on_lapse
        self._now_s = now_s
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._over: asyncio.Event = asyncio.Event()

    @property
    def duration_s(self) -> float:
        return self._client.session_timeout_s * TRUSTED_SHARE

    @property
    def is_held(self) -> bool:
        """A process that was stopped asks this before its timers have run."""
        return self._timer is not None and self._left_s() > 0

    @property
    def over(self) -> asyncio.Event:
        """Set when what is held now no longer is."""
        return self._over

    def begin(self) -> None:
        self.end()
        self._over = asyncio.Event()
        self._look_later()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._over.set()

    def _left_s(self) -> float:
        return self._client.prolonged_s + self.duration_s - self._now_s()

    def _look(self) -> None:
        if self._left_s() > 0:
            self._look_later()
        else:
            self._on_lapse()

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(max(0.0, self._left_s()), self._look)

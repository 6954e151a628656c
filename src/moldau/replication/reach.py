"""Which other brokers are out of reach: asked, and silent for as long as a session lasts.

The time comes in as an argument. How much of it may pass before anybody is out of reach is one rule for all: the
session time-out, after which the metadata store, too, takes a broker for gone that it has not heard of.
"""

from __future__ import annotations


class Reach:
    """What one broker hears of the others."""

    __slots__ = ("_looked_s", "_silent_since_s", "_timeout_s")

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._silent_since_s: dict[int, float] = {}  # when a broker was asked first since its last answer
        self._looked_s: float | None = None

    def asked(self, broker_id: int, now_s: float) -> None:
        self._silent_since_s.setdefault(broker_id, now_s)

    def heard(self, broker_id: int) -> None:
        self._silent_since_s.pop(broker_id, None)

    def out_of_reach(self, now_s: float) -> tuple[int, ...]:
        """To be asked several times in a time-out: who did not look for half of one was stopped, and heard nobody."""
        if self._looked_s is not None and now_s - self._looked_s > self._timeout_s / 2:
            self._silent_since_s.clear()
        self._looked_s = now_s
        silent = (each for each, since_s in self._silent_since_s.items() if now_s - since_s >= self._timeout_s)
        return tuple(sorted(silent))

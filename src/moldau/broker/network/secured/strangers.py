"""Who came in by a listener that is not plain, and is not known yet: for how long, and how many at a time.

Who shows a certificate, or needs none, is known when the TLS handshake is done; who has to log in, after that. All
listeners of a broker have their strangers in common, for what they hold is descriptors, of which a process has so many.
When there are too many, the one that came first is given up: an honest login takes milliseconds.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from typing import Final, Protocol

from moldau.broker.network.secured.stranger_turns import StrangerTurns

# From being accepted. Longer than a login that goes well in the end: a Kerberos library in Java waits 30 s for a server
# of tickets that does not answer before it asks the next, and librdkafka gives up a connection's setup after 30 s.
LOGIN_S_MAX: Final = 60.0
STRANGERS_MAX: Final = 8_192  # over TLS each has some 20 KiB, together as much as a small broker


class Stranger(Protocol):
    def give_up(self, why: str) -> None: ...


class Strangers:
    __slots__ = ("_count_max", "_present", "_turns")

    def __init__(self, descriptors: int = 2 * STRANGERS_MAX) -> None:
        """Of the descriptors that connections may have, clients who are known keep half."""
        self._count_max = max(1, min(STRANGERS_MAX, descriptors // 2))
        self._present: dict[Stranger, None] = {}
        self._turns: StrangerTurns | None = None

    def turns(self, loop: AbstractEventLoop) -> StrangerTurns:
        """The same for all listeners, which have one loop."""
        if self._turns is None:
            self._turns = StrangerTurns(loop)
        return self._turns

    def add(self, one: Stranger) -> None:
        self._present[one] = None
        if len(self._present) > self._count_max:
            next(iter(self._present)).give_up("too many clients have not logged in, and this one came first")

    def discard(self, one: Stranger) -> None:
        """It is known, or gone."""
        self._present.pop(one, None)

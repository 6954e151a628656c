"""What the log says about clients that were refused: enough to find them, and no more however many there are."""

from __future__ import annotations

import logging
from time import monotonic

from moldau.broker.context import Peer
from moldau.broker.network.greetings import ForeignProtocol

LOGGER = logging.getLogger(__name__)

WINDOW_S = 60.0
LINES_MAX = 100  # of one host in a window; what comes after them is no news
HOSTS_MAX = 1_000  # remembered at a time: an address costs an attacker little, and us a hundred bytes


class _Window:
    __slots__ = ("began_s", "lines", "unsaid")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.lines = 0
        self.unsaid = 0


class Refusals:
    """One listener's lines. Each kind of them has a window of its own for each host."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], _Window] = {}
        self.counts = {"violation": 0, "failure": 0, "not admitted": 0}
        """Since the start: mistakes of peers, faults of ours, and limits."""

    def violated(self, peer: Peer, wrong: Exception, asked: str) -> None:
        """The peer's mistake. Somebody at the wrong door is named once in a window, for it won't go away by itself."""
        self.counts["violation"] += 1
        if isinstance(wrong, ForeignProtocol):
            self._say(logging.WARNING, peer, str(wrong), f"closing connection from {peer}: it {wrong}", 1)
        else:
            self._say(logging.WARNING, peer, "", f"closing connection from {peer}: {wrong}{asked}", LINES_MAX)

    def failed(self, peer: Peer, wrong: BaseException, asked: str) -> None:
        """Our own."""
        self.counts["failure"] += 1
        line = f"closing connection from {peer}: this broker failed: {wrong!r}{asked}"
        self._say(logging.ERROR, peer, "failed", line, LINES_MAX)
        LOGGER.debug("where it failed", exc_info=wrong)

    def not_admitted(self, peer: Peer, why: str) -> None:
        self.counts["not admitted"] += 1
        self._say(logging.WARNING, peer, "not admitted", f"refusing {peer}: {why}", 1)

    def _say(self, level: int, peer: Peer, kind: str, line: str, lines_max: int) -> None:
        now_s, key = monotonic(), (peer.host, kind)
        window = self._windows.get(key)
        before = 0
        if window is None or now_s - window.began_s >= WINDOW_S:
            if window is not None:
                before = window.unsaid
                del self._windows[key]
            elif len(self._windows) >= HOSTS_MAX:
                del self._windows[next(iter(self._windows))]
            window = self._windows[key] = _Window(now_s)
        if window.lines == lines_max:
            window.unsaid += 1
            return
        window.lines += 1
        if before:
            line += f" ({before} like it were not logged)"
        if window.lines == lines_max:
            line += f"; more like it from {peer.host} are not logged for {WINDOW_S:.0f} s"
        LOGGER.log(level, "%s", line, extra={"peer": str(peer)})

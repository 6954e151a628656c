"""Which denials the audit log tells of: the first ones of each kind, and how many more there were.

A denial costs a client a few bytes, and a line of the log many times as much: whoever has no right at all could fill
the disk, and hold the loop, with nothing but names.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from moldau.security.acls.vocabulary import AclOperation, ResourceType, pascal_case
from moldau.security.principals import Principal

WINDOW_S = 60.0
LINES_MAX = 100  # of one kind in a window: a client that asks for more needs to be found, not to be told more of
KINDS_MAX = 1_000  # remembered at a time: 300 KB, however many clients come from however many addresses


class Kind(NamedTuple):
    """Denials that are counted together."""

    principal: Principal
    host: str
    operation: AclOperation
    resource_type: ResourceType

    def __str__(self) -> str:
        what = f"operation = {self.operation.name} on resources of type {pascal_case(self.resource_type)}"
        return f"Principal = {self.principal} from host = {self.host}: {what}"


class _Window:
    __slots__ = ("began_s", "lines", "unsaid")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.lines = 0
        self.unsaid = 0


class Denials:
    """Windows of time, each of a kind's. The oldest is the first one: each begins at the end of the dictionary."""

    __slots__ = ("_clock_s", "_say", "_windows")

    def __init__(self, say: Callable[[str], None], *, clock_s: Callable[[], float] = monotonic) -> None:
        """`say` gets the lines about what is left out."""
        self._say = say
        self._clock_s = clock_s
        self._windows: dict[Kind, _Window] = {}

    def is_told(self, kind: Kind) -> bool:
        """Whether the next denial of a kind has a line of its own. It is counted in any case."""
        now_s = self._clock_s()
        window = self._windows.get(kind)
        if window is None or now_s - window.began_s >= WINDOW_S:
            self._end_windows(now_s)
            window = self._windows[kind] = _Window(now_s)
        if window.lines < LINES_MAX:
            window.lines += 1
            return True
        if window.unsaid == 0:
            self._say(f"{kind}: more denials are counted, and not told one by one, for {WINDOW_S:.0f} s")
        window.unsaid += 1
        return False

    def _end_windows(self, now_s: float) -> None:
        """Those whose time is over, and the oldest where there are too many."""
        while self._windows:
            kind, oldest = next(iter(self._windows.items()))
            if now_s - oldest.began_s < WINDOW_S and len(self._windows) < KINDS_MAX:
                return
            del self._windows[kind]
            if oldest.unsaid:
                self._say(f"{kind}: {oldest.unsaid} more denials were not told one by one")

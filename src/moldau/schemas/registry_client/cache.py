"""A bounded cache for several threads: what was used longest ago goes first."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Entries stay for `valid_s`, or for ever: a schema never changes, which one is the latest does.

    However few they are, there are no more characters in them than `chars_max`, but in the last one.
    """

    def __init__(
        self,
        entries_max: int,
        valid_s: float | None = None,
        *,
        chars_max: int | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max = max(1, entries_max)
        self._chars_max = chars_max
        self._chars = 0
        self._valid_s = valid_s
        self._monotonic = monotonic
        self._entries: OrderedDict[K, tuple[float, V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            since, value, _ = entry
            if self._valid_s is not None and self._monotonic() - since > self._valid_s:
                self._drop(key)
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: K, value: V, *, chars: int = 0) -> None:
        with self._lock:
            self._drop(key)
            self._entries[key] = (self._monotonic(), value, chars)
            self._chars += chars
            while len(self._entries) > self._max or self._is_heavy():
                self._drop(next(iter(self._entries)))

    def forget(self, key: K) -> None:
        with self._lock:
            self._drop(key)

    def _is_heavy(self) -> bool:
        return self._chars_max is not None and self._chars > self._chars_max and len(self._entries) > 1

    def _drop(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._chars -= entry[2]

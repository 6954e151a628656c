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
    """Entries stay for `valid_s`, or for ever: a schema never changes, which one is the latest does."""

    def __init__(
        self, entries_max: int, valid_s: float | None = None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._max = max(1, entries_max)
        self._valid_s = valid_s
        self._monotonic = monotonic
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            since, value = entry
            if self._valid_s is not None and self._monotonic() - since > self._valid_s:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._entries[key] = (self._monotonic(), value)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max:
                self._entries.popitem(last=False)

    def forget(self, key: K) -> None:
        with self._lock:
            self._entries.pop(key, None)

"""Python's collector of reference cycles, kept from holding the event loop.

A full collection walks over everything that is alive: with the state of 200,000 groups it took 0.25 s. What survives
one that took long is long-lived state, so it is set aside and not walked over again. The price is that a cycle among
such objects is never collected. So neither state nor what a request leaves behind may be made of cycles, for a request
that waits while survivors are set aside is one of them. A broker with little state sets nothing aside.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter
from typing import Any

FULL = 2
COLLECTION_S_MAX = 0.002
# A full collection after 12,600 new containers instead of 84,700: a few milliseconds when all of them are kept.
THRESHOLDS = (700, 5, 2)


def keep_collections_short(seconds: Callable[[], float] = perf_counter) -> Callable[[str, dict[str, Any]], None]:
    """From now on; gives what was added to `gc.callbacks`."""
    begun_s = 0.0

    def watch(phase: str, collection: dict[str, Any]) -> None:
        nonlocal begun_s
        if collection["generation"] != FULL:
            return
        if phase == "start":
            begun_s = seconds()
        elif seconds() - begun_s > COLLECTION_S_MAX:
            gc.freeze()

    gc.set_threshold(*THRESHOLDS)
    gc.callbacks.append(watch)
    return watch

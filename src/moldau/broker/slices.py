"""Long work on the event loop, cut into slices between which everybody else has a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from time import monotonic
from typing import TypeVar

SLICE_S_MAX = 0.005

T = TypeVar("T")


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """One item after the other, with a pause whenever those since the last one took long enough.

    Anything may happen in a pause, so `items` must not be a view of what may change, and an item may be outdated.
    """
    deadline = monotonic() + SLICE_S_MAX
    for item in items:
        yield item
        if monotonic() >= deadline:
            await asyncio.sleep(0)
            deadline = monotonic() + SLICE_S_MAX

"""GET of an instance's records: slices of a poll, so that many readers share few threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from moldau.rest.calls import Json
from moldau.rest.consuming.instances import Instance
from moldau.rest.settings import RestSettings
from moldau.rest.threads import Threads

SLICE_S = 0.1


async def read(
    instance: Instance,
    render: Callable[[Any], Json],
    settings: RestSettings,
    threads: Threads,
    *,
    timeout_ms: int,
    bytes_max: int,
) -> list[Json]:
    """A record that is larger than `bytes_max` waits for a request that takes more, as at Confluent's."""
    usual_ms = instance.config.request_timeout_ms
    usual_ms = settings.request_timeout_ms if usual_ms is None else usual_ms
    wait_ms = usual_ms if timeout_ms <= 0 else min(timeout_ms, usual_ms)
    most = settings.request_bytes_max if bytes_max < 0 else min(bytes_max, settings.request_bytes_max)
    least = instance.config.fetch_min_bytes
    least = settings.fetch_min_bytes if least is None else least
    deadline_s = time.monotonic() + wait_ms / 1_000
    found: list[Json] = []
    size = 0
    instance.uses += 1
    try:
        while True:
            left_s = max(0.0, deadline_s - time.monotonic())
            take = partial(instance.consumer.take, render, bytes_max=most - size, wait_s=min(SLICE_S, left_s))
            some, taken, is_full = await instance.do(threads, partial(take, is_first=not found))
            found += some
            size += taken
            if is_full or (0 <= least < size) or time.monotonic() >= deadline_s:
                return found
    finally:
        instance.uses -= 1

"""The keys of a shard's timers, and of the one who waits for markers to write."""

from __future__ import annotations

from collections.abc import Hashable

TIMEOUT = "timeout"
EXPIRY = ("expiry", "")
MARKERS = ("markers", "")


def timeout_key(transactional_id: str) -> Hashable:
    return (TIMEOUT, transactional_id)

"""The keys of a shard's timers."""

from __future__ import annotations

from collections.abc import Hashable

TIMEOUT = "timeout"
EXPIRY = ("expiry", "")


def timeout_key(transactional_id: str) -> Hashable:
    return (TIMEOUT, transactional_id)

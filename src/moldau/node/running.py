"""What a started broker tells the one who started it."""

from __future__ import annotations

from pathlib import Path

import msgspec


class BoundListener(msgspec.Struct, frozen=True):
    """A listener with the port it really has: port 0 in the configuration is a free one here."""

    name: str
    host: str
    port: int


class Running(msgspec.Struct, frozen=True):
    """Announced once, when the broker answers clients."""

    broker_id: int
    cluster_id: str
    listeners: tuple[BoundListener, ...]
    data_dirs: tuple[Path, ...]
    metadata: str | None
    """Where the cluster's metadata is, if it is in no data directory."""
    topics: int = 0
    partitions: int = 0
    metrics: str | None = None
    """Where they are read; None where they are off."""


class StartFailed(Exception):
    """A reason not to start that the user can mend; the message is the line that they see."""


class Halted(Exception):
    """The broker ended itself, for a reason that the message gives in one line."""

"""What a started broker tells the one who started it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class BoundListener:
    """A listener with the port it really has: port 0 in the configuration is a free one here."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Running:
    """Announced once, when the broker answers clients."""

    broker_id: int
    cluster_id: str
    listeners: tuple[BoundListener, ...]
    data_dirs: tuple[Path, ...]
    topics: int = 0
    partitions: int = 0


class StartFailed(Exception):
    """A reason not to start that the user can mend; the message is the line that they see."""


class Halted(Exception):
    """The broker ended itself, for a reason that the message gives in one line."""

"""How fast one partition, one consumer, one broker, a disk and a network are: measured on a machine, or assumed."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path

CACHE_FILE = "plan-figures.json"
MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """All in bytes a second."""

    producer: float
    """Into one partition."""
    consumer: float
    """Out of one partition, by one consumer that does something with the records."""
    broker: float
    """Written by one broker process, by clients and by followers together."""
    disk: float
    """Written by a disk, with fsync."""
    network: float
    """Each way."""


ASSUMED = Figures(producer=100 * MB, consumer=50 * MB, broker=500 * MB, disk=500 * MB, network=1_250 * MB)
WHERE_FROM = {
    "producer": "one producer with batches of 1 MB",
    "consumer": "one consumer that does some work with each record",
    "broker": "one process, with large batches",
    "disk": "one SSD",
    "network": "10 Gbit/s",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run of `--measure` saw. The consumer does nothing with the records: a real one is slower."""

    producer: float
    consumer: float
    disk: float
    record_size: int
    machine: str
    at: str
    """Date and time, in UTC."""


def cache_path(environment: dict[str, str] | None = None) -> Path:
    known = os.environ if environment is None else environment
    home = known.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "moldau" / CACHE_FILE


def load_measured(path: Path) -> Measured | None:
    """None where nothing was measured yet, or where the file is of another make."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = {each.name: content[each.name] for each in fields(Measured)}
        numbers = ("producer", "consumer", "disk", "record_size")
        if not all(isinstance(known[each], int | float) and known[each] > 0 for each in numbers):
            return None
        return Measured(**known)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save_measured(path: Path, measured: Measured) -> None:
    """Whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as draft:
        json.dump(asdict(measured), draft, indent=2)
    Path(draft.name).replace(path)

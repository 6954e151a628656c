"""What a task writes for, and what is known of earlier attempts."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.spark.clients.settings import ClientSettings
from moldau.spark.writing.producing import Written

TRANSACTION_TIMEOUT = "transaction.timeout.ms"
TRANSACTION_MS_MAX = 300_000
TOO_LONG = f"option kafka.{TRANSACTION_TIMEOUT}: the brokers allow no more than their transaction.max.timeout.ms"


class BatchChanged(RuntimeError):
    """A batch that was written in part is run again with other rows: neither writing nor skipping would be right."""


class Fenced(Exception):
    """Another attempt of the same task has taken the transactional id over."""


class TransactionExpired(RuntimeError):
    """The cluster has aborted a transaction that was open for longer than it may be."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a task writes for: which query, which of its batches, which of the batch's tasks."""

    query_id: str
    batch: int
    task: int

    @property
    def name(self) -> str:
        """Transactional id and progress group alike."""
        return f"moldau-spark-{self.query_id}-sink-{self.task}"


@dataclass(frozen=True, slots=True)
class Done:
    """The last batch of a task that is committed, and the note beside it."""

    batch: int
    note: Mapping[str, int]

    def is_of(self, found: Written) -> bool:
        """By what the note has: one of an earlier version has less."""
        own = _noted(found)
        return all(self.note[name] == own[name] for name in self.note if name in own)


def transaction_timeout_ms(settings: ClientSettings) -> int:
    """How long a transaction may be open."""
    return int(dict(settings).get(TRANSACTION_TIMEOUT, TRANSACTION_MS_MAX))


def note_of(written: Written) -> str:
    """What stands beside the batch's number in the progress group."""
    return json.dumps(_noted(written))


def _noted(written: Written) -> dict[str, int]:
    extremes = {"least": written.least, "most": written.most}
    checks = {name: -1 if value is None else zlib.crc32(value) for name, value in extremes.items()}
    return {"records": written.records, "bytes": written.size_bytes, **checks}


def done_of(batch: int, note: str | None) -> Done:
    return Done(batch, {"records": 0, "bytes": 0, **json.loads(note or "{}")})

"""What a task writes for, and what is known of earlier attempts."""

from __future__ import annotations

import json
from dataclasses import dataclass

from moldau.spark.clients.settings import ClientSettings
from moldau.spark.writing.producing import Written

TRANSACTION_TIMEOUT = "transaction.timeout.ms"
TRANSACTION_MS_MAX = 300_000


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
    """The last batch of a task that is committed."""

    batch: int
    written: Written


def transaction_timeout_ms(settings: ClientSettings) -> int:
    """How long a transaction may be open."""
    return int(dict(settings).get(TRANSACTION_TIMEOUT, TRANSACTION_MS_MAX))


def note_of(written: Written) -> str:
    """What stands beside the batch's number in the progress group."""
    return json.dumps({"records": written.records, "bytes": written.size_bytes})


def done_of(batch: int, note: str | None) -> Done:
    told = json.loads(note or "{}")
    return Done(batch, Written(told.get("records", 0), told.get("bytes", 0)))

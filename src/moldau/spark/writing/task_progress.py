"""What a task writes for, where it notes that it did, and what is known of earlier attempts.

A query has one group: task N notes its batch as the offset of partition N of the topic it writes to. Brokers take
offsets of partitions that exist only, so a task beyond them, or one whose rows name their topics, has a group of its
own for the length of a batch: when all tasks are done the driver notes the batch as a whole and deletes those groups.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from moldau.client.security import ClientSettings
from moldau.spark.options import GROUP_PREFIX
from moldau.spark.writing.producing import Written

TRANSACTION_TIMEOUT = "transaction.timeout.ms"
TRANSACTION_MS_MAX = 300_000
SCHEMAS = {"key": "keySchema", "value": "valueSchema"}  # where a note has ids of schemas
TOO_LONG = f"option kafka.{TRANSACTION_TIMEOUT}: the brokers allow no more than their transaction.max.timeout.ms"


class BatchChanged(RuntimeError):
    """A batch that was written in part is run again with other rows: neither writing nor skipping would be right."""


class Fenced(Exception):
    """Another attempt of the same task has taken the transactional id over."""


class TransactionExpired(RuntimeError):
    """The cluster has aborted a transaction that was open for longer than it may be."""


@dataclass(frozen=True, slots=True)
class NoteSlot:
    """Where a batch is noted: in a group, as the offset of this partition of a topic."""

    group: str
    partition: int


@dataclass(frozen=True, slots=True)
class SinkTask:
    """What a task writes for: which query, which of its batches, which of the batch's tasks."""

    query_id: str
    batch: int
    task: int
    group_prefix: str = GROUP_PREFIX
    transactional_prefix: str = GROUP_PREFIX
    may_be_noted: bool = True  # False for a batch that no earlier run of the query can have begun

    @property
    def transactional_id(self) -> str:
        return f"{self.transactional_prefix}-{self.query_id}-sink-{self.task}"

    @property
    def query_group(self) -> str:
        return query_group(self.group_prefix, self.query_id)

    @property
    def task_group(self) -> str:
        return f"{self.query_group}-{self.task}"

    def slot(self, partitions: int) -> NoteSlot:
        """`partitions` is how many the topic has; 0 where each row names its topic."""
        has_partition = self.task < partitions
        return NoteSlot(self.query_group, self.task) if has_partition else NoteSlot(self.task_group, 0)


def query_group(prefix: str, query_id: str) -> str:
    return f"{prefix}-{query_id}-sink"


def done_slot(query_group: str) -> NoteSlot:
    """Where the driver notes a batch of which tasks had groups of their own."""
    return NoteSlot(f"{query_group}-done", 0)


@dataclass(frozen=True, slots=True)
class NotedBatch:
    """The last batch of a task that is committed, and the note beside it.

    `is_whole` where that is of all tasks together that had groups of their own.
    """

    batch: int
    note: Mapping[str, int]
    is_whole: bool = False
    slot: NoteSlot | None = field(default=None, compare=False)  # where the task notes its batches

    def is_of(self, found: Written) -> bool:
        """By what the note has: one of an earlier version has less.

        By another schema of a registry the same rows are other bytes: only their number can be compared.
        """
        own = noted(found)
        shared = [name for name in self.note if name in own]
        if any(self.note[name] != own[name] for name in shared if name in SCHEMAS.values()):
            return self.note["records"] == own["records"]
        return all(self.note[name] == own[name] for name in shared)

    @property
    def schemas(self) -> dict[str, int]:
        """The registry's ids of what was written, by side."""
        return {side: self.note[name] for side, name in SCHEMAS.items() if name in self.note}


def newest_done(
    sink_task: SinkTask, slot: NoteSlot, look: Callable[[NoteSlot], NotedBatch | None], *, in_any_topic: bool
) -> NotedBatch | None:
    """What is noted of a task, wherever it is."""
    found = look(slot)
    own, of_query = NoteSlot(sink_task.task_group, 0), NoteSlot(sink_task.query_group, sink_task.task)
    if found is not None and (slot == of_query or found.batch >= sink_task.batch):
        return replace(found, slot=slot)
    if found is None and slot == of_query:
        # By earlier versions, and while the topic had fewer partitions.
        found = look(own)
    elif found is None and in_any_topic:
        # While an option named the topic for all rows.
        found = look(of_query)
    if found is not None and found.batch >= sink_task.batch:
        return replace(found, slot=slot)
    whole = look(done_slot(sink_task.query_group))
    if whole is not None and whole.batch >= sink_task.batch:
        return replace(whole, is_whole=True, slot=slot)
    return None if found is None else replace(found, slot=slot)


def transaction_timeout_ms(settings: ClientSettings) -> int:
    """How long a transaction may be open."""
    return int(dict(settings).get(TRANSACTION_TIMEOUT, TRANSACTION_MS_MAX))


def note_of(written: Written) -> str:
    """What stands beside the batch's number in the progress group."""
    return json.dumps(noted(written))


def noted(written: Written) -> dict[str, int]:
    extremes = {"least": written.least, "most": written.most}
    checks = {name: -1 if value is None else zlib.crc32(value) for name, value in extremes.items()}
    ids = {SCHEMAS[side]: schema_id for side, schema_id in written.schemas.items()}
    return {"records": written.records, "bytes": written.size_bytes, **checks, **ids}


def done_of(batch: int, note: str | None) -> NotedBatch:
    # confluent-kafka commits a text with the zero byte that ends it in C.
    told = json.loads((note or "").rstrip("\0") or "{}")
    return NotedBatch(batch, {"records": 0, "bytes": 0, **told})

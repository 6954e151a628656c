"""Every operation of a run as events, written down while they happen: a crash of whoever writes loses none of them.

An operation begins with `invoke` and ends with `ok`, `fail` (it certainly had no effect) or `unknown`. An operation
without an end is as good as unknown. Each process writes a file of its own; the machine's monotonic clock orders the
events of all of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

Read: TypeAlias = tuple[str, int, int, str]
"""What a poll gave: topic, partition, offset and value."""

INVOKE, OK, FAIL, UNKNOWN = "invoke", "ok", "fail", "unknown"

SEND = "send"  # a value to a partition; alone, or in a transaction
COMMIT, ABORT = "commit", "abort"  # the end of a transaction
LATE_END = "late_end"  # an end of a transaction that was sent again, after later ones had begun
POLL = "poll"
ASSIGN = "assign"  # a consumer gets partitions: from `offset`, or (-1) from wherever its group is
VIEW = "view"  # `viewer` reads `topics`; ok: it has come to their ends, after everything else ended
FINAL = "final"  # nothing is sent any more, and viewers had their time
FAULT = "fault"  # invoke: it begins; ok: it is undone
OBSERVE = "observe"  # leaders and in-sync replicas, as a broker tells them
WATERMARKS = "watermarks"  # by partition: the leader epoch, and the high watermark that its leader tells


class Event(msgspec.Struct, omit_defaults=True, gc=False):
    at_s: float
    process: str
    op: str
    phase: str
    id: int = 0
    """Which operation of the process; ties an end to its beginning."""
    topic: str = ""
    partition: int = -1
    offset: int = -1
    value: str = ""
    source: str = ""
    """The value that this one is a copy of."""
    txn: str = ""
    """The transaction that the operation belongs to: its transactional id, a slash, and a number that grows."""
    viewer: str = ""
    """Whom a poll counts for: a reader, or the group of which the process is a member."""
    committed: bool = False
    """Whether it reads committed records only."""
    topics: list[str] = []
    records: list[Read] = []
    partitions: list[tuple[str, int]] = []
    error: str = ""
    detail: dict[str, Any] = {}


class History:
    """Appends events to a file. Each is one write, so threads don't mix and nothing waits in a buffer.

    Threads may write in another order than that of their times, which `read_history` restores.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._encoder = msgspec.json.Encoder()
        self._clock = clock

    def note(self, process: str, op: str, phase: str, **fields: Any) -> Event:
        # No lock: the end of a client, at any moment, may call back to tell what became of its sends.
        event = Event(self._clock(), process, op, phase, **fields)
        os.write(self._file, self._encoder.encode(event) + b"\n")
        return event

    def close(self) -> None:
        os.close(self._file)


class HistoryTail:
    """Reads what was added since the last look; the last line may be half written, and is then left for later."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._decoder = msgspec.json.Decoder(Event)

    def more(self) -> list[Event]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return []
        end = data.rfind(b"\n") + 1
        self._at += end
        return [self._decoder.decode(line) for line in data[:end].splitlines()]


def read_history(paths: Iterable[Path]) -> list[Event]:
    """All events of some files in the order of their times."""
    events = [event for path in paths for event in HistoryTail(path).more()]
    events.sort(key=lambda event: event.at_s)
    return events


def transactional_id_of(txn: str) -> str:
    return txn.rpartition("/")[0]


def ordinal_of(txn: str) -> int:
    return int(txn.rpartition("/")[2])

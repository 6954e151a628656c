"""The topic, read from its beginning for as long as the process lives: a thread that hands over what it reads."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moldau.client.cluster import PASSING, PAUSE_S, Cluster, NoAnswer, Refused
from moldau.client.connection import Unsupported
from moldau.client.fetched import FetchedRecord, read_partition
from moldau.client.offsets import EARLIEST, LATEST, offsets_at
from moldau.client.reading import Failed, Read, Reader
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.registry.records import Entry, Unreadable, decoded

READ_COMMITTED = 1
CUT = "the topic ends before offset {}, up to which it was read: it was made anew, or its end was lost"
STARTING = PASSING | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
WAIT_S = 0.5
RETRY_S = 0.5
UNLED_MAX = 4  # waits in a row without a leader: while it moves nobody has to hear of it

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Batch:
    entries: tuple[Entry, ...]
    next_offset: int


class TopicReader(threading.Thread):
    """`take` is called in this thread, in order. What can't be read is told and passed over."""

    def __init__(self, cluster: Cluster, topic: str, take: Callable[[Batch], None]) -> None:
        super().__init__(name="registry-reader", daemon=True)
        self.place = TopicPartition(topic, 0)
        self.failure: str | None = None
        """Why nothing is read at the moment."""
        self.is_cut = False
        """Whether the topic is another one than was read, after which nothing more is."""
        self._cluster = cluster
        self._take = take
        self._position = EARLIEST
        self._ended = threading.Event()

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        while not self._ended.is_set() and not self.is_cut:
            try:
                if self._position < 0:
                    self._position = bound(self._cluster, self.place, EARLIEST)
                self._read()
            except (NoAnswer, Refused, OSError, ProtocolViolation, Unsupported) as wrong:
                self._tell(str(wrong))
                self._ended.wait(RETRY_S)
            except Exception as wrong:  # without this thread nothing that is written would ever be seen
                LOGGER.exception("reading %s failed at offset %d", self.place, self._position)
                self._tell(repr(wrong))
                self._ended.wait(RETRY_S)
        self._cluster.close()

    def _read(self) -> None:
        """Until it fails, or is to end; what was taken is not read again."""
        reader = Reader(self._cluster, decode=read_partition, isolation=READ_COMMITTED)
        reader.add({self.place: self._position})
        unled = 0
        try:
            while not self._ended.is_set():
                event = reader.next(timeout_s=WAIT_S)
                if isinstance(event, Failed) and event.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._go_inside()
                    return
                if isinstance(event, Failed):
                    self._tell(f"{self.place} cannot be read: {event.told}")
                    self._ended.wait(RETRY_S)
                    return
                if isinstance(event, Read):
                    self.failure = None
                    self._take(Batch(readable(event.records), event.next_offset))
                    self._position = event.next_offset
                elif reader.lost is not None:
                    self._tell(str(reader.lost))
                elif reader.is_asking_for(self.place):  # nothing new is no failure
                    unled, self.failure = 0, None
                elif (unled := unled + 1) > UNLED_MAX:
                    self._tell(f"{self.place} has no leader, or is not there")
        finally:
            reader.close()

    def _go_inside(self) -> None:
        """From a place that the log does not have."""
        start = bound(self._cluster, self.place, EARLIEST)
        if self._position >= start:
            self._tell(CUT.format(self._position))
            self.is_cut = True
        self._position = max(self._position, start)

    def _tell(self, failure: str) -> None:
        if failure != self.failure:
            LOGGER.warning("%s", failure)
        self.failure = failure


def readable(found: Sequence[FetchedRecord]) -> tuple[Entry, ...]:
    entries = []
    for each in found:
        try:
            entries.append(decoded(each.key, each.value, timestamp_ms=each.timestamp_ms))
        except Unreadable as wrong:
            LOGGER.warning("passed over the record at offset %d: %s", each.offset, wrong, extra={"offset": each.offset})
    return tuple(entries)


def end_of(cluster: Cluster, place: TopicPartition) -> int:
    """Where the log ends, as soon as its leader says so: a topic that was just made is not known to all brokers."""
    deadline_s = time.monotonic() + cluster.timeout_s
    while True:
        try:
            return bound(cluster, place)
        except Refused as wrong:
            if wrong.code not in STARTING or time.monotonic() >= deadline_s:
                raise
        time.sleep(PAUSE_S)


def bound(cluster: Cluster, place: TopicPartition, which: int = LATEST) -> int:
    """Where the log begins or ends. Raises Refused or NoAnswer."""
    found, refused = offsets_at(cluster, {place: which})
    if place not in found:
        raise Refused(refused[place])
    return found[place]

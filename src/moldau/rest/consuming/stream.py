"""Records of a topic as they come: a consumer of its own for one client, who reads on where it stopped.

A client that reads slowly is waited for with one batch of records and what librdkafka may fetch ahead for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from moldau.rest.calls import Json
from moldau.rest.consuming.rendering import Render
from moldau.rest.librdkafka import is_transient, problem_of_error, quiet
from moldau.rest.sessions import Session
from moldau.rest.settings import RestSettings
from moldau.rest.threads import in_thread
from moldau.web.errors import ApiError

WAIT_S = 0.5
AT_ONCE_MAX = 100
FULL_PAUSE_MS = 50  # until a full queue is looked at again; librdkafka's second would hold back whoever reads fast
GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    topic: str
    starts: Mapping[int, int]
    """Where to begin in each partition; empty in a group, which knows."""
    group: str | None = None
    is_from_beginning: bool = False
    """Of a group that has committed nothing yet."""
    limit: int | None = None
    idle_ms: int | None = None
    """How long nothing may come until it is enough."""
    ends_at_end: bool = False
    isolation: str = "read_committed"


@dataclass(slots=True)
class Some:
    """What came: records, perhaps none for a while."""

    records: list[Json] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    read: dict[int, TopicPartition] = field(default_factory=dict)
    """Where each partition of them is read on."""


class RecordStream:
    def __init__(self, session: Session, wish: Wish, render: Render, settings: RestSettings) -> None:
        self.session = session
        self.wish = wish
        self.render = render
        self.settings = settings
        self.positions = dict(wish.starts)
        self._at_end: set[int] = set()
        self._consumer: Any = None
        self._lock = threading.Lock()
        self._is_over = False

    async def run(self) -> AsyncGenerator[Some, None]:
        """Until there is enough. Raises ApiError when the cluster refuses more."""
        pool, sent = self.session.threads.streaming, 0
        last_s = time.monotonic()
        try:
            await in_thread(pool, self._open)
            while True:
                some = await in_thread(pool, partial(self._next, self.wish.limit and self.wish.limit - sent))
                if some.records:
                    sent, last_s = sent + len(some.records), time.monotonic()
                yield some  # it returns when the client has taken it
                await in_thread(pool, partial(self._done, some.read))
                if self._is_enough(sent, last_s):
                    return
        finally:
            pool.submit(self._close)

    def _is_enough(self, sent: int, last_s: float) -> bool:
        if self.wish.limit is not None and sent >= self.wish.limit:
            return True
        if self.wish.ends_at_end and self._at_end.issuperset(self.positions):
            return True
        return self.wish.idle_ms is not None and time.monotonic() - last_s >= self.wish.idle_ms / 1_000

    def _close(self) -> None:
        """A client may go while its consumer is made, which would then be a member of its group that reads nothing."""
        with self._lock:
            self._is_over = True
            if self._consumer is not None:
                self._consumer.close()
                self.session.threads.trimming.soon()

    def _open(self) -> None:
        with self._lock:
            if not self._is_over:
                self._join()

    def _join(self) -> None:
        wish, ahead_kbytes = self.wish, self.settings.stream_prefetch_kbytes_max
        properties = {
            "queued.max.messages.kbytes": ahead_kbytes,  # it lowers fetch.max.bytes as well
            "fetch.message.max.bytes": ahead_kbytes * 1_024 // 4,
            "fetch.queue.backoff.ms": FULL_PAUSE_MS,
            **quiet(),
            **self.session.client,
            **self.settings.consumer,
            "isolation.level": wish.isolation,
            "enable.partition.eof": True,
            "group.id": wish.group or f"moldau-rest-stream-{uuid4()}",
            "enable.auto.commit": wish.group is not None,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest" if wish.is_from_beginning or wish.group is None else "latest",
        }
        try:
            self._consumer = Consumer(properties)
            if wish.group is None:
                places = [TopicPartition(wish.topic, partition, at) for partition, at in wish.starts.items()]
                self._consumer.assign(places)
            else:
                self._consumer.subscribe([wish.topic])
        except KafkaException as wrong:
            raise problem_of_error(wrong.args[0]) from None

    def _next(self, most: int | None) -> Some:
        """A batch: so many records as are there, until they are large enough together."""
        some, size, largest = Some(), 0, 0
        at_once = AT_ONCE_MAX if most is None else min(most, AT_ONCE_MAX)
        room = self.settings.stream_batch_bytes_max
        found = [first] if (first := self._consumer.poll(WAIT_S)) is not None else []
        while found:
            for each in found:
                taken = self._take(each, some)
                size, largest = size + taken, max(largest, taken)
            # One alone says how large the others may be; who expects too little is held by what was fetched ahead.
            fitting = min(at_once - len(some.records), (room - size) // max(largest, 1))
            found = self._consumer.consume(fitting, 0) if fitting > 0 and largest else []
        return some

    def _take(self, record: Any, some: Some) -> int:
        """Its size; 0 of what is no record. Raises ApiError."""
        error = record.error()
        if error is None:
            self._at_end.discard(record.partition())
            self.positions[record.partition()] = after = record.offset() + 1
            some.read[record.partition()] = TopicPartition(
                record.topic(), record.partition(), after, leader_epoch=record.leader_epoch()
            )
            some.records.append(self.render(record))
            some.ids.append(event_id(self.positions))
            return len(record) + len(record.key() or b"") + 1
        if error.code() == KafkaError._PARTITION_EOF:
            self._at_end.add(record.partition())
        elif self.wish.group is None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            pass  # librdkafka looks for the coordinator of a group that is only a name here
        elif error.code() in GONE or (error.code() != KafkaError._MAX_POLL_EXCEEDED and not is_transient(error)):
            raise problem_of_error(error)
        return 0

    def _done(self, read: Mapping[int, TopicPartition]) -> None:
        """Of a group: what was sent counts as read."""
        if self.wish.group is None or not read:
            return
        try:
            self._consumer.store_offsets(offsets=[*read.values()])
        except KafkaException as wrong:
            if wrong.args[0].code() != KafkaError._STATE:
                raise problem_of_error(wrong.args[0]) from None


def event_id(positions: Mapping[int, int]) -> str:
    """Where each partition is read on."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items()))


def read_event_id(text: str) -> dict[int, int]:
    """Raises ApiError 400."""
    found: dict[int, int] = {}
    for each in text.split(","):
        partition, colon, offset = each.partition(":")
        if not (colon and partition.isdecimal() and offset.isdecimal() and len(partition) < 10 and len(offset) < 19):
            raise ApiError(400, f"Last-Event-ID {text[:60]!r}: expected PARTITION:OFFSET,... as in the stream's ids")
        found[int(partition)] = int(offset)
    return found

"""Producers of one user: a record goes to librdkafka at once, and its delivery comes back as a future.

The thread of a producer takes deliveries as they come, and wakes the event loop once for all of them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from moldau.rest.librdkafka import problem_of_error, quiet
from moldau.rest.problems import no_partition, no_topic
from moldau.rest.settings import RestSettings
from moldau.rest.threads import Threads, in_thread
from moldau.web.errors import ApiError
from moldau.web.kafka_errors import RETRIABLE

POLL_S = 0.1
FULL_PAUSE_S = 0.01
PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._FATAL)
TOPIC_KNOWN_S = 60.0
TOPIC_APPEARS_S = 1.0  # how long a topic that the broker creates by itself may take
TOPICS_KNOWN_MAX = 10_000

USUAL: Mapping[str, Any] = {
    "partitioner": "murmur2_random",  # as in Java's producers: a key stays in its partition
    "enable.idempotence": True,
    "linger.ms": 2,
    "message.timeout.ms": 30_000,
    "queue.buffering.max.kbytes": 65_536,
    "message.max.bytes": 20_000_000,  # the broker says what is too large for a topic
}

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Record:
    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp_ms: int = 0
    headers: Headers = ()

    @property
    def size(self) -> int:
        return len(self.key or b"") + len(self.value or b"")


@dataclass(frozen=True, slots=True)
class Delivered:
    partition: int
    offset: int
    timestamp_ms: int | None


Delivery = asyncio.Future[Delivered]


class Producers:
    """One producer, made when the first record comes, and made anew after an error that it does not survive."""

    def __init__(self, client: Mapping[str, Any], settings: RestSettings, threads: Threads) -> None:
        self._config = {**USUAL, **quiet(), **client}
        self._settings = settings
        self._threads = threads
        self.running: Running | None = None
        self._partitions: dict[str, tuple[float, int]] = {}

    async def send(self, record: Record) -> Delivery:
        """Raises ApiError for what can't be sent; what happens to it later is in the future."""
        count = await self._partition_count(record.topic)
        if record.partition is not None and not 0 <= record.partition < count:
            raise no_partition()
        deadline_s = time.monotonic() + self._settings.timeout_s
        while True:
            running = self._producer()
            try:
                return running.send(record)
            except BufferError:
                if time.monotonic() >= deadline_s:
                    raise ApiError(RETRIABLE, "the cluster takes no more records now") from None
                await asyncio.sleep(FULL_PAUSE_S)
            except KafkaException as wrong:
                error = wrong.args[0]
                if error.code() != KafkaError._FATAL or time.monotonic() >= deadline_s:
                    raise problem_of_error(error) from None
                # It failed for good, for a reason that its thread has yet to hear; another says it of this record.
                running.is_broken = True

    def close(self) -> None:
        if self.running is not None:
            self.running.close()
            self.running = None

    def _producer(self) -> Running:
        if self.running is not None and self.running.is_broken:
            self.close()
        if self.running is None:
            self.running = Running(self._config, asyncio.get_running_loop())
        return self.running

    async def _partition_count(self, topic: str) -> int:
        """Of a topic that is there: librdkafka would keep records of one that is not for as long as it may."""
        known = self._partitions.get(topic)
        if known is None or known[0] < time.monotonic():
            count = await self._partitions_of(topic)
            if len(self._partitions) >= TOPICS_KNOWN_MAX:
                self._partitions.clear()
            known = self._partitions[topic] = (time.monotonic() + TOPIC_KNOWN_S, count)
        return known[1]

    async def _partitions_of(self, topic: str) -> int:
        """Asking makes a broker create the topic if it does such things, which takes it a moment."""
        deadline_s = time.monotonic() + TOPIC_APPEARS_S
        while True:
            producer = self._producer().producer
            ask = partial(producer.list_topics, topic, timeout=self._settings.timeout_s)
            try:
                found = (await in_thread(self._threads.asking, ask)).topics[topic]
            except KafkaException as wrong:
                raise problem_of_error(wrong.args[0]) from None
            if found.error is None:
                return len(found.partitions)
            code = found.error.code()
            is_unknown = code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
            is_coming = is_unknown or code == KafkaError.LEADER_NOT_AVAILABLE
            if not is_coming or time.monotonic() >= deadline_s:
                raise no_topic(topic) if is_unknown else problem_of_error(found.error)
            await asyncio.sleep(POLL_S)  # no thread waits: others need it


class Running:
    def __init__(self, config: Mapping[str, Any], loop: asyncio.AbstractEventLoop) -> None:
        self.producer = Producer(dict(config))
        self.is_broken = False
        self._broken_by: ApiError | None = None
        self._loop = loop
        self._done: list[tuple[Delivery, Delivered | ApiError]] = []
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self.poll, name="deliveries", daemon=True)
        self._thread.start()

    def send(self, record: Record) -> Delivery:
        future: Delivery = self._loop.create_future()

        def delivered(error: KafkaError | None, message: Any) -> None:
            self._done.append((future, self._outcome(error, message)))

        self.producer.produce(
            record.topic,
            value=record.value,
            key=record.key,
            partition=-1 if record.partition is None else record.partition,
            on_delivery=delivered,
            timestamp=record.timestamp_ms,
            headers=list(record.headers) or None,
        )
        return future

    def close(self) -> None:
        self._is_closing.set()

    def _break(self, error: KafkaError) -> None:
        """An idempotent producer does not survive some errors, such as no right to write: another takes its place."""
        if self._broken_by is None:
            self._broken_by = problem_of_error(error)
            self.is_broken = True
            self.producer.purge()
            self.close()
        else:
            time.sleep(POLL_S)  # until its records are given back

    def _outcome(self, error: KafkaError | None, message: Any) -> Delivered | ApiError:
        if error is not None:
            if self._broken_by is not None and error.code() in PURGED:
                return self._broken_by
            return problem_of_error(error)
        kind, timestamp_ms = message.timestamp()
        return Delivered(message.partition(), message.offset(), timestamp_ms if kind else None)

    def poll(self) -> None:
        """What was sent before the end is delivered, or fails when its time is up."""
        while not self._is_closing.is_set() or len(self.producer):
            try:
                self.producer.poll(POLL_S)
            except KafkaException as wrong:
                self._break(wrong.args[0])
            if self._done:
                done, self._done = self._done, []
                try:
                    self._loop.call_soon_threadsafe(_settle, done)
                except RuntimeError:  # the loop is gone, and with it everybody who waits
                    return


def _settle(done: list[tuple[Delivery, Delivered | ApiError]]) -> None:
    for future, outcome in done:
        if future.done():
            continue
        if isinstance(outcome, ApiError):
            future.set_exception(outcome)
            future.exception()  # whoever asked may have gone: then nobody looks
        else:
            future.set_result(outcome)

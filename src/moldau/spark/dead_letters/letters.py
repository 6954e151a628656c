"""Records that don't fit, kept in a topic: their bytes and headers as they were, with place, query and reason beside.

A task writes its letters in one transaction with the fact that its range is done, so that a range that Spark runs again
writes nothing twice. The fact is an offset in a group of its own: the committed offset is the end of what is done, its
metadata tells where that begins and how many letters there were so far. What is done is a stretch and not just an end:
a query that goes back to offsets which it never read must not take them for done.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import NewTopic

from moldau.client.security import ClientSettings
from moldau.core.ids import TopicPartition
from moldau.spark.clients.librdkafka import (
    ANSWER_S_MAX,
    admin_client,
    client_config,
    create_if_missing,
    group_consumer,
    group_names,
    patiently,
    reason,
    topic_config,
)
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.offsets.committed import committed

HEADER_PREFIX = "moldau.dead-letter."
HEADER_NAMES = ("topic", "partition", "offset", "timestamp", "query", "reason")
TOPIC_SUFFIX = ".dead-letters"
LETTERS_GROUP = "dead-letters"
SKIPPED_GROUP = "skipped"

HELD_LETTERS_MAX = 10_000  # a topic of the wrong format is all letters: they are written in pieces, not all kept
HELD_BYTES_MAX = 32 << 20
RECORD_LIMIT = "max.message.bytes"
ADDED_BYTES = 64 << 10  # place, query and reason, which are short, and the record's own batch around them
LIBRARY_BYTES_MAX = "1000000000"
Headers = list[tuple[str, bytes | None]]


class DeadLettersFailed(RuntimeError):
    """Letters could not be written; nothing of the task's transaction counts, and Spark may run the task again."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A record that didn't fit, and why."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    reason: str

    @property
    def size_bytes(self) -> int:
        return len(self.key or b"") + len(self.value or b"") + sum(len(value or b"") for _, value in self.headers)


@dataclass(frozen=True, slots=True)
class WrittenLetters:
    """The stretch of a partition whose letters are written, and how many there are."""

    start: int = 0
    end: int = 0
    letters: int = 0

    def covers(self, offset: int) -> bool:
        return self.start <= offset < self.end

    def grown(self, range_: OffsetRange, *, end: int, letters: int) -> WrittenLetters:
        """With more of a range; a stretch that the range touches is continued, any other is left behind."""
        touches = self.start <= range_.start <= self.end
        return WrittenLetters(self.start if touches else range_.start, max(end, self.end) if touches else end, letters)

    def metadata(self) -> str:
        return json.dumps({"start": self.start, "letters": self.letters})


def done_from(committed: Any) -> WrittenLetters:
    """What a committed offset says; a group that somebody else wrote to says nothing."""
    try:
        told = json.loads(committed.metadata or "")
        return WrittenLetters(int(told["start"]), int(committed.offset), int(told["letters"]))
    except (ValueError, KeyError, TypeError):
        return WrittenLetters()


def letter_group(group: str, kind: str, split: int) -> str:
    """A partition that is split among tasks has a group for each part: they don't finish in order.

    librdkafka takes groups of printable ASCII only into a transaction, and a query may be called anything.
    """
    name = quote(group, safe="".join(map(chr, range(ord(" "), ord("~") + 1))))
    return f"{name}.{kind}.{split}" if split else f"{name}.{kind}"


def letter_headers(letter: Letter, place: TopicPartition, query: str) -> Headers:
    told = (place.topic, place.partition, letter.offset, letter.timestamp_ms, query, letter.reason)
    ours = [(HEADER_PREFIX + name, str(value).encode()) for name, value in zip(HEADER_NAMES, told, strict=True)]
    return [*letter.headers, *ours]


class LetterBox:
    """The letters of one task. Nothing is connected, and nothing costs, before there is a letter.

    Without a topic the letters are thrown away, and counted all the same: each once.
    """

    def __init__(
        self,
        client: ClientSettings,
        *,
        topic: str | None,
        group: str,
        query: str,
        range_: OffsetRange,
        split: int = 0,
        transactional_prefix: str | None = None,
    ) -> None:
        self.client = client
        self.topic = topic
        kind = SKIPPED_GROUP if topic is None else LETTERS_GROUP
        self.group = letter_group(group, kind, split)
        self._first_group = letter_group(group, kind, 0)
        self.query = query
        self.range = range_
        name = f"{self.group}/{range_.place.topic}/{range_.place.partition}"
        self.transactional_id = f"{transactional_prefix}-{name}" if transactional_prefix else name
        self.held: list[Letter] = []
        self.held_bytes = 0
        self.written = 0
        self._producer: Producer | None = None
        self._elsewhere: list[WrittenLetters] = []

    def add(self, letters: Iterable[Letter]) -> None:
        """Letters in the order of their offsets."""
        for letter in letters:
            self.held.append(letter)
            self.held_bytes += letter.size_bytes
            if len(self.held) >= HELD_LETTERS_MAX or self.held_bytes >= HELD_BYTES_MAX:
                self._write(done_to=letter.offset + 1)

    def close(self) -> int:
        """Write what is left, once the whole range was read; the number of letters that this task had to write."""
        if self.held or self._producer is not None:
            self._write(done_to=self.range.end)
        return self.written

    def _write(self, *, done_to: int) -> None:
        letters, self.held, self.held_bytes = self.held, [], 0
        try:
            producer = self._producer = self._producer or self._open()
            # Only now: opening ended the transaction of any earlier run of this task, one way or the other.
            consumer = group_consumer(self.client, self.group)
            done = self._done(consumer)
            known = (done, *self._elsewhere)
            fresh = [letter for letter in letters if not any(each.covers(letter.offset) for each in known)]
            if not fresh and (done.end >= done_to or not letters):
                return
            self._transact(
                producer, consumer, fresh, done.grown(self.range, end=done_to, letters=done.letters + len(fresh))
            )
            self.written += len(fresh)
        except KafkaException as wrong:
            place = f"offsets {self.range.start} to {self.range.end - 1} of {self.range.place}"
            raise DeadLettersFailed(
                f"cannot keep account of {len(letters)} records that don't fit in {place}: {reason(wrong)}"
            ) from None

    def _make_topic(self, topic: str) -> None:
        try:
            create_if_missing(self.client, NewTopic(topic, config=letters_config(self.client, self.range.place.topic)))
        except KafkaException as wrong:
            raise DeadLettersFailed(f"cannot make the topic {topic} for dead letters: {reason(wrong)}") from None

    def _open(self) -> Producer:
        if self.topic is not None:
            self._make_topic(self.topic)
        producer = letter_producer(self.client, self.transactional_id)
        producer.init_transactions(ANSWER_S_MAX)
        self._elsewhere = self._written_by_others()
        return producer

    def _written_by_others(self) -> list[WrittenLetters]:
        """Under other numbers: a batch that runs again may be cut in another way, by a lower limit or a higher one."""
        its = re.compile(re.escape(self._first_group) + r"(\.\d+)?")
        others = [name for name in patiently(lambda: group_names(self.client)) if its.fullmatch(name)]
        return [self._done(group_consumer(self.client, name)) for name in others if name != self.group]

    def _done(self, consumer: Consumer) -> WrittenLetters:
        place = ClientPartition(self.range.place.topic, self.range.place.partition)
        return done_from(committed(consumer, [place])[0])

    def _transact(
        self, producer: Producer, consumer: Consumer, letters: Sequence[Letter], done: WrittenLetters
    ) -> None:
        place = self.range.place
        producer.begin_transaction()
        try:
            if self.topic is not None:
                self._produce(producer, self.topic, letters)
            offsets = [ClientPartition(place.topic, place.partition, done.end, done.metadata())]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), ANSWER_S_MAX)
            producer.commit_transaction(ANSWER_S_MAX)
        except KafkaException as wrong:
            if wrong.args[0].txn_requires_abort():
                producer.abort_transaction(ANSWER_S_MAX)
            raise

    def _produce(self, producer: Producer, topic: str, letters: Sequence[Letter]) -> None:
        for letter in letters:
            headers = letter_headers(letter, self.range.place, self.query)
            produce(producer, topic, key=letter.key, value=letter.value, headers=headers)


def letters_config(client: ClientSettings, source: str) -> dict[str, str]:
    """A topic for letters takes what its source takes, and what a letter adds; one that may not be asked, the usual."""
    try:
        told = topic_config(admin_client(client), source)
    except KafkaException:
        return {}
    return {RECORD_LIMIT: str(int(told[RECORD_LIMIT].value) + ADDED_BYTES)} if RECORD_LIMIT in told else {}


def letter_producer(client: ClientSettings, transactional_id: str) -> Producer:
    own = {"transactional.id": transactional_id, "linger.ms": "5"}
    # How large a record may be is for the topic to say: it was in one.
    return Producer(client_config(client, **{"message.max.bytes": LIBRARY_BYTES_MAX}) | own)


def produce(producer: Producer, topic: str, **record: Any) -> None:
    """Hand over a record, waiting for room in the queue."""
    while True:
        try:
            producer.produce(topic, **record)
            return
        except BufferError:
            producer.poll(1.0)


def count_letters(
    client: ClientSettings, group: str, places: Iterable[TopicPartition], *, kind: str = LETTERS_GROUP, splits: int = 1
) -> Mapping[TopicPartition, int]:
    """How many letters a query has written (or skipped: `kind`) of each partition, over all of its runs."""
    partitions = [ClientPartition(place.topic, place.partition) for place in places]
    counts: dict[TopicPartition, int] = {}
    for split in range(splits):
        for each in committed(group_consumer(client, letter_group(group, kind, split)), partitions):
            place = TopicPartition(each.topic, each.partition)
            counts[place] = counts.get(place, 0) + done_from(each).letters
    return {place: count for place, count in counts.items() if count}

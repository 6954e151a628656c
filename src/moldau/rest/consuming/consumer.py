"""One consumer instance: librdkafka's consumer, which one thread at a time uses, and records that wait for a reader.

Offsets count as read when their record was handed out: what is committed without naming offsets, by the client or
every few seconds, is never of a record that nobody got.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from moldau.core.patterns import CompiledPattern, InvalidPattern, compile_pattern
from moldau.rest.librdkafka import is_transient, problem_of_error, quiet
from moldau.rest.problems import illegal_state, no_instance
from moldau.rest.settings import RestSettings
from moldau.schemas.model import InvalidValue
from moldau.web.errors import ApiError

T = TypeVar("T")
Place = tuple[str, int]

UNREADABLE = 40801  # Confluent's proxy says a timeout where a deserializer fails
AT_ONCE_MAX = 100  # records of a megabyte each are as much as a thread should take at once
SEEK_S_MAX = 5.0  # how long a partition that was just assigned may take to be sought in
SEEK_PAUSE_S = 0.02
SILENT = (
    KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC,
    KafkaError._MAX_POLL_EXCEEDED,
)  # fmt: skip
PATTERN_S = 5.0  # between two looks at the topics that a pattern may describe


class Mode(Enum):
    NONE = "nothing"
    TOPICS = "topics"
    PATTERN = "a pattern"
    ASSIGNED = "partitions"


class InstanceConsumer:
    def __init__(self, properties: Mapping[str, object], settings: RestSettings) -> None:
        usual = {
            "auto.offset.reset": "latest",
            "queued.max.messages.kbytes": settings.prefetch_kbytes_max,
            "topic.metadata.refresh.interval.ms": 30_000,
        }
        given = {**usual, **quiet(), **properties, "enable.auto.offset.store": False}
        try:
            self._consumer: Any = Consumer(given)
        except (KafkaException, ValueError, TypeError) as wrong:
            raise ApiError(42204, f"Invalid consumer configuration: {wrong}") from None
        self._lock = threading.Lock()
        self._timeout_s = settings.timeout_s
        self._waiting: deque[Any] = deque()
        self._mode = Mode.NONE
        self._topics: list[str] = []
        self._pattern: CompiledPattern | None = None
        self._pattern_due_s = 0.0
        self._is_closed = False

    def close(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._waiting.clear()
                self._consumer.close()

    def subscribe(self, topics: Sequence[str]) -> None:
        self._use(lambda: self._subscribe(Mode.TOPICS, topics))

    def subscribe_pattern(self, text: str) -> None:
        try:
            pattern = compile_pattern(text)
        except InvalidPattern as wrong:
            raise ApiError(422, f"topic_pattern: {wrong}") from None

        def subscribe() -> None:
            self._check_mode(Mode.PATTERN)
            self._pattern = pattern
            self._subscribe(Mode.PATTERN, self._described())

        self._use(subscribe)

    def unsubscribe(self) -> None:
        def unsubscribe() -> None:
            self._consumer.unsubscribe()
            self._waiting.clear()
            self._mode, self._topics, self._pattern = Mode.NONE, [], None

        self._use(unsubscribe)

    def subscription(self) -> list[str]:
        return self._use(lambda: [*self._topics])

    def assign(self, places: Sequence[Place]) -> None:
        def assign() -> None:
            self._check_mode(Mode.ASSIGNED)
            self._waiting.clear()
            self._consumer.assign([TopicPartition(*place) for place in places])
            self._mode = Mode.ASSIGNED if places else Mode.NONE

        self._use(assign)

    def assignment(self) -> list[Place]:
        return self._use(lambda: sorted(self._assigned()))

    def seek(self, offsets: Mapping[Place, int]) -> None:
        self._use(lambda: self._seek(offsets))

    def seek_to_beginning(self, places: Iterable[Place]) -> None:
        self.seek(dict.fromkeys(places, OFFSET_BEGINNING))

    def seek_to_end(self, places: Iterable[Place]) -> None:
        """The end of this moment: librdkafka would look for it later, and pass by what came meanwhile."""

        def seek() -> None:
            self._check_assigned(places)
            ends = {
                place: self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=self._timeout_s)
                for place in places
            }
            self._seek({place: found[1] if found else OFFSET_END for place, found in ends.items()})

        self._use(seek)

    def seek_to_times(self, times_ms: Mapping[Place, int]) -> None:
        def seek() -> None:
            asked = [TopicPartition(*place, at_ms) for place, at_ms in times_ms.items()]
            found = self._consumer.offsets_for_times(asked, timeout=self._timeout_s)
            self._seek({(each.topic, each.partition): each.offset for each in _checked(found)})

        self._use(seek)

    def committed(self, places: Sequence[Place]) -> list[tuple[Place, int, str]]:
        def committed() -> list[tuple[Place, int, str]]:
            asked = [TopicPartition(*place) for place in places]
            found = _checked(self._consumer.committed(asked, timeout=self._timeout_s)) if asked else []
            return [((each.topic, each.partition), each.offset, each.metadata or "") for each in found]

        return [each for each in self._use(committed) if each[1] >= 0]

    def commit(self, offsets: Mapping[Place, tuple[int, str]] | None, *, wait: bool = True) -> None:
        """None for all records that were handed out."""

        def commit() -> None:
            try:
                if offsets is None:
                    _checked(self._consumer.commit(asynchronous=not wait) or [])
                elif offsets:
                    wanted = [
                        TopicPartition(*place, offset, metadata=metadata)
                        for place, (offset, metadata) in offsets.items()
                    ]
                    _checked(self._consumer.commit(offsets=wanted, asynchronous=False))
            except KafkaException as wrong:
                if wrong.args[0].code() != KafkaError._NO_OFFSET:
                    raise

        self._use(commit)

    def take(
        self, render: Callable[[Any], T], *, bytes_max: int, wait_s: float, is_first: bool
    ) -> tuple[list[T], int, bool]:
        """Records that are there or come within this time, their size, and whether the answer has to end here.

        One that cannot be rendered ends it, and where it is the answer's first it is an error of its own, after which
        its reader goes on behind it.
        """
        return self._use(lambda: self._take(render, bytes_max, wait_s, is_first))

    def _take(
        self, render: Callable[[Any], T], bytes_max: int, wait_s: float, is_first: bool
    ) -> tuple[list[T], int, bool]:
        if self._mode is Mode.NONE:
            raise illegal_state("Consumer is not subscribed to any topics or assigned any partitions")
        if self._mode is Mode.PATTERN and time.monotonic() >= self._pattern_due_s:
            self._subscribe(Mode.PATTERN, self._described())
        if not self._waiting and (self._topics or self._mode is Mode.ASSIGNED):
            self._poll(wait_s)
        found: list[T] = []
        size = 0
        while self._waiting:
            record = self._waiting[0]
            if size + size_of(record) >= bytes_max:
                return found, size, True
            try:
                found.append(render(record))
            except InvalidValue as wrong:
                if found or not is_first:
                    return found, size, True
                self._hand_out(self._waiting.popleft())
                raise ApiError(UNREADABLE, _unreadable(record, wrong)) from None
            size += size_of(record)
            self._hand_out(self._waiting.popleft())
        return found, size, False

    def _poll(self, wait_s: float) -> None:
        """The first record ends the wait. Records that came with an error wait for the next reader."""
        first = self._consumer.poll(wait_s)
        found = [] if first is None else [first, *self._consumer.consume(AT_ONCE_MAX, 0)]
        self._waiting.extend(each for each in found if each.error() is None)
        for each in found:
            _check_error(each)

    def _hand_out(self, record: Any) -> None:
        try:
            self._consumer.store_offsets(message=record)
        except KafkaException as wrong:  # the group has given its partition to somebody else
            if wrong.args[0].code() != KafkaError._STATE:
                raise

    def _use(self, do: Callable[[], T]) -> T:
        with self._lock:
            if self._is_closed:
                raise no_instance()
            try:
                return do()
            except KafkaException as wrong:
                raise problem_of_error(wrong.args[0]) from None

    def _check_mode(self, mode: Mode) -> None:
        if self._mode not in (Mode.NONE, mode):
            raise illegal_state("Subscription to topics, partitions and pattern are mutually exclusive")

    def _subscribe(self, mode: Mode, topics: Sequence[str]) -> None:
        self._check_mode(mode)
        if mode is Mode.PATTERN:
            self._pattern_due_s = time.monotonic() + PATTERN_S
        if mode is self._mode and sorted(topics) == sorted(self._topics):
            return
        if topics:
            self._consumer.subscribe([*dict.fromkeys(topics)], on_revoke=self._on_revoke, on_lost=self._on_revoke)
        else:
            self._consumer.unsubscribe()
        self._topics = [*dict.fromkeys(topics)]
        self._mode = mode if topics or mode is Mode.PATTERN else Mode.NONE
        self._drop({(each.topic(), each.partition()) for each in self._waiting if each.topic() not in self._topics})

    def _described(self) -> list[str]:
        assert self._pattern is not None, "its mode says so"
        there = self._consumer.list_topics(timeout=self._timeout_s).topics
        return sorted(name for name in there if not name.startswith("__") and self._pattern.matches(name))

    def _on_revoke(self, _consumer: object, places: Iterable[TopicPartition]) -> None:
        """Whoever has them now reads these records again."""
        self._drop({(each.topic, each.partition) for each in places})

    def _drop(self, places: set[Place]) -> None:
        if places:
            self._waiting = deque(each for each in self._waiting if (each.topic(), each.partition()) not in places)

    def _assigned(self) -> set[Place]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}

    def _check_assigned(self, places: Iterable[Place]) -> None:
        assigned = self._assigned()
        for topic, partition in places:
            if (topic, partition) not in assigned:
                raise illegal_state(f"No current assignment for partition {topic}-{partition}")

    def _seek(self, offsets: Mapping[Place, int]) -> None:
        self._check_assigned(offsets)
        deadline_s = time.monotonic() + SEEK_S_MAX
        for place, offset in offsets.items():
            while True:
                try:
                    self._consumer.seek(TopicPartition(*place, offset))
                    break
                except KafkaException as wrong:  # until its fetcher has begun
                    if wrong.args[0].code() != KafkaError._STATE or time.monotonic() >= deadline_s:
                        raise
                    time.sleep(SEEK_PAUSE_S)
        self._drop(set(offsets))


def _unreadable(record: Any, wrong: InvalidValue) -> str:
    return (
        f"Error deserializing the record at offset {record.offset()} of {record.topic()}-{record.partition()}: {wrong}"
    )


def size_of(record: Any) -> int:
    return len(record.key() or b"") + len(record.value() or b"")


def _check_error(message: Any) -> None:
    error = message.error()
    if error is not None and error.code() not in SILENT and not is_transient(error):
        raise problem_of_error(error)


def _checked(places: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
    for each in places:
        if each.error is not None:
            raise problem_of_error(each.error)
    return places

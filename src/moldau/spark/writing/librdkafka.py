"""Both ways of delivery by librdkafka: for listeners that are not plain, and for settings that only it follows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from moldau.client.security import ClientSettings
from moldau.spark.clients.librdkafka import (
    ANSWER_S_MAX,
    NoAnswer,
    admin_client,
    client_config,
    group_consumer,
    group_names,
    reason,
)
from moldau.spark.offsets.committed import committed
from moldau.spark.option_values import OptionError
from moldau.spark.writing.producing import WRITING, DeliveryFailures, Written, flush, produce, room_of, without_room
from moldau.spark.writing.rows_to_records import RowsToRecords
from moldau.spark.writing.task_progress import (
    TOO_LONG,
    TRANSACTION_MS_MAX,
    TRANSACTION_TIMEOUT,
    Fenced,
    NotedBatch,
    NoteSlot,
    SinkTask,
    done_of,
    newest_done,
    note_of,
)

PRODUCERS_MAX = 8  # each has threads and connections of its own
TRANSACTION = {TRANSACTION_TIMEOUT: str(TRANSACTION_MS_MAX)}
FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
# Settings of the user that idempotence, which is on by default as in Java, would contradict.
WEAKER = ("acks", "request.required.acks", "retries", "max.in.flight.requests.per.connection", "enable.idempotence")


class Transactional:
    """A producer with its transactional id, alive in this worker until another worker takes the id over."""

    def __init__(self, settings: ClientSettings, name: str, slot: NoteSlot) -> None:
        self.name = name
        self.slot = slot
        self.done_batch = -1
        self.producer = Producer(
            client_config((), **WRITING, **TRANSACTION) | without_room(settings) | {"transactional.id": name}
        )
        self.producer.init_transactions()
        # Only a consumer can say for which group an offset is, and what the group has.
        self.progress = progress_consumer(settings, slot.group)

    def begin(self, sink_task: SinkTask, topic: str) -> None:
        """The progress goes first: if somebody has taken the id over, that is known before a row is read."""
        self.producer.begin_transaction()
        self.note(sink_task, topic, Written())

    def note(self, sink_task: SinkTask, topic: str, written: Written) -> None:
        self.producer.send_offsets_to_transaction(
            [TopicPartition(topic, self.slot.partition, sink_task.batch, note_of(written))],
            self.progress.consumer_group_metadata(),
        )

    def abort(self) -> None:
        try:
            self.producer.abort_transaction()
        except KafkaException:
            """Fenced or lost: the coordinator aborts it when the id is used again, or in time."""


def progress_consumer(settings: ClientSettings, group: str) -> Consumer:
    return Consumer(client_config(settings) | {"group.id": group, "enable.auto.commit": "false"})


class Producers:
    """The producers of this worker."""

    def __init__(self) -> None:
        self.transactional: dict[tuple[ClientSettings, str], Transactional] = {}

    def take(self, settings: ClientSettings, name: str) -> Transactional | None:
        """Out of the store, so that one that fails is not used again."""
        return self.transactional.pop((settings, name), None)

    def put(self, settings: ClientSettings, used: Transactional) -> None:
        self.transactional[settings, used.name] = used
        while len(self.transactional) > PRODUCERS_MAX:
            del self.transactional[next(iter(self.transactional))]


@lru_cache(maxsize=1)
def worker_producers() -> Producers:
    return Producers()


@lru_cache(maxsize=PRODUCERS_MAX)
def plain_producer(settings: ClientSettings) -> tuple[Producer, DeliveryFailures]:
    failures = DeliveryFailures()
    given = without_room(settings)
    own: dict[str, str | bool] = (
        dict(WRITING) if any(name in given for name in WEAKER) else {**WRITING, "enable.idempotence": "true"}
    )
    return Producer(client_config((), **own) | given | {"on_delivery": failures}), failures


def write_by_library(rows: Iterable[pa.RecordBatch], settings: ClientSettings, shape: RowsToRecords) -> Written:
    """At least once."""
    producer, failures = plain_producer(settings)
    failures.first = None
    try:
        written = produce(rows, producer, shape, room_of(settings))
    except KafkaException as wrong:
        raise NoAnswer(f"records could not be written: {reason(wrong)}") from None
    flush(producer, failures)
    return written


class LibraryTransaction:
    """A transaction of one task."""

    def __init__(self, settings: ClientSettings, opened: Transactional) -> None:
        self.slot = opened.slot
        self._settings = settings
        self._opened = opened

    def write(self, rows: Iterable[pa.RecordBatch], shape: RowsToRecords, sink_task: SinkTask, topic: str) -> Written:
        opened = self._opened
        try:
            written = produce(rows, opened.producer, shape, room_of(self._settings))
            opened.note(sink_task, topic, written)
            opened.producer.commit_transaction()
        except KafkaException as wrong:
            opened.abort()
            raise translated(wrong, sink_task) from None
        except BaseException:
            opened.abort()
            raise
        opened.done_batch = sink_task.batch
        worker_producers().put(self._settings, opened)
        return written


def opened_by_library(
    settings: ClientSettings, sink_task: SinkTask, topic: str, *, in_any_topic: bool
) -> LibraryTransaction | NotedBatch:
    """A transaction to write into, or what is committed if the batch is."""
    try:
        opened = _opened(settings, sink_task, topic, in_any_topic=in_any_topic)
    except KafkaException as wrong:
        raise translated(wrong, sink_task) from None
    return opened if isinstance(opened, NotedBatch) else LibraryTransaction(settings, opened)


def _opened(
    settings: ClientSettings, sink_task: SinkTask, topic: str, *, in_any_topic: bool
) -> Transactional | NotedBatch:
    name = sink_task.transactional_id
    kept = worker_producers().take(settings, name)
    slot = sink_task.slot(0 if in_any_topic else partition_count(settings, topic))
    # What this very producer committed last is known, as long as nobody else has taken its id: no need to ask.
    if kept is not None and kept.done_batch < sink_task.batch and kept.slot == slot:
        try:
            kept.begin(sink_task, topic)
        except KafkaException:
            kept.abort()
        else:
            return kept
    del kept
    made = Transactional(settings, name, slot)
    # Only now: making the producer ended the transaction of any earlier attempt, one way or the other.
    done = _committed(settings, sink_task, slot, topic, in_any_topic=in_any_topic)
    if done is not None and done.batch >= sink_task.batch:
        return done
    made.begin(sink_task, topic)
    return made


def done_by_library(
    settings: ClientSettings, sink_task: SinkTask, topic: str, *, in_any_topic: bool
) -> NotedBatch | None:
    """What other attempts have committed."""
    try:
        slot = sink_task.slot(0 if in_any_topic else partition_count(settings, topic))
        return _committed(settings, sink_task, slot, topic, in_any_topic=in_any_topic)
    except KafkaException as wrong:
        raise translated(wrong, sink_task) from None


def noted_by_library(settings: ClientSettings, sink_task: SinkTask, topic: str | None) -> NotedBatch | None:
    """Of a task without rows, in the query's own group: to look further would take a client for each such task."""
    if topic is None:
        return None
    slot = NoteSlot(sink_task.query_group, sink_task.task)
    try:
        (found,) = committed(group_consumer(settings, slot.group), [TopicPartition(topic, slot.partition)])
    except KafkaException as wrong:
        raise translated(wrong, sink_task) from None
    return None if found.offset < 0 else replace(done_of(found.offset, found.metadata), slot=slot)


def translated(wrong: KafkaException, sink_task: SinkTask) -> Exception:
    if wrong.args[0].code() in FENCED:
        return Fenced(reason(wrong))
    if wrong.args[0].code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return OptionError(TOO_LONG)
    return NoAnswer(f"batch {sink_task.batch} of query {sink_task.query_id}, task {sink_task.task}: {reason(wrong)}")


def partition_count(settings: ClientSettings, topic: str) -> int:
    """Asked anew for each task: 0 is as good as any other number, it costs a group for the length of a batch."""
    described = admin_client(settings).list_topics(topic, timeout=ANSWER_S_MAX).topics[topic]
    return len(described.partitions)


def _committed(
    settings: ClientSettings, sink_task: SinkTask, slot: NoteSlot, topic: str, *, in_any_topic: bool
) -> NotedBatch | None:
    return newest_done(
        sink_task, slot, lambda at: noted(settings, at, topic, in_any_topic=in_any_topic), in_any_topic=in_any_topic
    )


def noted_tasks(settings: ClientSettings, group: str, batch: int, topic: str | None) -> set[int]:
    """Tasks of a query, known by its group, that have noted a batch; `topic` is None where rows name theirs."""
    admin = admin_client(settings)
    found: set[int] = set()
    for name in group_names(settings):
        own = name.removeprefix(f"{group}-")
        if name == group or (name != own and own.isdigit()):
            asked = admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(name)], request_timeout=ANSWER_S_MAX
            )
            notes = asked[name].result().topic_partitions
            newest = [each for each in notes if each.offset >= batch and topic in (None, each.topic)]
            found.update(each.partition if name == group else int(own) for each in newest)
    return found


def noted_schemas(settings: ClientSettings, group: str, batch: int, topic: str) -> dict[str, int]:
    """A registry's ids that a batch was begun with, by side; none where none of its rows is committed."""
    asked = admin_client(settings).list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group)], request_timeout=ANSWER_S_MAX
    )
    for each in asked[group].result().topic_partitions:
        if each.topic == topic and each.offset == batch:
            found = done_of(batch, each.metadata).schemas
            if found:
                return found
    return {}


def noted(settings: ClientSettings, slot: NoteSlot, topic: str, *, in_any_topic: bool) -> NotedBatch | None:
    """The newest batch at a slot; where rows name their topics, it may stand under any of them."""
    # The second call brings the process down while the group has no coordinator: the first one waits for it.
    found = committed(progress_consumer(settings, slot.group), [TopicPartition(topic, slot.partition)])
    if in_any_topic:
        asked = admin_client(settings).list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(slot.group)], require_stable=True, request_timeout=ANSWER_S_MAX
        )
        found = asked[slot.group].result().topic_partitions
    its = [each for each in found if each.offset >= 0 and each.partition == slot.partition]
    newest = max(its, key=lambda each: int(each.offset), default=None)
    return None if newest is None else done_of(newest.offset, newest.metadata)

"""At least once and exactly once into topics.

Exactly once: a task writes its rows in one transaction, with a transactional id of the query and the task, and in the
same transaction commits the number of the batch as an offset of a group of the query and the task. A task that finds
its batch committed writes nothing. Data and progress are one fact, on any Kafka.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import pyarrow as pa
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from moldau.spark.client_settings import ClientSettings
from moldau.spark.clients import ANSWER_S_MAX, NoAnswer, admin_client, client_config, reason
from moldau.spark.options import SinkOptions
from moldau.spark.outgoing import outgoing
from moldau.spark.producing import WRITING, DeliveryFailures, Written, flush, measure, produce

PRODUCERS_MAX = 8  # each has threads and connections of its own
OTHERS_S_MAX = 60.0
PAUSE_S = 0.1
TRANSACTION = {"transaction.timeout.ms": "300000"}
FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
# A coordinator that moves or starts, and markers of a transaction that are still on their way.
NOT_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)
# Settings of the user that idempotence, which is on by default as in Java, would contradict.
WEAKER = ("acks", "request.required.acks", "retries", "max.in.flight.requests.per.connection", "enable.idempotence")


class BatchChanged(RuntimeError):
    """A batch that was written in part is run again with other rows: neither writing nor skipping would be right."""


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


class Transactional:
    """A producer with its transactional id, alive in this worker until another worker takes the id over."""

    def __init__(self, settings: ClientSettings, name: str) -> None:
        self.name = name
        self.done_batch = -1
        self.producer = Producer(
            client_config((), **WRITING, **TRANSACTION) | dict(settings) | {"transactional.id": name}
        )
        self.producer.init_transactions()
        # Only a consumer can say for which group an offset is, and what the group has.
        self.progress = progress_consumer(settings, name)

    def begin(self, ticket: Ticket, topic: str) -> None:
        """The progress goes first: if somebody has taken the id over, that is known before a row is read."""
        self.producer.begin_transaction()
        self.note(ticket, topic, Written())

    def note(self, ticket: Ticket, topic: str, written: Written) -> None:
        metadata = json.dumps({"records": written.records, "bytes": written.size_bytes})
        self.producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, ticket.batch, metadata)], self.progress.consumer_group_metadata()
        )

    def abort(self) -> None:
        try:
            self.producer.abort_transaction()
        except KafkaException:
            """Fenced or lost: the coordinator aborts it when the id is used again, or in time."""


def progress_consumer(settings: ClientSettings, name: str) -> Consumer:
    return Consumer(client_config(settings) | {"group.id": name, "enable.auto.commit": "false"})


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
    given = dict(settings)
    own: dict[str, str | bool] = (
        dict(WRITING) if any(name in given for name in WEAKER) else {**WRITING, "enable.idempotence": "true"}
    )
    return Producer(client_config((), **own) | given | {"on_delivery": failures}), failures


def write_at_least_once(batches: Iterable[pa.RecordBatch], options: SinkOptions) -> Written:
    producer, failures = plain_producer(options.client)
    failures.first = None
    try:
        written = produce(batches, producer, outgoing(options))
    except KafkaException as wrong:
        raise NoAnswer(f"records could not be written: {reason(wrong)}") from None
    flush(producer, failures)
    return written


def write_exactly_once(batches: Iterable[pa.RecordBatch], options: SinkOptions, ticket: Ticket) -> Written:
    rows = iter(batches)
    first = next((batch for batch in rows if batch.num_rows), None)
    if first is None:
        return Written()
    topic = next(outgoing(options).records(first)).topic
    rows = chain([first], rows)
    try:
        opened = _opened(options, ticket, topic)
        if isinstance(opened, Done):
            return _skip(rows, options, ticket, opened)
        return _write_transaction(opened, rows, options, ticket, topic)
    except KafkaException as wrong:
        if wrong.args[0].code() in FENCED:
            return _leave_to_other(options, ticket, topic)
        raise NoAnswer(
            f"batch {ticket.batch} of query {ticket.query_id}, task {ticket.task}: {reason(wrong)}"
        ) from None


def _opened(options: SinkOptions, ticket: Ticket, topic: str) -> Transactional | Done:
    """A transaction to write into, or what is committed if the batch is."""
    kept = worker_producers().take(options.client, ticket.name)
    # What this very producer committed last is known, as long as nobody else has taken its id: no need to ask.
    if kept is not None and kept.done_batch < ticket.batch:
        try:
            kept.begin(ticket, topic)
        except KafkaException:
            kept.abort()
        else:
            return kept
    del kept
    made = Transactional(options.client, ticket.name)
    # Only now: making the producer ended the transaction of any earlier attempt, one way or the other.
    done = committed(made.progress, options, ticket, topic)
    if done is not None and done.batch >= ticket.batch:
        return done
    made.begin(ticket, topic)
    return made


def _write_transaction(
    opened: Transactional, rows: Iterator[pa.RecordBatch], options: SinkOptions, ticket: Ticket, topic: str
) -> Written:
    try:
        written = produce(rows, opened.producer, outgoing(options))
        opened.note(ticket, topic, written)
        opened.producer.commit_transaction()
    except BaseException:
        opened.abort()
        raise
    opened.done_batch = ticket.batch
    worker_producers().put(options.client, opened)
    return written


def committed(progress: Consumer, options: SinkOptions, ticket: Ticket, topic: str) -> Done | None:
    """The newest batch that the task's group has; where rows name their topics, it may stand under any of them."""
    # The second call brings the process down while the group has no coordinator: the first one waits for it.
    found = _committed_in(progress, topic)
    if options.topic is None:
        asked = admin_client(options.client).list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(ticket.name)], require_stable=True, request_timeout=ANSWER_S_MAX
        )
        found = asked[ticket.name].result().topic_partitions
    newest = max((each for each in found if each.offset >= 0), key=lambda each: int(each.offset), default=None)
    if newest is None:
        return None
    told = json.loads(newest.metadata or "{}")
    return Done(newest.offset, Written(told.get("records", 0), told.get("bytes", 0)))


def _committed_in(progress: Consumer, topic: str) -> list[TopicPartition]:
    deadline_s = time.monotonic() + ANSWER_S_MAX
    while True:
        try:
            found: list[TopicPartition] = progress.committed([TopicPartition(topic, 0)], timeout=ANSWER_S_MAX)
            return found
        except KafkaException as wrong:
            if wrong.args[0].code() not in NOT_YET or time.monotonic() > deadline_s:
                raise
            time.sleep(PAUSE_S)


def _skip(rows: Iterable[pa.RecordBatch], options: SinkOptions, ticket: Ticket, done: Done) -> Written:
    """The batch is in the topic: nothing is written, after a look whether it is the same batch."""
    found = measure(rows, outgoing(options))
    if done.batch > ticket.batch or found != done.written:
        raise BatchChanged(
            f"batch {ticket.batch} of query {ticket.query_id}, task {ticket.task}, has {found.records} records of "
            f"{found.size_bytes} bytes, but batch {done.batch} was written with {done.written.records} of "
            f"{done.written.size_bytes}: the checkpoint, the options or the number of partitions changed in between. "
            "Put them back, or run the batch once with delivery=at-least-once, which writes part of it twice."
        )
    return Written()


def _leave_to_other(options: SinkOptions, ticket: Ticket, topic: str) -> Written:
    """Another attempt of this task took the id over. If it commits the batch, there is nothing left to do."""
    deadline_s = time.monotonic() + OTHERS_S_MAX
    progress = progress_consumer(options.client, ticket.name)
    while time.monotonic() < deadline_s:
        done = committed(progress, options, ticket, topic)
        if done is not None and done.batch >= ticket.batch:
            return Written()
        time.sleep(PAUSE_S)
    raise NoAnswer(f"another attempt of task {ticket.task} took over batch {ticket.batch} and did not finish it")

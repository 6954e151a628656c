"""Both ways of delivery on plain listeners: a producer that needs no start, and transactions of one task's length.

Spark gives a task to whichever worker is free, so a producer that is kept for the next batch is rarely where it is
needed. This one is made anew for each task, in two requests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa

from moldau.client.security import FOLLOWED as SECURITY_SETTINGS
from moldau.client.security import ClientSettings, can_secure
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.clients.plain_brokers import (
    CLUSTERS_MAX,
    GROUP,
    TRANSACTION,
    BrokerRefused,
    PlainBrokers,
    brokers_of,
    check,
)
from moldau.spark.option_values import OptionError
from moldau.spark.writing.plain_sending import FENCED, Identity, PlainSender, SendingRules
from moldau.spark.writing.producing import Written, placed
from moldau.spark.writing.rows_to_records import RowsToRecords
from moldau.spark.writing.task_progress import (
    TOO_LONG,
    Fenced,
    NotedBatch,
    NoteSlot,
    SinkTask,
    done_of,
    done_slot,
    newest_done,
    note_of,
    transaction_timeout_ms,
)
from moldau.wire.compression import Codec
from moldau.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from moldau.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from moldau.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from moldau.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from moldau.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from moldau.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from moldau.wire.schema import Message

Answer = TypeVar("Answer", bound=Message)
INIT_VERSION = 1
ADD_PARTITIONS_VERSION = 1
ADD_OFFSETS_VERSION = 1
OFFSET_COMMIT_VERSION = 2
OFFSET_FETCH_VERSION = 7  # the first that waits for a transaction in doubt
END_VERSION = 1

CODECS = {"none": Codec.NONE, "gzip": Codec.GZIP, "snappy": Codec.SNAPPY, "lz4": Codec.LZ4, "zstd": Codec.ZSTD}
# The settings that are followed here, or that make no difference here; any other is left to librdkafka.
FOLLOWED = {
    "bootstrap.servers", "client.id", "security.protocol", "compression.type", "batch.size", "linger.ms",
    "delivery.timeout.ms", "request.timeout.ms", "transaction.timeout.ms", "queue.buffering.max.kbytes",
    "enable.idempotence", "acks", "metadata.max.age.ms", "connections.max.idle.ms", "reconnect.backoff.ms",
    "reconnect.backoff.max.ms", "retry.backoff.ms", "retry.backoff.max.ms", "enable.metrics.push", *SECURITY_SETTINGS,
}  # fmt: skip
REQUIRED = {"enable.idempotence": ("true",), "acks": ("all", "-1")}


def can_send(settings: ClientSettings) -> bool:
    given = dict(settings)
    if any(name not in FOLLOWED for name in given) or given.get("compression.type", "none") not in CODECS:
        return False
    if not can_secure(given):
        return False
    return all(given[name].lower() in allowed for name, allowed in REQUIRED.items() if name in given)


def sending_rules(settings: ClientSettings) -> SendingRules:
    """librdkafka has looked at the values before."""
    given = dict(settings)
    usual = SendingRules()
    return SendingRules(
        codec=CODECS[given.get("compression.type", "none")],
        batch_bytes_max=int(given.get("batch.size", usual.batch_bytes_max)),
        answer_ms_max=int(given.get("request.timeout.ms", usual.answer_ms_max)),
        delivery_s_max=int(given.get("delivery.timeout.ms", int(usual.delivery_s_max * 1000))) / 1000,
    )


class KeptSenders:
    """Producers without a transactional id, kept in this worker: each new one would be remembered by every broker."""

    def __init__(self) -> None:
        self._senders: dict[ClientSettings, PlainSender] = {}

    def take(self, settings: ClientSettings) -> PlainSender:
        """Out of the store, so that one that fails is not used again."""
        return self._senders.pop(settings, None) or _new_sender(settings)

    def put(self, settings: ClientSettings, sender: PlainSender) -> None:
        self._senders[settings] = sender
        while len(self._senders) > CLUSTERS_MAX:
            del self._senders[next(iter(self._senders))]


@lru_cache(maxsize=1)
def worker_senders() -> KeptSenders:
    return KeptSenders()


def write_plainly(rows: Iterable[pa.RecordBatch], settings: ClientSettings, shape: RowsToRecords) -> Written:
    """At least once; twice only if a task is run again."""
    sender = worker_senders().take(settings)
    written = _send(rows, brokers_of(settings), sender, shape)
    worker_senders().put(settings, sender)
    return written


def _new_sender(settings: ClientSettings) -> PlainSender:
    brokers = brokers_of(settings)

    def ask() -> InitProducerIdResponse:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
        answer = brokers.anywhere().call(request, INIT_VERSION, InitProducerIdResponse)
        check(answer.error_code)
        return answer

    try:
        made = brokers.patiently(ask)
    except BrokerRefused as refused:
        raise NoAnswer(f"records could not be written: {refused}") from None
    return PlainSender(brokers, Identity(made.producer_id, made.producer_epoch), sending_rules(settings))


def _send(rows: Iterable[pa.RecordBatch], brokers: PlainBrokers, sender: PlainSender, shape: RowsToRecords) -> Written:
    written = Written(schemas=shape.schemas)
    brokers.look_again()
    try:
        for batch in rows:
            for records in shape.records(batch):
                written.add(records)
                for some in placed(records, brokers.partition_count):
                    sender.send(some)
        sender.finish()
    except BaseException:
        # Answers that nobody waits for any more would be taken for those to the next requests.
        brokers.forget()
        raise
    return written


class PlainTransaction:
    """The one transaction of a task. Making it ends what an earlier attempt has left open, one way or the other."""

    def __init__(self, settings: ClientSettings, name: str, slot: NoteSlot) -> None:
        self._name = name
        self.slot = slot
        self._rules = sending_rules(settings)
        self._brokers = brokers_of(settings)
        timeout_ms = transaction_timeout_ms(settings)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        made = self._ask(TRANSACTION, request, INIT_VERSION, InitProducerIdResponse, _code)
        self._identity = Identity(made.producer_id, made.producer_epoch, name)

    def write(self, rows: Iterable[pa.RecordBatch], shape: RowsToRecords, sink_task: SinkTask, topic: str) -> Written:
        """Rows and progress, committed together when it returns."""
        sender = PlainSender(self._brokers, self._identity, self._rules, before_first=self._add_partitions)
        try:
            written = _send(rows, self._brokers, sender, shape)
            self._note(sink_task, topic, written)
            self._end(committed=True)
        except BaseException:
            self._abort()
            raise
        return written

    def _add_partitions(self, places: Collection[TopicPartition]) -> None:
        topics: dict[str, list[int]] = {}
        for place in places:
            topics.setdefault(place.topic, []).append(place.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._identity.producer_id,
            v3_and_below_producer_epoch=self._identity.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(topic, partitions) for topic, partitions in topics.items()],
        )
        self._ask(TRANSACTION, request, ADD_PARTITIONS_VERSION, AddPartitionsToTxnResponse, _codes_of_partitions)

    def _note(self, sink_task: SinkTask, topic: str, written: Written) -> None:
        identity = self._identity
        joining = AddOffsetsToTxnRequest(self._name, identity.producer_id, identity.epoch, self.slot.group)
        self._ask(TRANSACTION, joining, ADD_OFFSETS_VERSION, AddOffsetsToTxnResponse, _code)
        noted = TxnOffsetCommitRequestPartition(
            self.slot.partition, sink_task.batch, committed_metadata=note_of(written)
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self._name,
            group_id=self.slot.group,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            topics=[TxnOffsetCommitRequestTopic(topic, [noted])],
        )
        self._ask(GROUP, request, OFFSET_COMMIT_VERSION, TxnOffsetCommitResponse, _codes_of_topics)

    def _end(self, *, committed: bool) -> None:
        identity = self._identity
        request = EndTxnRequest(self._name, identity.producer_id, identity.epoch, committed=committed)
        self._ask(TRANSACTION, request, END_VERSION, EndTxnResponse, _code)

    def _abort(self) -> None:
        """Fenced or lost, the coordinator aborts it when the id is used again, or in time."""
        with suppress(Fenced, NoAnswer):
            self._end(committed=False)

    def _ask(
        self, kind: int, request: Message, version: int, answer: type[Answer], codes: Callable[[Any], Iterable[int]]
    ) -> Answer:
        try:
            key = self.slot.group if kind == GROUP else self._name
            return self._brokers.ask_coordinator(kind, key, request, version, answer, codes=codes)
        except BrokerRefused as refused:
            # A transaction whose time was up may be over by now, and the request comes for none.
            if refused.code in (*FENCED, ErrorCode.INVALID_TXN_STATE):
                raise Fenced(str(refused)) from None
            if refused.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                raise OptionError(TOO_LONG) from None
            raise NoAnswer(f"transaction {self._name}: {refused}") from None


def opened_plainly(
    settings: ClientSettings, sink_task: SinkTask, topic: str, *, in_any_topic: bool
) -> PlainTransaction | NotedBatch:
    """A transaction to write into, or what is committed if the batch is."""
    slot = _slot(settings, sink_task, topic, in_any_topic=in_any_topic)
    made = PlainTransaction(settings, sink_task.transactional_id, slot)
    done = done_plainly(settings, sink_task, topic, in_any_topic=in_any_topic)
    return made if done is None or done.batch < sink_task.batch else done


def done_plainly(settings: ClientSettings, sink_task: SinkTask, topic: str, *, in_any_topic: bool) -> NotedBatch | None:
    """What is committed; where rows name their topics, it may stand under any of them."""
    slot = _slot(settings, sink_task, topic, in_any_topic=in_any_topic)
    wanted = None if in_any_topic else topic
    return newest_done(sink_task, slot, lambda at: _noted(settings, at, wanted), in_any_topic=in_any_topic)


def noted_plainly(settings: ClientSettings, sink_task: SinkTask, topic: str | None) -> NotedBatch | None:
    """The same of a task without rows, which needs no topic that is there; `topic` is None where rows name theirs."""
    own, of_query = NoteSlot(sink_task.task_group, 0), NoteSlot(sink_task.query_group, sink_task.task)
    for slot in (of_query, own, done_slot(sink_task.query_group)):
        found = _noted(settings, slot, topic)
        if found is not None and found.batch >= sink_task.batch:
            return replace(found, is_whole=slot not in (of_query, own), slot=of_query if slot == of_query else own)
    return None


def _slot(settings: ClientSettings, sink_task: SinkTask, topic: str, *, in_any_topic: bool) -> NoteSlot:
    return sink_task.slot(0 if in_any_topic else brokers_of(settings).partition_count(topic))


def _noted(settings: ClientSettings, slot: NoteSlot, topic: str | None) -> NotedBatch | None:
    topics = None if topic is None else [OffsetFetchRequestTopic(topic, [slot.partition])]
    request = OffsetFetchRequest(group_id=slot.group, topics=topics, require_stable=True)
    try:
        found = brokers_of(settings).ask_coordinator(
            GROUP, slot.group, request, OFFSET_FETCH_VERSION, OffsetFetchResponse, codes=_codes_of_fetch
        )
    except BrokerRefused as refused:
        raise NoAnswer(f"group {slot.group}: {refused}") from None
    noted = [
        each
        for told in found.topics
        for each in told.partitions
        if each.committed_offset >= 0 and each.partition_index == slot.partition
    ]
    newest = max(noted, key=lambda each: each.committed_offset, default=None)
    return None if newest is None else done_of(newest.committed_offset, newest.metadata)


def _code(answer: Any) -> Iterable[int]:
    return (answer.error_code,)


def _codes_of_partitions(answer: AddPartitionsToTxnResponse) -> Iterable[int]:
    return (
        each.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    )


def _codes_of_topics(answer: TxnOffsetCommitResponse) -> Iterable[int]:
    return (each.error_code for told in answer.topics for each in told.partitions)


def _codes_of_fetch(answer: OffsetFetchResponse) -> Iterable[int]:
    return chain((answer.error_code,), (each.error_code for told in answer.topics for each in told.partitions))

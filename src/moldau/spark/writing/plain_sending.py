"""Records sent by Produce requests of our own, where listeners are plain: the fast way to write.

It is an idempotent producer: a batch has a number, so that whatever was not answered can be sent again, in order,
without being stored twice. With a transactional id the batches are part of a transaction that somebody else ends.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from moldau.client.connection import NotAccepted
from moldau.core.clock import SystemClock
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.spark.clients.broker_connection import BrokerConnection
from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.clients.plain_brokers import (
    NOT_ACCEPTED_PAUSE_S,
    PASSING,
    PAUSE_S,
    Address,
    BrokerRefused,
    PlainBrokers,
    check,
)
from moldau.spark.writing.record_building import RecordsBytes, build_batch, record_bytes
from moldau.spark.writing.rows_to_records import Records
from moldau.spark.writing.task_progress import Fenced
from moldau.wire.batch import HEADER_BYTES, SEQUENCE_MAX, TRANSACTIONAL
from moldau.wire.compression import Codec
from moldau.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

PRODUCE_VERSION = 8  # later ones name topics by id, or take part in transactions in another way
ACKS_ALL = -1
IN_FLIGHT_MAX = 4  # a broker knows the last five batches of a producer again
REQUEST_BYTES_MAX = 4 * 1024 * 1024
RECORD_BYTES = 16  # of a record beside its key, its value and its headers
WAITING_BYTES_MAX = 64 * 1024 * 1024  # what a task keeps in memory beside the Arrow batch it works on
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)


@dataclass(frozen=True, slots=True)
class SendingRules:
    """What the user may set."""

    codec: Codec = Codec.NONE
    batch_bytes_max: int = 1_000_000
    answer_ms_max: int = 30_000
    delivery_s_max: float = 120.0


@dataclass(frozen=True, slots=True)
class Identity:
    """What the cluster knows a producer by."""

    producer_id: int
    epoch: int
    transactional_id: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    place: TopicPartition
    content: bytearray


@dataclass(slots=True)
class Sent:
    """A request that is on its way."""

    address: Address
    batches: list[Batch]
    connection: BrokerConnection | None = None  # where its answer comes, and nowhere else

    @property
    def is_lost(self) -> bool:
        return self.connection is None or self.connection.is_closed


@dataclass(slots=True)
class Waiting:
    """Records of one partition that do not fill a batch yet."""

    records: list[Records] = field(default_factory=list)
    size_bytes: int = 0


class PlainSender:
    """One producer. `before_first` hears of partitions before anything is sent to them."""

    def __init__(
        self,
        brokers: PlainBrokers,
        identity: Identity,
        rules: SendingRules,
        *,
        before_first: Callable[[Collection[TopicPartition]], None] | None = None,
    ) -> None:
        self._brokers = brokers
        self._identity = identity
        self._rules = rules
        self._before_first = before_first
        self._sequences: dict[TopicPartition, int] = {}
        self._waiting: dict[TopicPartition, Waiting] = {}
        self._waiting_bytes = 0
        self._unanswered: deque[Sent] = deque()

    def send(self, records: Records) -> None:
        """Take records over whose partition is chosen; what fills a batch goes out."""
        assert records.partition is not None
        place = TopicPartition(records.topic, records.partition)
        waiting = self._waiting.setdefault(place, Waiting())
        waiting.records.append(records)
        size_bytes = _memory_bytes(records)
        waiting.size_bytes += size_bytes
        self._waiting_bytes += size_bytes
        if waiting.size_bytes >= self._rules.batch_bytes_max:
            self._launch([place])
        elif self._waiting_bytes >= WAITING_BYTES_MAX:
            self._launch(list(self._waiting))

    def finish(self) -> None:
        """Everything sent and answered when it returns."""
        self._launch(list(self._waiting))
        while self._unanswered:
            self._trying(self._collect)

    def _launch(self, places: Collection[TopicPartition]) -> None:
        new = [place for place in places if place not in self._sequences]
        if new and self._before_first is not None:
            self._before_first(new)
        built = {place: deque(self._built(place)) for place in places}
        while built:
            # A request takes one batch of a partition.
            self._post([batches.popleft() for batches in built.values()])
            built = {place: batches for place, batches in built.items() if batches}

    def _built(self, place: TopicPartition) -> Iterable[Batch]:
        waiting = self._waiting.pop(place)
        self._waiting_bytes -= waiting.size_bytes
        columns = _joined(waiting.records)
        for content in record_bytes(*columns, batch_bytes_max=self._batch_bytes_max(place.topic)):
            yield self._batch(place, content)

    def _batch_bytes_max(self, topic: str) -> int:
        """A topic may take less than what is usual."""
        allowed = self._brokers.batch_bytes_max(topic)
        own = self._rules.batch_bytes_max
        return own if allowed is None else max(1, min(own, allowed - HEADER_BYTES))

    def _batch(self, place: TopicPartition, content: RecordsBytes) -> Batch:
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = (sequence + content.count) & SEQUENCE_MAX
        batch = build_batch(
            content,
            codec=self._rules.codec,
            timestamp_ms=SystemClock().now_ms(),
            attributes=0 if self._identity.transactional_id is None else TRANSACTIONAL,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            base_sequence=sequence,
        )
        return Batch(place, batch)

    def _post(self, batches: Iterable[Batch]) -> None:
        """Requests by leader, none of them too large."""
        open_requests: dict[Address, list[Batch]] = {}
        for batch in batches:
            address = self._brokers.leader(batch.place)
            request = open_requests.setdefault(address, [])
            if request and sum(len(each.content) for each in request) + len(batch.content) > REQUEST_BYTES_MAX:
                self._ask(open_requests.pop(address), address)
                open_requests[address] = [batch]
            else:
                request.append(batch)
        for address, request in open_requests.items():
            self._ask(request, address)

    def _ask(self, batches: list[Batch], address: Address) -> None:
        while sum(each.address == address for each in self._unanswered) >= IN_FLIGHT_MAX:
            self._trying(self._collect)
        if any(each.is_lost for each in self._unanswered):
            # A coordinator that was away took all connections with it, and what is behind must not come first.
            self._trying(self._again)
        self._unanswered.append(Sent(address, batches))
        self._trying(lambda: self._transmit(self._unanswered[-1]))

    def _transmit(self, sent: Sent) -> None:
        request = ProduceRequest(
            transactional_id=self._identity.transactional_id,
            acks=ACKS_ALL,
            timeout_ms=self._rules.answer_ms_max,
            topic_data=_by_topic(sent.batches),
        )
        sent.connection = self._brokers.connection(sent.address, is_for_records=True)
        sent.connection.ask(request, PRODUCE_VERSION)

    def _collect(self) -> None:
        """The answer to the oldest request."""
        self._take_answer(self._unanswered[0])
        self._unanswered.popleft()

    def _take_answer(self, sent: Sent) -> None:
        assert sent.connection is not None, "what was not sent is sent again, and not waited for"
        answered = sent.connection.answer(ProduceResponse)
        for topic in answered.responses:
            for partition in topic.partition_responses:
                # It was stored when it was sent before, and only the answer was lost.
                if partition.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                    check(partition.error_code, partition.error_message)

    def _trying(self, step: Callable[[], None]) -> None:
        """A step; after trouble that passes, everything unanswered again instead, until it is answered."""
        deadline_s: float | None = None
        while True:
            try:
                step()
            except (OSError, ProtocolViolation, BrokerRefused, NoAnswer) as wrong:
                self._judge(wrong)
                deadline_s = deadline_s or time.monotonic() + self._rules.delivery_s_max
                if time.monotonic() > deadline_s:
                    raise NoAnswer(f"records could not be written to {self._brokers.servers}: {wrong}") from None
                time.sleep(NOT_ACCEPTED_PAUSE_S if isinstance(wrong, NotAccepted) else PAUSE_S)
                step = self._again
            else:
                return

    def _again(self) -> None:
        """From the oldest on, one batch after the other, to whoever leads now."""
        self._brokers.forget()
        while self._unanswered:
            batches = self._unanswered[0].batches
            while batches:
                sent = Sent(self._brokers.leader(batches[0].place), batches[:1])
                self._transmit(sent)
                self._take_answer(sent)
                del batches[0]
            self._unanswered.popleft()

    def _judge(self, wrong: Exception) -> None:
        """Raise what no repetition mends."""
        if not isinstance(wrong, BrokerRefused):
            return
        if wrong.code in FENCED:
            raise Fenced(str(wrong)) from None
        if wrong.code not in PASSING:
            raise NoAnswer(f"records could not be written: {wrong}") from None


def _memory_bytes(records: Records) -> int:
    """About what they take: a record without key and value takes something too."""
    headers_bytes = 0 if records.headers is None else records.headers.nbytes
    return records.size_bytes + headers_bytes + len(records) * RECORD_BYTES


def _by_topic(batches: Iterable[Batch]) -> list[TopicProduceData]:
    topics: dict[str, list[PartitionProduceData]] = {}
    for batch in batches:
        topics.setdefault(batch.place.topic, []).append(PartitionProduceData(batch.place.partition, batch.content))
    return [TopicProduceData(topic, partition_data=partitions) for topic, partitions in topics.items()]


def _joined(records: list[Records]) -> tuple[pa.Array | None, pa.Array, pa.Array | None]:
    """Keys, values and headers of all; a column that some lack is null there."""
    if len(records) == 1:
        return records[0].keys, records[0].values, records[0].headers
    return (
        _column([each.keys for each in records], records),
        pa.concat_arrays([each.values for each in records]),
        _column([each.headers for each in records], records),
    )


def _column(columns: list[pa.Array | None], records: list[Records]) -> pa.Array | None:
    kind = next((column.type for column in columns if column is not None), None)
    if kind is None:
        return None
    return pa.concat_arrays(
        [pa.nulls(len(each), kind) if column is None else column for column, each in zip(columns, records, strict=True)]
    )

"""The leader's pen. A new leader's takes the ink out of the one before it, even if that sleeps in the middle of a word.

All leaders have one transactional id. Who leads raises its producer epoch, and writes a NOOP with that; from then on
the partition refuses batches of older epochs. What older leaders wrote before stands before the NOOP, which the new one
reads up to. Batches are plain idempotent ones without a transaction, which every reader of the topic understands.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from moldau.client.cluster import PASSING, Cluster, CoordinatorKind, NoAnswer, Refused, check
from moldau.core.clock import Clock
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.registry.records import Entry, NoopKey, encoded
from moldau.wire.batch import build_batch
from moldau.wire.messages import InitProducerIdRequest, InitProducerIdResponse, ProduceRequest, ProduceResponse
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.records import Record

ALL = -1
NAMED_TOPICS_VERSION = 12  # of Produce; later ones know topics by ids
TRANSACTION_TIMEOUT_MS = 60_000
RETRY_S = 0.1
RENEW_S = 6 * 3_600.0  # a coordinator forgets ids that are idle for a week, and with them whom they fence
TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
FENCED = {
    ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
}  # fmt: skip
AGAIN = PASSING | {
    ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR,
}  # fmt: skip

LOGGER = logging.getLogger(__name__)


class Fenced(Exception):
    """Another leader writes now."""


class Uncertain(Exception):
    """Nobody knows whether it was written; whoever goes on reads the topic first."""


class TooLarge(Exception):
    """The topic takes no record of this size; nothing was written."""


class Writer:
    """Blocking, and of one thread at a time. After Fenced or Uncertain it is of no use."""

    def __init__(self, cluster: Cluster, topic: str, transactional_id: str, clock: Clock, *, timeout_s: float) -> None:
        self._cluster = cluster
        self._place = TopicPartition(topic, 0)
        self._transactional_id = transactional_id
        self._clock = clock
        self._timeout_s = timeout_s
        self._producer = (-1, -1)
        self._sequence = 0
        self._opened_ms = 0
        self._is_closed = False

    def open(self) -> int:
        """Fence whoever wrote before; gives the offset of the NOOP, behind which nothing of them comes."""
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        found = self._cluster.ask_coordinator(
            CoordinatorKind.TRANSACTION,
            self._transactional_id,
            request,
            InitProducerIdResponse,
            codes=lambda answer: [answer.error_code],
        )
        check(found.error_code)
        self._producer = (found.producer_id, found.producer_epoch)
        self._sequence = 0
        self._opened_ms = self._clock.elapsed_ms()
        return self._append([Entry(NoopKey())])

    def append(self, entries: Sequence[Entry]) -> int:
        """The offset of the last one. All of them or none: they are one batch."""
        if self._clock.elapsed_ms() - self._opened_ms > RENEW_S * 1_000:
            self.open()
        return self._append(entries)

    def close(self) -> None:
        """By any thread: one that is in the middle of a write gives up, and closes what it opened since."""
        self._is_closed = True
        self._cluster.close()

    def _append(self, entries: Sequence[Entry]) -> int:
        now_ms = self._clock.now_ms()
        pairs = [encoded(each) for each in entries]
        producer_id, epoch = self._producer
        batch = build_batch(
            [Record(at, now_ms, key, value) for at, (key, value) in enumerate(pairs)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self._sequence,
        )
        try:
            base = self._send(bytes(batch))
        finally:
            if self._is_closed:
                self._cluster.close()
        self._sequence += len(pairs)
        return base + len(pairs) - 1

    def _send(self, batch: bytes) -> int:
        """The same batch until it is there: the broker knows its sequence numbers, and writes it once."""
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._sent(batch)
            except (NoAnswer, Refused, OSError) as wrong:
                if self._is_closed or time.monotonic() >= deadline_s:
                    raise Uncertain(str(wrong)) from None
            time.sleep(RETRY_S)

    def _sent(self, batch: bytes) -> int:
        """Raises Refused for what may pass."""
        led, unled = self._cluster.led([self._place])
        if unled:
            raise Refused(unled[self._place])
        request = ProduceRequest(
            acks=ALL,
            timeout_ms=int(self._timeout_s * 1_000),
            topic_data=[TopicProduceData(self._place.topic, partition_data=[PartitionProduceData(0, batch)])],
        )
        answer = self._cluster.ask_broker(next(iter(led)), request, ProduceResponse, version_max=NAMED_TOPICS_VERSION)
        found = answer.responses[0].partition_responses[0]
        code = found.error_code
        if code == ErrorCode.NONE:
            return found.base_offset
        if code in FENCED:
            raise Fenced(f"error {code}: {ErrorCode(code).message}")
        if code in TOO_LARGE:
            raise TooLarge(found.error_message or ErrorCode(code).message)
        if code in AGAIN:
            raise Refused(code, found.error_message)
        raise Uncertain(found.error_message or f"error {code}")

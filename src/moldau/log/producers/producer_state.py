"""What a partition remembers of its producers, so that a retried batch is written once and a lost one is noticed.

Nothing here touches a file or a clock. Transactions are kept with the producers: where each open one began, and which
finished ones the followers may not have yet, because both hold back the last stable offset.
"""

from __future__ import annotations

import logging
from collections import deque
from enum import Enum
from typing import NamedTuple

from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_OFFSET
from moldau.log.errors import LogError
from moldau.wire.batch import EPOCH_MAX, NO_PRODUCER_EPOCH, NO_SEQUENCE, SEQUENCE_MAX, TRANSACTIONAL, BatchHeader

LOGGER = logging.getLogger(__name__)

BATCHES_MAX = 5  # a producer has at most five requests in flight, so no older batch can be retried
REFUSED_MAX = 1_000  # unknown producers whose first batch was refused; the oldest are forgotten
EPOCH_BUMPING_VERSION = 2  # from this transaction version on, each transaction ends with an epoch of its own


class Origin(Enum):
    """Who appends: clients must be in sequence, coordinators write markers, a leader is believed."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class SentBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class Marker(NamedTuple):
    """The end of a transaction, as its control record says it."""

    is_commit: bool
    coordinator_epoch: int
    transaction_version: int = 0


class ProducerStateEntry:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "transaction_start")

    def __init__(self) -> None:
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.transaction_start = NO_OFFSET
        self.batches: list[SentBatch] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def duplicate_of(self, header: BatchHeader) -> SentBatch | None:
        """The remembered batch with exactly these sequences, if any."""
        if header.producer_epoch != self.epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return None


def in_sequence(last_sequence: int, next_sequence: int) -> bool:
    return next_sequence == last_sequence + 1 or (next_sequence == 0 and last_sequence == SEQUENCE_MAX)


class ProducerStates:
    """The producers of one partition, up to `end_offset`."""

    __slots__ = ("end_offset", "guards", "name", "ongoing", "producers", "refused", "unreplicated")

    def __init__(self, name: str, end_offset: int = 0) -> None:
        self.name = name
        self.end_offset = end_offset
        self.producers: dict[int, ProducerStateEntry] = {}
        self.refused: dict[int, tuple[int, int]] = {}  # epoch and sequence that unknown producers have to begin with
        self.ongoing: dict[int, int] = {}  # first offset to producer id; offsets grow, so the oldest comes first
        self.unreplicated: deque[tuple[int, int]] = deque()
        """First offset and the marker's of finished transactions, sorted by both: one that began after a transaction
        that ended later is left out, for that other one holds readers back at least as long."""
        self.guards: dict[object, int] = {}  # producer ids of transactions whose coordinator is being asked

    def admit(self, header: BatchHeader, *, offset: int, origin: Origin, verified: bool) -> SentBatch | None:
        """Check a data batch. A client's retry is not refused: the batch that it repeats is given back instead."""
        producer = self.producers.get(header.producer_id)
        if producer is not None and origin is Origin.CLIENT:
            batches = producer.batches
            if (
                batches
                and header.base_sequence == batches[-1].last_sequence + 1
                and header.producer_epoch == producer.epoch
                and not header.attributes & TRANSACTIONAL
                and producer.transaction_start < 0
            ):
                return None  # the usual case: the next one in sequence
            if (known := producer.duplicate_of(header)) is not None:
                return known
        self.check(header, offset=offset, origin=origin, verified=verified)
        return None

    def is_open(self, producer_id: int, epoch: int) -> bool:
        """Whether this epoch of a producer has an open transaction here; that of an epoch before is another one."""
        producer = self.producers.get(producer_id)
        return producer is not None and producer.transaction_start >= 0 and producer.epoch == epoch

    def guard(self, producer_id: int) -> object:
        """To be kept while a transaction's coordinator is asked whether its producer may write here.

        It does not hold any more once a marker came: the transaction that the answer is about is over, and a batch
        would open it again with nobody to end it. Whoever asked gives the guard back by `release`.
        """
        guard = object()
        self.guards[guard] = producer_id
        return guard

    def holds(self, guard: object) -> bool:
        return guard in self.guards

    def release(self, guard: object) -> None:
        self.guards.pop(guard, None)

    def is_repeated(self, header: BatchHeader) -> bool:
        """Whether the batch is in the log already, and the producer did not hear of it."""
        producer = self.producers.get(header.producer_id)
        return producer is not None and producer.duplicate_of(header) is not None

    def check(self, header: BatchHeader, *, offset: int, origin: Origin, verified: bool) -> None:
        """Refuse a data batch of a past epoch, out of sequence, or of a transaction that nobody opened."""
        producer = self.producers.get(header.producer_id)
        if header.is_transactional and not verified and (producer is None or producer.transaction_start < 0):
            raise LogError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
        if producer is None:
            # Nothing is known, perhaps because retention deleted it: any sequence may begin.
            if origin is Origin.CLIENT and header.producer_id in self.refused:
                self._check_beginning(header, offset)
            return
        epoch = header.producer_epoch
        if epoch < producer.epoch:
            self._refuse_epoch(header.producer_id, epoch, offset=offset, current=producer.epoch, origin=origin)
        if origin is Origin.CLIENT:
            self._check_sequence(producer, header, offset)
        if producer.transaction_start >= 0 and not header.is_transactional:
            raise LogError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id} at offset {offset} in partition "
                f"{self.name}",
            )

    def _refuse_epoch(self, producer_id: int, epoch: int, *, offset: int, current: int, origin: Origin) -> None:
        message = (
            f"Epoch of producer {producer_id} at offset {offset} in {self.name} is {epoch}, which is smaller than the "
            f"last seen epoch {current}"
        )
        if origin is not Origin.REPLICATION:
            raise LogError(ErrorCode.INVALID_PRODUCER_EPOCH, message)
        LOGGER.warning("%s", message)

    def refuse(self, header: BatchHeader) -> None:
        """Note that the disk did not take a batch, or that the coordinator did not know of its transaction yet.

        The batches that a new producer sent behind it are on their way, and none of them may be taken for its first:
        the retry would be out of sequence, which librdkafka reads as "stored before".
        """
        if header.producer_id >= 0 and header.producer_id not in self.producers:
            epoch, first = self.refused.get(header.producer_id, (NO_PRODUCER_EPOCH, NO_SEQUENCE))
            if epoch != header.producer_epoch or header.base_sequence < first:
                self.refused[header.producer_id] = (header.producer_epoch, header.base_sequence)
                if len(self.refused) > REFUSED_MAX:
                    del self.refused[next(iter(self.refused))]

    def _check_beginning(self, header: BatchHeader, offset: int) -> None:
        epoch, first = self.refused[header.producer_id]
        if epoch == header.producer_epoch and header.base_sequence > first:
            raise LogError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {header.producer_id} at offset {offset} in partition "
                f"{self.name}: {header.base_sequence} (incoming seq. number), {first} was refused before",
            )

    def _check_sequence(self, producer: ProducerStateEntry, header: BatchHeader, offset: int) -> None:
        first = header.base_sequence
        where = f"producer {header.producer_id} at offset {offset} in partition {self.name}: "
        if header.producer_epoch != producer.epoch:
            if first != 0 and producer.epoch != NO_PRODUCER_EPOCH:
                raise LogError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of {where}{header.producer_epoch} (request epoch), {first} "
                    f"(seq. number), {producer.epoch} (current producer epoch)",
                )
        elif not in_sequence(producer.last_sequence, first):
            raise LogError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for {where}{first} (incoming seq. number), {producer.last_sequence} "
                f"(current end sequence number)",
            )

    def apply(self, header: BatchHeader, *, first_offset: int, last_offset: int, timestamp: int) -> None:
        """Remember a data batch that is in the log."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = ProducerStateEntry()
            self.refused.pop(header.producer_id, None)
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        batches = producer.batches
        if len(batches) == BATCHES_MAX:
            del batches[0]
        batches.append(SentBatch(header.base_sequence, header.last_sequence, first_offset, last_offset, timestamp))
        producer.last_timestamp = timestamp
        if header.attributes & TRANSACTIONAL and producer.transaction_start < 0:
            producer.transaction_start = first_offset
            self.ongoing[first_offset] = header.producer_id

    def check_marker(self, header: BatchHeader, marker: Marker, *, offset: int, origin: Origin) -> None:
        """Refuse the marker of a coordinator or a producer that has been replaced."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return
        epoch = header.producer_epoch
        bumps = marker.transaction_version >= EPOCH_BUMPING_VERSION
        retried = bumps and epoch == producer.epoch and (producer.transaction_start < 0 or epoch == EPOCH_MAX)
        if not retried and (epoch <= producer.epoch if bumps else epoch < producer.epoch):
            self._refuse_epoch(header.producer_id, epoch, offset=offset, current=producer.epoch, origin=origin)
        if producer.coordinator_epoch > marker.coordinator_epoch and origin is not Origin.REPLICATION:
            raise LogError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {header.producer_id} at offset {offset} in partition "
                f"{self.name}: {marker.coordinator_epoch} (zombie), {producer.coordinator_epoch} (current)",
            )

    def apply_marker(
        self, header: BatchHeader, marker: Marker, *, offset: int, timestamp: int
    ) -> CompletedTransaction | None:
        """End a transaction; None when the producer wrote nothing here in it."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = ProducerStateEntry()
        completed = self.completed_by(header, marker, offset=offset)
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = timestamp
        producer.transaction_start = NO_OFFSET
        if self.guards:
            self.guards = {guard: each for guard, each in self.guards.items() if each != header.producer_id}
        return completed

    def completed_by(self, header: BatchHeader, marker: Marker, *, offset: int) -> CompletedTransaction | None:
        """The transaction that a marker would end, which changes nothing yet."""
        producer = self.producers.get(header.producer_id)
        if producer is None or producer.transaction_start < 0:
            return None
        return CompletedTransaction(header.producer_id, producer.transaction_start, offset, not marker.is_commit)

    def stable_after(self, transaction: CompletedTransaction) -> int:
        """The last stable offset that the marker of a transaction leaves."""
        others = (first for first in self.ongoing if first != transaction.first_offset)
        return next(others, transaction.last_offset + 1)

    def complete(self, transaction: CompletedTransaction) -> int:
        """Move a transaction from ongoing to finished, and tell the last stable offset that its marker left."""
        self.ongoing.pop(transaction.first_offset, None)
        unreplicated = self.unreplicated
        while unreplicated and unreplicated[-1][0] >= transaction.first_offset:
            unreplicated.pop()
        unreplicated.append((transaction.first_offset, transaction.last_offset))
        return next(iter(self.ongoing), transaction.last_offset + 1)

    def replicated_to(self, high_watermark: int) -> bool:
        """Finished transactions whose markers are below the high watermark hold nothing back any longer.

        True when one did until now.
        """
        unreplicated = self.unreplicated
        count = len(unreplicated)
        while unreplicated and unreplicated[0][1] < high_watermark:
            unreplicated.popleft()
        return len(unreplicated) < count

    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest transaction that readers of committed records must wait for."""
        oldest = next(iter(self.ongoing), None)
        if not self.unreplicated:
            return oldest
        finished = self.unreplicated[0][0]
        return finished if oldest is None else min(oldest, finished)

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that have been silent for long; one with an open transaction stays."""
        expired = [
            producer_id
            for producer_id, producer in self.producers.items()
            if producer.transaction_start < 0 and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        self.refused.clear()  # its batches were on their way for seconds, not for as long as this takes to come by
        return len(expired)

    def clear(self, end_offset: int) -> None:
        self.producers.clear()
        self.refused.clear()
        self.ongoing.clear()
        self.unreplicated.clear()
        self.guards.clear()
        self.end_offset = end_offset

"""What the coordinator knows of one transactional id, as an immutable value, and the ways from one value to the next.

Kafka's log has everything but the last epoch: a coordinator that takes over has forgotten it, as Kafka's has, and can't
tell the repetition of an epoch bump by InitProducerId from a producer that is fenced.
"""

from __future__ import annotations

from collections.abc import Hashable, Set
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId, TopicPartition
from moldau.transactions.states import PREPARED, Event, State, advance
from moldau.wire.batch import EPOCH_MAX, NO_PRODUCER_EPOCH, NO_PRODUCER_ID

NO_TIME = -1
LAST_USABLE_EPOCH = EPOCH_MAX - 1  # no client gets the highest, so that whoever has an epoch can be fenced
TIMEOUT_NEVER_MS = 0x7FFFFFFF  # what a two-phase commit has: only its own coordinator ends it

FIRST_PROTOCOL = 0
SECOND_PROTOCOL = 2  # the level of the feature `transaction.version` from which every transaction has its own epoch

# The keys of timers: the time-out of each transaction, the expiry of ids that nobody uses, markers to be written.
TIMEOUT = "timeout"
EXPIRY = ("expiry", "")
MARKERS = ("markers", "")


def timeout_key(transactional_id: str) -> Hashable:
    return (TIMEOUT, transactional_id)


class ProducerIdAndEpoch(NamedTuple):
    """A producer as a request names it."""

    producer_id: int
    epoch: int


class ProducerReply(NamedTuple):
    """The producer to go on with, if there is one, or what is wrong."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH


class Transaction(msgspec.Struct, frozen=True):
    transactional_id: str
    producer_id: ProducerId
    epoch: int = NO_PRODUCER_EPOCH
    last_epoch: int = NO_PRODUCER_EPOCH
    """The epoch that the current one was bumped from by the same producer; in memory only."""
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    """Who had the id before this transition: tells a repeated request after the change to another producer id."""
    next_producer_id: ProducerId = NO_PRODUCER_ID
    """The one to change to once the markers, which bear the old one, are written."""
    timeout_ms: int = 0
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    client_version: int = FIRST_PROTOCOL

    @property
    def is_prepared(self) -> bool:
        return self.state in PREPARED

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.epoch >= LAST_USABLE_EPOCH

    @property
    def deadline_ms(self) -> int | None:
        """The first moment at which an open transaction has lasted too long."""
        if self.state is not State.ONGOING or self.timeout_ms == TIMEOUT_NEVER_MS:
            return None
        return self.started_ms + self.timeout_ms + 1

    @property
    def successor(self) -> ProducerIdAndEpoch:
        """Who may begin the next transaction when this one is complete."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdAndEpoch(self.next_producer_id, 0)
        return ProducerIdAndEpoch(self.producer_id, self.epoch)


def initialised(
    before: Transaction, producer: ProducerIdAndEpoch, *, last_epoch: int, timeout_ms: int, now_ms: int
) -> Transaction:
    return _moved(
        before,
        Event.INITIALISED,
        producer_id=ProducerId(producer.producer_id),
        epoch=producer.epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        started_ms=NO_TIME,
        updated_ms=now_ms,
    )


def with_partitions(
    before: Transaction, partitions: Set[TopicPartition], *, client_version: int, now_ms: int
) -> Transaction:
    return _moved(
        before,
        Event.PARTITIONS_ADDED,
        partitions=before.partitions | partitions,
        started_ms=before.started_ms if before.state is State.ONGOING else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def ended_by_first_protocol(before: Transaction, event: Event, now_ms: int) -> Transaction:
    return _moved(before, event, next_producer_id=NO_PRODUCER_ID, updated_ms=now_ms, client_version=FIRST_PROTOCOL)


def ended_by_second_protocol(
    before: Transaction, event: Event, *, next_producer_id: ProducerId, client_version: int, now_ms: int
) -> Transaction:
    """The epoch rises with the end, so that what is still under way of this transaction can't reach the next one.

    An abort of a transaction that never began begins it, because a completed transaction has a time of its beginning.
    """
    is_open = before.state in (State.ONGOING, State.PREPARE_EPOCH_FENCE)
    return _moved(
        before,
        event,
        epoch=min(before.epoch + 1, EPOCH_MAX),
        last_epoch=before.epoch,
        next_producer_id=next_producer_id,
        started_ms=before.started_ms if is_open else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def fenced(before: Transaction, *, server_version: int, next_producer_id: ProducerId, now_ms: int) -> Transaction:
    """The open transaction is aborted with an epoch that its producer does not have."""
    fence = replace(before, state=advance(before.state, Event.FENCED))
    if server_version >= SECOND_PROTOCOL:
        return ended_by_second_protocol(
            fence,
            Event.ABORTED,
            next_producer_id=next_producer_id,
            client_version=server_version,
            now_ms=now_ms,
        )
    raised = replace(fence, epoch=min(before.epoch + 1, EPOCH_MAX), last_epoch=NO_PRODUCER_EPOCH)
    return ended_by_first_protocol(raised, Event.ABORTED, now_ms)


def completed(before: Transaction, now_ms: int) -> Transaction:
    producer_id, epoch = before.successor
    return _moved(
        before,
        Event.MARKED,
        producer_id=ProducerId(producer_id),
        epoch=epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        updated_ms=now_ms,
    )


def _moved(before: Transaction, event: Event, **values: Any) -> Transaction:
    return replace(before, state=advance(before.state, event), previous_producer_id=before.producer_id, **values)

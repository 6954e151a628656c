"""The transactional ids that fall into one partition of `__transaction_state`: their state, and all decisions about it.

Decisions read the state and change nothing; `apply` changes it and looks at no clock. Recovery is `apply` of what the
log holds.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Set
from itertools import takewhile

from moldau.coordinator.journal import CoordinatorRecord, StoredRecord
from moldau.core.decision import Decision, Delayed, Slices, Timer, sliced
from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId, TopicPartition
from moldau.transactions import additions, endings, producers
from moldau.transactions.endings import Ending
from moldau.transactions.limits import (
    EXPIRY_LOOKS_MAX,
    FORGOTTEN_BYTES_MAX,
    FORGOTTEN_IDS_MAX,
    SPARE_ID_WAIT_MS,
    TransactionLimits,
)
from moldau.transactions.markers_due import MarkersDue, markers_due
from moldau.transactions.producers import Initialising
from moldau.transactions.records import Fact, TransactionChanged, TransactionForgotten, decode_fact, encode_fact
from moldau.transactions.states import Event, may
from moldau.transactions.transaction import (
    EXPIRY,
    FIRST_PROTOCOL,
    MARKERS,
    TIMEOUT,
    ProducerIdAndEpoch,
    ProducerReply,
    Transaction,
    timeout_key,
)

OFFSETS_TOPIC = "__consumer_offsets"


class TransactionShard:
    """A state machine that a runtime drives.

    `spare_id` is a producer id for a time-out whose producer's epochs are used up; a request brings its own. Whoever
    drives the shard sets it, and again when it is None, because an id can be used only once.
    """

    __slots__ = ("_prepared", "limits", "spare_id", "transactions")

    def __init__(self, limits: TransactionLimits) -> None:
        self.limits = limits
        self.transactions: dict[str, Transaction] = {}
        self.spare_id: ProducerId | None = None
        self._prepared: dict[str, None] = {}

    def encode(self, fact: Fact) -> CoordinatorRecord:
        return encode_fact(fact, self.limits.transaction_version)

    def decode(self, stored: StoredRecord) -> Fact | None:
        if stored.marker is not None:
            return None  # somebody sent WriteTxnMarkers for our own log; it states nothing here
        return decode_fact(stored.key, stored.value)

    def apply(self, fact: Fact) -> None:
        match fact:
            case TransactionChanged():
                self._change(fact.transaction)
            case TransactionForgotten():
                self.transactions.pop(fact.transactional_id, None)
                self._prepared.pop(fact.transactional_id, None)

    def _change(self, transaction: Transaction) -> None:
        transactional_id = transaction.transactional_id
        self.transactions[transactional_id] = transaction
        if transaction.is_prepared:
            self._prepared[transactional_id] = None
        else:
            self._prepared.pop(transactional_id, None)
        if self.spare_id in (transaction.producer_id, transaction.next_producer_id):
            self.spare_id = None

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Whether the next InitProducerId or EndTxn of this id is to bring a producer id that nobody has yet."""
        transaction = self.transactions.get(transactional_id)
        return transaction is None or transaction.is_epoch_exhausted

    def wants_spare_id(self, transactional_ids: Iterable[str]) -> bool:
        """Whether a time-out of one of them will need `spare_id`, and there is none."""
        known = (self.transactions.get(each) for each in transactional_ids)
        return self.spare_id is None and any(each is not None and each.is_epoch_exhausted for each in known)

    def decide_next_markers(self, under_way: Container[str]) -> Decision[tuple[MarkersDue, ...] | Delayed]:
        """The markers to write, but for those transactional ids whose markers are under way; waits until there are any.

        An empty answer is a call to ask again. As any reply it comes when all that was decided before is committed,
        so that no partition learns of an outcome that the coordinator could still lose. What is under way was prepared
        before all that is not, so that a look goes no further back than to the last of those.
        """
        new = takewhile(lambda transactional_id: transactional_id not in under_way, reversed(self._prepared))
        dues = tuple([self._markers_due(transactional_id) for transactional_id in new][::-1])
        return Decision((), dues or Delayed(MARKERS))

    def markers_due(self) -> Iterator[MarkersDue]:
        return map(self._markers_due, self._prepared)

    def is_prepared(self, transactional_id: str) -> bool:
        return transactional_id in self._prepared

    def _markers_due(self, transactional_id: str) -> MarkersDue:
        due = markers_due(self.transactions[transactional_id])
        assert due is not None, "an id is among the prepared as long as its transaction is"
        return due

    def decide_started(self, now_ms: int) -> Decision[None]:
        """Open transactions keep their deadlines: the log says when they began."""
        return sliced(self._starting(now_ms))

    def _starting(self, now_ms: int) -> Slices[None]:
        timers = [Timer(EXPIRY, now_ms + self.limits.expiry_interval_ms)]
        for looks, transactional_id in enumerate(tuple(self.transactions), start=1):
            transaction = self.transactions.get(transactional_id)
            if transaction is not None and transaction.deadline_ms is not None:
                timers.append(Timer(timeout_key(transactional_id), transaction.deadline_ms, is_kept=True))
            if looks % EXPIRY_LOOKS_MAX == 0:
                yield Decision((), None, tuple(timers))
                timers = []
        return Decision((), None, tuple(timers))

    def decide_timer(self, key: Hashable, now_ms: int) -> Decision[None]:
        assert isinstance(key, tuple)
        kind, transactional_id = key
        return self.decide_timeout(transactional_id, now_ms) if kind == TIMEOUT else self.decide_expiry(now_ms)

    def decide_init_producer_id(
        self, request: Initialising, *, spare_id: ProducerId | None, now_ms: int
    ) -> Decision[ProducerReply]:
        transaction = self.transactions.get(request.transactional_id)
        return producers.decide_init_producer_id(
            transaction, request, limits=self.limits, spare_id=spare_id, now_ms=now_ms
        )

    def decide_add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        *,
        client_version: int,
        now_ms: int,
    ) -> Decision[ErrorCode]:
        if not transactional_id:
            return Decision.reply_only(ErrorCode.INVALID_REQUEST)
        transaction = self.transactions.get(transactional_id)
        return additions.decide_add_partitions(
            transaction, producer, partitions, client_version=client_version, now_ms=now_ms
        )

    def decide_add_offsets(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, offsets_partition: int, now_ms: int
    ) -> Decision[ErrorCode]:
        """The partition is the one that holds the group's offsets, which get a marker like any records."""
        partitions = frozenset({TopicPartition(OFFSETS_TOPIC, offsets_partition)})
        return self.decide_add_partitions(
            transactional_id, producer, partitions, client_version=FIRST_PROTOCOL, now_ms=now_ms
        )

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        if not transactional_id:
            return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
        return additions.verify_partitions(self.transactions.get(transactional_id), producer, partitions)

    def decide_end_txn(self, request: Ending, *, spare_id: ProducerId | None, now_ms: int) -> Decision[ProducerReply]:
        transaction = self.transactions.get(request.transactional_id)
        return endings.decide_end_txn(transaction, request, spare_id=spare_id, now_ms=now_ms)

    def decide_markers_written(self, due: MarkersDue, now_ms: int) -> Decision[ErrorCode]:
        transaction = self.transactions.get(due.transactional_id)
        return endings.decide_markers_written(transaction, due.producer, is_commit=due.is_commit, now_ms=now_ms)

    def decide_timeout(self, transactional_id: str, now_ms: int) -> Decision[None]:
        """Abort a transaction that has lasted too long; a timer that is too early, or too late, changes nothing."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.deadline_ms is None:
            return Decision.reply_only(None)
        key = timeout_key(transactional_id)
        if now_ms < transaction.deadline_ms:
            return Decision((), None, (Timer(key, transaction.deadline_ms),))
        fence = endings.decide_fence(transaction, limits=self.limits, spare_id=self.spare_id, now_ms=now_ms)
        if fence.reply is not ErrorCode.NONE:
            return Decision((), None, (Timer(key, now_ms + SPARE_ID_WAIT_MS),))
        return Decision(fence.records, None, fence.timers, fence.released)

    def decide_expiry(self, now_ms: int) -> Decision[None]:
        """Forget ids that nobody has used for long; if there are very many, in several parts."""
        return sliced(self._expiring(now_ms))

    def _expiring(self, now_ms: int) -> Slices[None]:
        forgotten: list[TransactionForgotten] = []
        looks = size_bytes = 0
        for transactional_id in tuple(self.transactions):
            looks += 1
            is_full = len(forgotten) == FORGOTTEN_IDS_MAX or size_bytes > FORGOTTEN_BYTES_MAX
            if is_full or looks == EXPIRY_LOOKS_MAX:
                yield Decision(forgotten, None, is_whole=False)
                forgotten, looks, size_bytes = [], 0, 0
            transaction = self.transactions.get(transactional_id)
            if transaction is not None and self._is_expired(transaction, now_ms):
                forgotten.append(TransactionForgotten(transactional_id))
                size_bytes += len(transactional_id.encode())
        again = Timer(EXPIRY, now_ms + self.limits.expiry_interval_ms)
        return Decision(forgotten, None, (again,), is_whole=False)

    def _is_expired(self, transaction: Transaction, now_ms: int) -> bool:
        idle_ms = now_ms - transaction.updated_ms
        return idle_ms >= self.limits.id_expiration_ms and may(transaction.state, Event.EXPIRED)

"""What the logs say, batch by batch as they are written, and the promises that can be checked against them at once.

It keeps its own books, made from the bytes alone, so that a mistake of the broker is not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from moldau.core.ids import TopicPartition
from moldau.core.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from moldau.groups.consumer.facts import ProgressSet
from moldau.groups.records import GroupChanged, GroupDeleted, OffsetCommitted, OffsetDeleted
from moldau.groups.records import decode_fact as decode_group_fact
from moldau.log.producers.end_transaction_marker import read_marker
from moldau.transactions.records import TransactionChanged, TransactionForgotten
from moldau.transactions.records import decode_fact as decode_transaction_fact
from moldau.transactions.states import State
from moldau.transactions.transaction import Transaction
from moldau.wire.batch import BatchHeader, Record, read_header, records
from tests.simulation.assignments import read_assignment
from tests.simulation.ledger import Claims

Violate = Callable[[str], None]
GroupTopicPartition = tuple[str, str, int]  # group, topic, partition


@dataclass
class Written:
    """A record of a data partition."""

    value: str
    producer_id: int
    is_committed: bool | None = None
    """None while its transaction is undecided."""


@dataclass
class Kept:
    """An offset that a group committed, and where in the log it says so."""

    offset: int
    at: int


@dataclass
class PartitionHistory:
    end_offset: int = 0
    written: dict[int, Written] = field(default_factory=dict)
    open: dict[int, int] = field(default_factory=dict)
    """Producers to the first offset of the transaction that they have open here."""
    epochs: dict[int, int] = field(default_factory=dict)
    """Producers to the highest epoch seen here."""


class History:
    def __init__(self, violate: Violate, claims: Claims) -> None:
        self.violate = violate
        self._claims = claims
        self.partitions: dict[TopicPartition, PartitionHistory] = {}
        self.transactions: dict[str, Transaction] = {}
        self.by_producer: dict[int, str] = {}
        self.marked: dict[int, set[TopicPartition]] = {}
        self.offsets: dict[GroupTopicPartition, Kept] = {}
        self.pending: dict[tuple[TopicPartition, int], dict[GroupTopicPartition, Kept]] = {}
        self.values: set[str] = set()
        self.held: dict[tuple[str, str], set[tuple[bytes, int]]] = {}
        """What members of consumer groups have, or are about to give up."""
        self.classic_members: set[tuple[str, str]] = set()

    def on_appended(self, partition: TopicPartition, batch: memoryview) -> None:
        header = read_header(batch)
        known = self.partitions.setdefault(partition, PartitionHistory())
        if header.base_offset != known.end_offset:
            self.violate(f"{partition} goes on at {header.base_offset}, not at {known.end_offset}")
        known.end_offset = header.next_offset
        if header.is_control:
            self._on_marker(partition, batch, header)
            return
        if header.is_transactional:
            self._on_transactional(partition, header)
        for record in records(batch, decompressed_bytes_max=1 << 20):
            if partition.topic == TRANSACTION_STATE_TOPIC:
                self._on_transaction_fact(record)
            elif partition.topic == GROUP_METADATA_TOPIC:
                self._on_group_fact(partition, record, header)
            else:
                self._on_value(partition, record, header)
        if partition.topic == GROUP_METADATA_TOPIC:
            self._check_holders(partition)

    def transaction_of(self, producer_id: int) -> Transaction | None:
        return self.transactions.get(self.by_producer.get(producer_id, ""))

    def _on_value(self, partition: TopicPartition, record: Record, header: BatchHeader) -> None:
        value = bytes(record.value or b"").decode()
        if value in self.values:
            self.violate(f"{value} is written twice, again at {partition} {record.offset}")
        self.values.add(value)
        outcome = None if header.is_transactional else True
        self.partitions[partition].written[record.offset] = Written(value, header.producer_id, outcome)

    def _on_transactional(self, partition: TopicPartition, header: BatchHeader) -> None:
        known, producer = self.partitions[partition], header.producer_id
        who = f"producer {producer} of epoch {header.producer_epoch}"
        if header.producer_epoch < known.epochs.get(producer, -1):
            self.violate(f"{who} wrote to {partition} after epoch {known.epochs[producer]} did")
        known.epochs[producer] = header.producer_epoch
        transaction = self.transaction_of(producer)
        is_current = (
            transaction is not None
            and transaction.producer_id == producer
            and transaction.state is State.ONGOING
            and transaction.epoch == header.producer_epoch
            and partition in transaction.partitions
        )
        # Until the marker comes, whoever has a transaction open here may add to it: it will end as one.
        if not is_current and producer not in known.open:
            self.violate(f"{who} wrote to {partition}, but the coordinator knows {transaction}")
        known.open.setdefault(producer, header.base_offset)

    def _on_marker(self, partition: TopicPartition, batch: memoryview, header: BatchHeader) -> None:
        marker = read_marker(batch)
        assert marker is not None, "no other control records are written"
        producer, known = header.producer_id, self.partitions[partition]
        transaction = self.transaction_of(producer)
        decided = State.PREPARE_COMMIT if marker.is_commit else State.PREPARE_ABORT
        is_due = (
            transaction is not None
            and (transaction.producer_id, transaction.epoch) == (producer, header.producer_epoch)
            and transaction.state is decided
            and partition in transaction.partitions
        )
        if not is_due:
            outcome = "commit" if marker.is_commit else "abort"
            self.violate(f"{partition} got a marker to {outcome} {producer}, but the coordinator knows {transaction}")
        self.marked.setdefault(producer, set()).add(partition)
        known.epochs[producer] = max(header.producer_epoch, known.epochs.get(producer, -1))
        known.open.pop(producer, None)
        for written in known.written.values():
            if written.producer_id == producer and written.is_committed is None:
                written.is_committed = marker.is_commit
        for place, kept in self.pending.pop((partition, producer), {}).items():
            before = self.offsets.get(place)
            if marker.is_commit and (before is None or kept.at > before.at):
                self.offsets[place] = kept

    def _on_transaction_fact(self, record: Record) -> None:
        fact = decode_transaction_fact(
            memoryview(record.key or b""), None if record.value is None else memoryview(record.value)
        )
        if isinstance(fact, TransactionForgotten):
            forgotten = self.transactions.pop(fact.transactional_id, None)
            if forgotten is None or forgotten.is_prepared or forgotten.state is State.ONGOING:
                self.violate(f"{forgotten} is forgotten")
        if not isinstance(fact, TransactionChanged):
            return
        after = fact.transaction
        before = self.transactions.get(after.transactional_id)
        if before is not None and before.producer_id == after.producer_id and after.epoch < before.epoch:
            self.violate(f"the epoch of {before} goes back to that of {after}")
        if after.is_prepared:
            self.marked[after.producer_id] = set()
        is_complete = after.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
        if is_complete and before is not None and before.is_prepared:
            missing = before.partitions - self.marked.get(before.producer_id, set())
            if missing:
                self.violate(f"{before} is called complete, but {sorted(missing)} got no marker")
        self.transactions[after.transactional_id] = after
        self.by_producer[after.producer_id] = after.transactional_id

    def _on_group_fact(self, partition: TopicPartition, record: Record, header: BatchHeader) -> None:
        fact = decode_group_fact(
            memoryview(record.key or b""), None if record.value is None else memoryview(record.value)
        )
        if isinstance(fact, OffsetCommitted):
            kept, place = Kept(fact.committed.offset, record.offset), (fact.group_id, fact.topic, fact.partition)
            if header.is_transactional:
                self.pending.setdefault((partition, header.producer_id), {})[place] = kept
            else:
                self.offsets[place] = kept
        elif isinstance(fact, OffsetDeleted):
            self.offsets.pop((fact.group_id, fact.topic, fact.partition), None)
        elif isinstance(fact, GroupChanged):
            self._on_group(fact)
        elif isinstance(fact, GroupDeleted):
            self._forget_classic(fact.group_id)
        elif isinstance(fact, ProgressSet):
            self._on_progress(fact)
        elif fact is None:
            self.violate(f"{partition} {record.offset} says nothing")

    def _on_progress(self, fact: ProgressSet) -> None:
        member = (fact.group_id, fact.member_id)
        if fact.progress is None:
            self.held.pop(member, None)
            return
        self.held[member] = {
            (topic_id, index)
            for partitions in (fact.progress.assigned, fact.progress.revoking)
            for topic_id, indexes in partitions.items()
            for index in indexes
        }

    def _check_holders(self, partition: TopicPartition) -> None:
        """Facts of one decision are written together, so this holds after each batch."""
        self._claims.members_are(self.held.keys() | self.classic_members)
        owners: dict[tuple[str, bytes, int], str] = {}
        for (group_id, member_id), held in self.held.items():
            for topic_id, index in held:
                other = owners.setdefault((group_id, topic_id, index), member_id)
                if other != member_id:
                    self.violate(
                        f"{partition} says that {other} and {member_id} of {group_id} both have {index}: two owners"
                    )

    def _forget_classic(self, group_id: str) -> None:
        self.classic_members = {each for each in self.classic_members if each[0] != group_id}

    def _on_group(self, fact: GroupChanged) -> None:
        self._forget_classic(fact.group.group_id)
        self.classic_members |= {(fact.group.group_id, member_id) for member_id in fact.group.members}
        owned = [each for member in fact.group.members.values() for each in read_assignment(member.assignment)]
        if len(owned) != len(set(owned)):
            self.violate(f"generation {fact.group.generation} of {fact.group.group_id} has partitions with two owners")

    def last_stable_max(self, partition: TopicPartition) -> int:
        """Readers of committed records may not get any further."""
        known = self.partitions.get(partition)
        return 0 if known is None else min(known.open.values(), default=known.end_offset)

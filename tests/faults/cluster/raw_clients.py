"""Clients that no library has: a sender of damaged batches, and one that ends its transactions twice.

A damaged batch must be refused. The end of a transaction that arrives again while a later one is open must not end that
one: since KIP-890 every transaction has an epoch of its own.
"""

from __future__ import annotations

import random
import time
from itertools import count

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.wire import messages
from moldau.wire.batch import TRANSACTIONAL, build_batch
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.records import Record
from tests.faults.cluster import asking
from tests.faults.cluster import history as h
from tests.faults.cluster.asking import Refused, ask
from tests.faults.cluster.worker import PLAIN, TXN, Pace, Sessions, World

PER_S = 2.0
ANSWER_S_MAX = 8.0
# The leader may have the records when it says one of these, or have had them when it led no longer or its disk failed.
_PERHAPS_WRITTEN = {
    ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
}  # fmt: skip


class Cluster:
    """Where to send what, asked anew each time: this client is slow on purpose."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._addresses = world.addresses
        self._chance = chance

    def any(self) -> str:
        return self._chance.choice(self._addresses)

    def leader(self, topic: str, partition: int) -> str:
        return self._address(asking.cluster_state(self.any()).partitions[topic, partition].leader)

    def coordinator(self, transactional_id: str) -> str:
        return self._address(asking.coordinator(self.any(), transactional_id, asking.TRANSACTION))

    def _address(self, broker_id: int) -> str:
        if not 1 <= broker_id <= len(self._addresses):
            raise ConnectionError("nobody leads it")
        return self._addresses[broker_id - 1]

    def produce(
        self, topic: str, partition: int, batch: bytes, *, transactional_id: str | None = None, version: int = 9
    ) -> int:
        """The batch's offset; raises Refused, or OSError when no answer came."""
        address = self.leader(topic, partition)
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
        request = messages.ProduceRequest(
            transactional_id=transactional_id, acks=-1, timeout_ms=5_000, topic_data=[data]
        )  # fmt: skip
        answer = ask(address, request, version, messages.ProduceResponse, timeout_s=ANSWER_S_MAX)
        (result,) = answer.responses[0].partition_responses
        if result.error_code:
            raise Refused(result.error_code, result.error_message)
        return result.base_offset


def phase_of(wrong: Refused | OSError) -> str:
    return h.FAIL if isinstance(wrong, Refused) and wrong.error not in _PERHAPS_WRITTEN else h.UNKNOWN


class Corruptor:
    """One bit of each batch is flipped after its checksum was made."""

    def __init__(self, world: World, name: str, seed: int) -> None:
        self.world = world
        self.name = name
        self._chance = random.Random(seed)
        self._cluster = Cluster(world, self._chance)
        self._ids = count(1)

    def is_done(self) -> bool:
        return self.world.draining.is_set()

    def session(self) -> None:
        pace = Pace(PER_S)
        while not self.is_done():
            pace.wait(self.world.draining)
            self.send()

    def send(self) -> None:
        number, partition = next(self._ids), self._chance.randrange(self.world.partitions)
        value, history = f"{self.name}:{number}", self.world.history
        name = f"{self.name}.{number}"  # it promises no order: each is a producer of its own
        batch = build_batch([Record(Offset(0), int(time.time() * 1000), None, value.encode())])
        batch[batch.rfind(value.encode()) + self._chance.randrange(len(value))] ^= 1 << self._chance.randrange(3)
        history.note(name, h.SEND, h.INVOKE, id=number, topic=PLAIN, partition=partition, value=value)
        try:
            offset = self._cluster.produce(PLAIN, partition, bytes(batch))
        except (Refused, OSError) as wrong:
            history.note(name, h.SEND, phase_of(wrong), id=number, error=str(wrong))
        else:
            history.note(name, h.SEND, h.OK, id=number, offset=offset)


class LateEnder:
    """Sends the end of each transaction again, the other way round, while its next transaction is open."""

    def __init__(self, world: World, name: str, seed: int) -> None:
        self.world = world
        self.name = name
        self._chance = random.Random(seed)
        self._cluster = Cluster(world, self._chance)
        self._sessions = Sessions(name)
        self._numbers, self._ids = count(1), count(1)
        self._producer_id, self._epoch = -1, -1
        self._sequences: dict[int, int] = {}

    def is_done(self) -> bool:
        return self.world.draining.is_set()

    def session(self) -> None:
        name, pace = self._sessions.next(), Pace(PER_S)
        try:
            self._begin()
            late: tuple[str, int, bool] | None = None
            while not self.is_done():
                pace.wait(self.world.draining)
                late = self._transaction(name, late)
        except (Refused, OSError):
            return  # a new session begins with what an old one left

    def _begin(self) -> None:
        request = messages.InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=20_000)
        address = self._cluster.coordinator(self.name)
        answer = ask(address, request, 4, messages.InitProducerIdResponse, timeout_s=ANSWER_S_MAX)
        if answer.error_code:
            raise Refused(answer.error_code)
        self._producer_id, self._epoch, self._sequences = answer.producer_id, answer.producer_epoch, {}

    def _transaction(self, name: str, late: tuple[str, int, bool] | None) -> tuple[str, int, bool]:
        txn, history = f"{self.name}/{next(self._numbers)}", self.world.history
        self._send(name, txn)
        if late is not None:
            self._end_again(name, *late)
        self._send(name, txn)
        is_commit, epoch = self._chance.random() < 0.5, self._epoch
        op = h.COMMIT if is_commit else h.ABORT
        history.note(name, op, h.INVOKE, txn=txn)
        try:
            self._producer_id, self._epoch = self._end(epoch, is_commit=is_commit)
        except (Refused, OSError) as wrong:
            history.note(name, op, h.UNKNOWN, txn=txn, error=str(wrong))
            raise
        history.note(name, op, h.OK, txn=txn)
        self._sequences = {}
        return txn, epoch, is_commit

    def _send(self, name: str, txn: str) -> None:
        number, partition = next(self._ids), self._chance.randrange(self.world.partitions)
        value, history = f"{self.name}:{number}", self.world.history
        sequence = self._sequences.get(partition, 0)
        batch = build_batch(
            [Record(Offset(0), int(time.time() * 1000), None, value.encode())],
            producer_id=self._producer_id, producer_epoch=self._epoch, base_sequence=sequence,
            attributes=TRANSACTIONAL,
        )  # fmt: skip
        history.note(name, h.SEND, h.INVOKE, id=number, topic=TXN, partition=partition, value=value, txn=txn)
        try:
            offset = self._cluster.produce(TXN, partition, bytes(batch), transactional_id=self.name, version=12)
        except (Refused, OSError) as wrong:
            history.note(name, h.SEND, phase_of(wrong), id=number, error=str(wrong))
            raise
        self._sequences[partition] = sequence + 1
        history.note(name, h.SEND, h.OK, id=number, offset=offset)

    def _end(self, epoch: int, *, is_commit: bool) -> tuple[int, int]:
        request = messages.EndTxnRequest(
            transactional_id=self.name, producer_id=self._producer_id, producer_epoch=epoch, committed=is_commit
        )  # fmt: skip
        address = self._cluster.coordinator(self.name)
        answer = ask(address, request, 5, messages.EndTxnResponse, timeout_s=ANSWER_S_MAX)
        if answer.error_code:
            raise Refused(answer.error_code)
        return answer.producer_id, answer.producer_epoch

    def _end_again(self, name: str, txn: str, epoch: int, is_commit: bool) -> None:
        """The same request once more, as if it had been under way all the time."""
        self.world.history.note(name, h.LATE_END, h.INVOKE, txn=txn)
        for again in (is_commit, not is_commit):
            try:
                self._end(epoch, is_commit=again)
            except Refused as wrong:
                self.world.history.note(name, h.LATE_END, h.FAIL, txn=txn, error=str(wrong))

"""Apache Kafka as the judge: the same requests get the same answers and leave the same records."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId, TopicPartition
from moldau.transactions.records import Fact, TransactionChanged, TransactionForgotten, decode_fact, encode_fact
from moldau.transactions.states import PREPARED, State
from moldau.transactions.transaction import ProducerIdAndEpoch, Transaction, timeout_key
from moldau.wire.batch import Record, batches, build_batch, records
from moldau.wire.codec import decode, encode
from moldau.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests import apache_kafka
from tests.apache_kafka import ApacheKafka
from tests.differential.peer import Peer
from tests.transactions.worlds import FIRST, P0, SECOND, World, transaction

pytestmark = [
    pytest.mark.skipif(not apache_kafka.available(), reason="Apache Kafka needs java, and Maven the first time"),
    pytest.mark.xdist_group("apache-transactions"),  # one process starts what they share, not three
]

WAIT_S_MAX = 30.0
TIMEOUT_MS = 60_000
PREPARED_LABELS = {state.label for state in PREPARED}
PROPERTIES = {
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}


class Told(NamedTuple):
    """A reply in which producer ids are numbered in the order of their appearance, as each side has its own."""

    error: ErrorCode
    producer: int = -1
    epoch: int = -1


class Numbers:
    def __init__(self) -> None:
        self._seen: list[int] = []

    def of(self, producer_id: int) -> int:
        if producer_id < 0:
            return producer_id
        if producer_id not in self._seen:
            self._seen.append(producer_id)
        return self._seen.index(producer_id)

    def real(self, number: int) -> int:
        """A number that nobody has yet stands for a producer id that nobody has."""
        return self._seen[number] if number < len(self._seen) else 999_999


class Judge:
    def __init__(self, peer: Peer, transactional_id: str) -> None:
        self.peer, self.transactional_id = peer, transactional_id
        self.numbers = Numbers()

    def ask(self, api: str, version: int, **fields: Any) -> dict[str, Any]:
        answer = self.peer.ask(api, version, transactional_id=self.transactional_id, **fields)
        assert isinstance(answer, dict), answer
        self.settle()
        return answer

    def init(self, number: int = -1, epoch: int = -1, timeout_ms: int = TIMEOUT_MS) -> Told:
        producer_id = -1 if number < 0 else self.numbers.real(number)
        fields = {"transaction_timeout_ms": timeout_ms, "producer_id": producer_id, "producer_epoch": epoch}
        return self.told(self.ask("InitProducerId", 5, **fields))

    def end(self, number: int, epoch: int, is_commit: bool, version: int) -> Told:
        fields = {"producer_id": self.numbers.real(number), "producer_epoch": epoch, "committed": is_commit}
        return self.told(self.ask("EndTxn", version, **fields))

    def told(self, answer: dict[str, Any]) -> Told:
        number = self.numbers.of(answer.get("producer_id", -1))
        return Told(ErrorCode(answer["error_code"]), number, answer.get("producer_epoch", -1))

    def add(self, number: int, epoch: int, is_verified: bool = False) -> Told:
        one = AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.numbers.real(number),
            producer_epoch=epoch,
            verify_only=is_verified,
            topics=[AddPartitionsToTxnTopic(P0.topic, [P0.partition])],
        )
        self.peer.send_request("AddPartitionsToTxn", 5, encode(AddPartitionsToTxnRequest(transactions=[one]), 5))
        frame = self.peer.receive()
        assert isinstance(frame, bytes), frame
        answer, _ = decode(AddPartitionsToTxnResponse, 5, frame, 5)
        (result,) = answer.results_by_transaction
        return Told(ErrorCode(result.topic_results[0].results_by_partition[0].partition_error_code))

    def settle(self) -> None:
        """Markers are written after the answer."""
        deadline = time.monotonic() + WAIT_S_MAX
        while self.state() in PREPARED_LABELS:
            assert time.monotonic() < deadline
            time.sleep(0.002)

    def state(self) -> str:
        answer = self.peer.ask("DescribeTransactions", 0, transactional_ids=[self.transactional_id])
        assert isinstance(answer, dict), answer
        label: str = answer["transaction_states"][0]["transaction_state"]
        return label

    def time_out(self) -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        while self.state() != State.COMPLETE_ABORT.label:
            assert time.monotonic() < deadline
            time.sleep(0.05)


class Candidate:
    def __init__(self, transactional_id: str) -> None:
        self.world = World()
        self.transactional_id = transactional_id
        self.numbers = Numbers()

    def init(self, number: int = -1, epoch: int = -1, timeout_ms: int = TIMEOUT_MS) -> Told:
        producer_id = -1 if number < 0 else self.numbers.real(number)
        return self.told(self.world.init(producer_id=producer_id, epoch=epoch, timeout_ms=timeout_ms))

    def end(self, number: int, epoch: int, is_commit: bool, version: int) -> Told:
        producer = ProducerIdAndEpoch(self.numbers.real(number), epoch)
        return self.told(self.world.end(producer, is_commit=is_commit, version=version))

    def told(self, reply: Any) -> Told:
        self.world.mark_all()
        return Told(reply.error, self.numbers.of(reply.producer_id), reply.epoch)

    def add(self, number: int, epoch: int, is_verified: bool = False) -> Told:
        producer = ProducerIdAndEpoch(self.numbers.real(number), epoch)
        if is_verified:
            return Told(self.world.shard.verify_partitions("copier", producer, frozenset({P0}))[P0])
        return Told(self.world.add(producer, P0, client_version=2))

    def time_out(self) -> None:
        self.world.run(self.world.shard.decide_timer(timeout_key("copier"), 10**12))
        self.world.mark_all()


class Both:
    """Does everything twice and keeps what differs."""

    def __init__(self, peer: Peer, transactional_id: str) -> None:
        self.judge, self.candidate = Judge(peer, transactional_id), Candidate(transactional_id)

    def __getattr__(self, name: str) -> Any:
        def both(*args: Any, **named: Any) -> Any:
            right = getattr(self.judge, name)(*args, **named)
            ours = getattr(self.candidate, name)(*args, **named)
            assert ours == right, f"{name}{args}"
            return right

        return both


@pytest.fixture(scope="module")
def apache() -> Iterator[ApacheKafka]:
    with ApacheKafka(properties=PROPERTIES) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def peer(apache: ApacheKafka) -> Iterator[Peer]:
    made = Peer(("127.0.0.1", apache.port))
    topic = {"name": P0.topic, "num_partitions": 1, "replication_factor": 1}
    made.ask("CreateTopics", 7, topics=[topic], timeout_ms=10_000)
    deadline = time.monotonic() + WAIT_S_MAX
    while True:
        made.ask("FindCoordinator", 4, key_type=1, coordinator_keys=["warm-up"])
        answer = made.ask("InitProducerId", 5, transactional_id="warm-up", transaction_timeout_ms=1_000)
        if isinstance(answer, dict) and answer["error_code"] == 0:
            break
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
    yield made
    made.close()


def in_state(peer: Peer, name: str, state: State, version: int) -> Both:
    """Producer 0 has epoch 3, or 4 when its second protocol has ended a transaction."""
    both = Both(peer, name)
    for _ in range(4):
        both.init()
    if state is not State.EMPTY:
        both.add(0, 3)
    if state is State.COMPLETE_COMMIT:
        both.end(0, 3, True, version)
    if state is State.COMPLETE_ABORT:
        both.end(0, 3, False, version)
    return both


STATES = [State.EMPTY, State.ONGOING, State.COMPLETE_COMMIT, State.COMPLETE_ABORT]
VERSIONS = [FIRST, SECOND]


@pytest.mark.parametrize(("state", "before"), list(product(STATES, VERSIONS)))
def test_end_txn(peer: Peer, state: State, before: int) -> None:
    for number, (version, is_commit, epoch) in enumerate(product(VERSIONS, (True, False), range(2, 6))):
        both = in_state(peer, f"end-{state.name}-{before}-{number}", state, before)
        both.end(0, epoch, is_commit, version)
        both.end(0, epoch, is_commit, version)
        both.end(1, epoch, is_commit, version)
        both.add(0, 4)
        same_records(peer, both)


@pytest.mark.parametrize(("state", "before"), list(product(STATES, VERSIONS)))
def test_init_producer_id(peer: Peer, state: State, before: int) -> None:
    # An older epoch in an open transaction is left out: Kafka aborts the transaction before it says PRODUCER_FENCED.
    epochs = [3] if state is State.ONGOING else range(2, 6)
    for epoch in epochs:
        both = in_state(peer, f"init-{state.name}-{before}-{epoch}", state, before)
        both.init(0, epoch)
        both.init(0, epoch)
        both.init(1, epoch)
        both.init()
        both.init()
        same_records(peer, both)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("is_verified", [True, False])
def test_add_partitions(peer: Peer, state: State, is_verified: bool) -> None:
    for epoch in range(2, 6):
        both = in_state(peer, f"add-{state.name}-{is_verified}-{epoch}", state, SECOND)
        both.add(0, epoch, is_verified)
        both.add(0, epoch, is_verified)
        both.add(1, epoch, is_verified)
        same_records(peer, both)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_time_out(peer: Peer, version: int) -> None:
    for is_commit in (True, False):
        both = Both(peer, f"time-out-{version}-{is_commit}")
        both.init(timeout_ms=100)
        both.add(0, 0)
        both.time_out()
        both.end(0, 0, is_commit, version)
        both.add(0, 0)
        both.add(0, 1)
        both.end(0, 1, is_commit, version)
        both.init(0, 0)
        same_records(peer, both)


def test_time_limits_of_a_request(peer: Peer) -> None:
    both = Both(peer, "limits")
    for timeout_ms in (0, -1, 900_001, 900_000, 1):
        both.init(timeout_ms=timeout_ms)


def same_records(peer: Peer, both: Both) -> None:
    """The history that a consumer of `__transaction_state` reads, but for times and for the numbers of producers."""
    theirs = [
        changed(decode_fact(memoryview(key), memoryview(value)), both.judge.numbers)
        for key, value in history(peer, both.judge.transactional_id)
    ]
    ours = [
        changed(decode_fact(memoryview(key), memoryview(value or b"")), both.candidate.numbers)
        for key, value in both.candidate.world.entries
    ]
    assert ours == [replace(each, transactional_id="copier") for each in theirs]


def changed(fact: Any, numbers: Numbers) -> Transaction:
    assert isinstance(fact, TransactionChanged)
    known = fact.transaction
    return replace(
        known,
        producer_id=ProducerId(numbers.of(known.producer_id)),
        previous_producer_id=ProducerId(numbers.of(known.previous_producer_id)),
        next_producer_id=ProducerId(numbers.of(known.next_producer_id)),
        started_ms=min(known.started_ms, 0),
        updated_ms=0,
    )


def history(peer: Peer, transactional_id: str) -> Iterator[tuple[bytes, bytes]]:
    """The records of one id; every one must be what we would have written."""
    for batch in fetched(peer):
        for record in records(batch, decompressed_bytes_max=1 << 20):
            assert record.key is not None
            assert record.value is not None
            key, value = bytes(record.key), bytes(record.value)
            fact = decode_fact(memoryview(key), memoryview(value))
            assert isinstance(fact, TransactionChanged)
            assert encode_fact(fact, 2) == (key, value)
            if fact.transaction.transactional_id == transactional_id:
                yield key, value


def fetched(peer: Peer) -> Iterator[memoryview]:
    offset = 0
    while True:
        wanted = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 22}
        topic = {"topic": "__transaction_state", "partitions": [wanted]}
        answer = peer.ask("Fetch", 11, max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=[topic], session_epoch=-1)
        assert isinstance(answer, dict), answer
        found = memoryview(answer["responses"][0]["partitions"][0]["records"] or b"")
        if not found:
            return
        for at, header in batches(found, partial_tail=True):
            yield found[at : at + header.length_bytes]
            offset = header.next_offset


def test_kafka_decodes_what_we_write(tmp_path: Path) -> None:
    partitions = {P0, TopicPartition("other", 3)}
    opened = transaction(State.ONGOING, partitions=partitions, next_producer_id=ProducerId(9), client_version=2)
    facts: list[Fact] = [TransactionChanged(transaction()), TransactionChanged(opened), TransactionForgotten("gone")]
    entries = [encode_fact(fact, 2) for fact in facts]
    batch = build_batch([Record(number, 1_000, key, value) for number, (key, value) in enumerate(entries)])
    segment = tmp_path / "__transaction_state-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_bytes(batch)
    dumped = apache_kafka.tool(
        "org.apache.kafka.tools.DumpLogSegments", "--transaction-log-decoder", "--files", str(segment)
    )
    payloads = [line.split("payload: ")[1] for line in dumped.stdout.splitlines() if "payload: " in line]
    read = json.loads(payloads[1])["data"]
    assert read.pop("transactionPartitions") == [
        {"topic": "orders", "partitionIds": [0]},
        {"topic": "other", "partitionIds": [3]},
    ]
    assert read == {
        "producerId": 7,
        "previousProducerId": 7,
        "nextProducerId": 9,
        "producerEpoch": 3,
        "transactionTimeoutMs": 60_000,
        "transactionStatus": 1,
        "transactionLastUpdateTimestampMs": 1_000,
        "transactionStartTimestampMs": 1_000,
        "clientTransactionVersion": 2,
    }
    assert payloads[2] == "<DELETE>"

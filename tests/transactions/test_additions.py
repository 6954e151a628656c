"""AddPartitionsToTxn and AddOffsetsToTxn: opening a transaction, growing it, and checking what is in it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from moldau.core.decision import Decision, Timer
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.transactions.additions import client_version_of, decide_add_partitions, verify_partitions
from moldau.transactions.records import TransactionChanged
from moldau.transactions.states import State
from moldau.transactions.transaction import ProducerIdAndEpoch, Transaction, timeout_key
from tests.transactions.worlds import ID, P0, P1, TIMEOUT_MS, World, transaction

NOW_MS = 2_000
US = ProducerIdAndEpoch(7, 3)


def decide(
    before: Transaction | None, producer: ProducerIdAndEpoch = US, *partitions: TopicPartition, client_version: int = 0
) -> Decision[ErrorCode]:
    return decide_add_partitions(
        before, producer, frozenset(partitions or {P0}), client_version=client_version, now_ms=NOW_MS
    )


@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
def test_the_first_partition_opens_the_transaction(state: State) -> None:
    before = transaction(state, client_version=2)
    after = replace(
        before,
        state=State.ONGOING,
        partitions=frozenset({P0}),
        started_ms=NOW_MS,
        updated_ms=NOW_MS,
        client_version=0,
    )
    deadline = Timer(timeout_key(ID), NOW_MS + TIMEOUT_MS + 1)
    assert decide(before) == Decision((TransactionChanged(after),), ErrorCode.NONE, (deadline,))


def test_more_partitions_leave_the_deadline_where_it_is() -> None:
    before = transaction(State.ONGOING)
    after = replace(before, partitions=frozenset({P0, P1}), updated_ms=NOW_MS, client_version=2)
    assert decide(before, US, P1, client_version=2) == Decision((TransactionChanged(after),), ErrorCode.NONE)


def test_what_is_known_already_costs_no_record() -> None:
    assert decide(transaction(State.ONGOING), US, P0) == Decision.reply_only(ErrorCode.NONE)


@pytest.mark.parametrize("state", [State.PREPARE_COMMIT, State.PREPARE_ABORT])
@pytest.mark.parametrize("producer", [US, ProducerIdAndEpoch(7, 2), ProducerIdAndEpoch(8, 3)])
def test_the_next_transaction_waits_for_the_markers_of_this_one(state: State, producer: ProducerIdAndEpoch) -> None:
    assert decide(transaction(state), producer) == Decision.reply_only(ErrorCode.CONCURRENT_TRANSACTIONS)


@pytest.mark.parametrize("state", [State.EMPTY, State.ONGOING, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
@pytest.mark.parametrize(
    ("producer", "error"),
    [
        (ProducerIdAndEpoch(8, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ProducerIdAndEpoch(7, 2), ErrorCode.PRODUCER_FENCED),
        (ProducerIdAndEpoch(7, 4), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_another_producer_adds_nothing(state: State, producer: ProducerIdAndEpoch, error: ErrorCode) -> None:
    assert decide(transaction(state), producer) == Decision.reply_only(error)


def test_an_unknown_id_has_no_transactions() -> None:
    assert decide(None) == Decision.reply_only(ErrorCode.INVALID_PRODUCER_ID_MAPPING)


def test_offsets_are_a_partition_like_any_other() -> None:
    world = World(transaction())
    decision = world.shard.decide_add_offsets(ID, US, offsets_partition=11, now_ms=NOW_MS)
    assert world.run(decision) is ErrorCode.NONE
    assert world[ID].partitions == {TopicPartition("__consumer_offsets", 11)}


def test_brokers_speak_for_clients_of_the_second_protocol() -> None:
    assert [client_version_of(version) for version in range(6)] == [0, 0, 0, 0, 2, 2]


def test_a_request_without_an_id() -> None:
    world = World()
    add = world.shard.decide_add_partitions("", US, frozenset({P0}), client_version=0, now_ms=NOW_MS)
    assert add == Decision.reply_only(ErrorCode.INVALID_REQUEST)
    assert world.shard.verify_partitions("", US, frozenset({P0})) == {P0: ErrorCode.INVALID_REQUEST}


def test_verification_names_what_is_missing() -> None:
    asked = frozenset({P0, P1})
    assert verify_partitions(transaction(State.ONGOING), US, asked) == {
        P0: ErrorCode.NONE,
        P1: ErrorCode.TRANSACTION_ABORTABLE,
    }


@pytest.mark.parametrize(
    ("before", "producer", "error"),
    [
        (None, US, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (transaction(State.ONGOING), ProducerIdAndEpoch(8, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (transaction(State.ONGOING), ProducerIdAndEpoch(7, 2), ErrorCode.PRODUCER_FENCED),
        (transaction(State.PREPARE_COMMIT), ProducerIdAndEpoch(7, 2), ErrorCode.PRODUCER_FENCED),
        (transaction(State.PREPARE_COMMIT), US, ErrorCode.CONCURRENT_TRANSACTIONS),
        (transaction(State.PREPARE_ABORT), US, ErrorCode.CONCURRENT_TRANSACTIONS),
        (transaction(State.EMPTY), US, ErrorCode.TRANSACTION_ABORTABLE),
        (transaction(State.COMPLETE_COMMIT), US, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_verification_of_others(before: Transaction | None, producer: ProducerIdAndEpoch, error: ErrorCode) -> None:
    assert verify_partitions(before, producer, frozenset({P0})) == {P0: error}

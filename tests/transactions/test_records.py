"""The bytes of `__transaction_state`."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moldau.core.errors import ProtocolViolation
from moldau.core.ids import ProducerId, TopicPartition
from moldau.transactions.records import Fact, TransactionChanged, TransactionForgotten, decode_fact, encode_fact
from moldau.transactions.states import State
from moldau.transactions.transaction import Transaction
from tests.transactions.worlds import P0, P1, transaction

EPOCHS = st.integers(-1, 2**15 - 1)
LONGS = st.integers(-1, 2**63 - 1)
PRODUCER_IDS = st.builds(ProducerId, LONGS)
PARTITIONS = st.frozensets(st.builds(TopicPartition, st.text(max_size=9), st.integers(0, 2**31 - 1)), max_size=9)
TRANSACTIONS = st.builds(
    Transaction,
    st.text(min_size=1, max_size=20),
    PRODUCER_IDS,
    epoch=EPOCHS,
    last_epoch=EPOCHS,
    previous_producer_id=PRODUCER_IDS,
    next_producer_id=PRODUCER_IDS,
    timeout_ms=st.integers(0, 2**31 - 1),
    state=st.sampled_from(State),
    partitions=PARTITIONS,
    started_ms=LONGS,
    updated_ms=LONGS,
    client_version=st.integers(0, 2),
)


def round_trip(fact: Fact, transaction_version: int = 2) -> Fact | None:
    key, value = encode_fact(fact, transaction_version)
    return decode_fact(memoryview(key), None if value is None else memoryview(value))


def test_the_bytes_are_those_that_kafka_writes() -> None:
    changed = TransactionChanged(transaction(State.ONGOING, partitions={P1, P0}, client_version=2))
    key, value = encode_fact(changed, 2)
    assert key.hex(" ") == "00 00 00 06 63 6f 70 69 65 72"
    assert value is not None
    assert value.hex(" ") == (
        "00 01 00 00 00 00 00 00 00 07 00 03 00 00 ea 60 01 02 07 6f 72 64 65 72 73 03 00 00 00 00 00 00 00 01 00"
        " 00 00 00 00 00 00 03 e8 00 00 00 00 00 00 03 e8"
        " 02 00 08 00 00 00 00 00 00 00 07 02 02 00 02"
    )


def test_before_the_feature_the_value_has_no_tags() -> None:
    before = transaction(State.EMPTY, client_version=2)
    key, value = encode_fact(TransactionChanged(before), 0)
    assert value is not None
    assert value.hex(" ") == (
        "00 00 00 00 00 00 00 00 00 07 00 03 00 00 ea 60 00 ff ff ff ff 00 00 00 00 00 00 03 e8 ff ff ff ff ff ff ff ff"
    )
    lost = replace(before, previous_producer_id=ProducerId(-1), client_version=0)
    assert decode_fact(memoryview(key), memoryview(value)) == TransactionChanged(lost)


def test_a_tombstone_has_no_value() -> None:
    assert encode_fact(TransactionForgotten("a"), 2) == (b"\0\0\0\1a", None)
    assert round_trip(TransactionForgotten("a")) == TransactionForgotten("a")


@given(TRANSACTIONS)
def test_what_is_written_is_read_but_for_the_last_epoch(before: Transaction) -> None:
    partitions = frozenset() if before.state is State.EMPTY else before.partitions
    assert round_trip(TransactionChanged(before)) == TransactionChanged(
        replace(before, last_epoch=-1, partitions=partitions)
    )


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_damaged_bytes_are_a_violation_and_nothing_else(key: bytes, value: bytes | None) -> None:
    with suppress(ProtocolViolation):
        decode_fact(memoryview(key), None if value is None else memoryview(value))


def test_unknown_kinds_are_skipped_and_unknown_versions_are_not() -> None:
    key, value = encode_fact(TransactionChanged(transaction()), 2)
    assert value is not None
    assert decode_fact(memoryview(b"\0\5" + key[2:]), memoryview(value)) is None
    with pytest.raises(ProtocolViolation, match="version 2"):
        decode_fact(memoryview(key), memoryview(b"\0\2" + value[2:]))
    with pytest.raises(ProtocolViolation, match="no state"):
        decode_fact(memoryview(key), memoryview(value[:16] + b"\x09" + value[17:]))

"""ListTransactions and DescribeTransactions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import ProducerId, TopicPartition
from moldau.transactions.states import State
from moldau.transactions.view import describe, list_transactions_of, listing_of
from moldau.wire.messages import describe_transactions
from moldau.wire.messages.list_transactions import ListTransactionsRequest, TransactionState
from tests.transactions.worlds import ID, P0, P1, transaction

NOW_MS = 10_000
ALL = [
    replace(transaction(State.EMPTY), transactional_id="a-1"),
    replace(transaction(State.ONGOING, producer_id=ProducerId(8)), transactional_id="a-2"),
    replace(transaction(State.COMPLETE_COMMIT, started_ms=9_000), transactional_id="b-1"),
    replace(transaction(State.DEAD), transactional_id="b-2"),
]


def listed(**filters: Any) -> list[str]:
    found = list_transactions_of(ALL, listing_of(ListTransactionsRequest(**filters)), NOW_MS)
    return [each.transactional_id for each in found]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, ["a-1", "a-2", "b-1"]),
        ({"state_filters": ["Ongoing", "CompleteCommit"]}, ["a-2", "b-1"]),
        ({"state_filters": ["Dead"]}, []),
        ({"state_filters": ["ongoing"]}, []),
        ({"state_filters": ["Ongoing", "nonsense"]}, ["a-2"]),
        ({"producer_id_filters": [8, 9]}, ["a-2"]),
        ({"duration_filter": 0}, ["a-1", "a-2", "b-1"]),
        ({"duration_filter": 1_000}, ["a-1", "a-2"]),
        ({"duration_filter": 8_999}, ["a-1", "a-2"]),
        ({"duration_filter": 9_000}, ["a-1"]),
        ({"transactional_id_pattern": "a-.*"}, ["a-1", "a-2"]),
        ({"transactional_id_pattern": "a"}, []),
        ({"transactional_id_pattern": ""}, ["a-1", "a-2", "b-1"]),
        ({"transactional_id_pattern": ".*-1", "state_filters": ["Empty"]}, ["a-1"]),
    ],
)
def test_filters(filters: dict[str, Any], ids: list[str]) -> None:
    assert listed(**filters) == ids


def test_what_is_listed() -> None:
    listing = listing_of(ListTransactionsRequest(state_filters=["Ongoing", "x", "y", "x"]))
    assert listing.unknown_states == ("x", "y")
    assert list_transactions_of(ALL, listing, NOW_MS) == [TransactionState("a-2", 8, "Ongoing")]


def test_a_pattern_that_is_none() -> None:
    with pytest.raises(ApiError) as raised:
        listing_of(ListTransactionsRequest(transactional_id_pattern="(a"))
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_description_names_the_partitions() -> None:
    opened = transaction(State.ONGOING, partitions={P1, P0, TopicPartition("other", 4)})
    assert describe(ID, opened) == describe_transactions.TransactionState(
        transactional_id=ID,
        transaction_state="Ongoing",
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=1_000,
        producer_id=7,
        producer_epoch=3,
        topics=[describe_transactions.TopicData("orders", [0, 1]), describe_transactions.TopicData("other", [4])],
    )


def test_what_is_not_there() -> None:
    assert describe(ID, None).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert describe(ID, transaction(State.DEAD)).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert describe("", None).error_code == ErrorCode.INVALID_REQUEST

"""Markers: what is due, and the bytes of a marker."""

from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.log.producers.end_transaction_marker import read_marker
from moldau.log.producers.producer_state import Marker
from moldau.transactions.markers_due import (
    MarkersDue,
    Outcome,
    build_marker,
    markers_due,
    outcome_of,
)
from moldau.transactions.states import PREPARED, State
from moldau.transactions.transaction import ProducerIdAndEpoch
from moldau.wire.batch import read_header, verify_crc
from tests.transactions.worlds import ID, P0, transaction


@pytest.mark.parametrize("state", State, ids=lambda state: state.label)
def test_markers_are_due_while_an_outcome_is_prepared(state: State) -> None:
    due = markers_due(transaction(state, client_version=2))
    is_commit = state is State.PREPARE_COMMIT
    expected = MarkersDue(ID, ProducerIdAndEpoch(7, 3), is_commit, frozenset({P0}), 2)
    assert due == (expected if state in PREPARED else None)


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_is_a_control_batch_of_the_producer(is_commit: bool) -> None:
    batch = memoryview(build_marker(ProducerIdAndEpoch(7, 3), is_commit=is_commit, coordinator_epoch=5, now_ms=1_000))
    header = read_header(batch, 0)
    assert verify_crc(batch, 0, header)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert (header.record_count, header.max_timestamp) == (1, 1_000)
    assert read_marker(batch) == Marker(is_commit, 5)


def test_what_an_answer_means() -> None:
    assert outcome_of(ErrorCode.NONE) is Outcome.DONE
    assert outcome_of(ErrorCode.NOT_LEADER_OR_FOLLOWER) is Outcome.RETRY
    assert outcome_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) is Outcome.RETRY
    assert outcome_of(ErrorCode.TRANSACTION_COORDINATOR_FENCED) is Outcome.GIVE_UP
    assert outcome_of(ErrorCode.INVALID_PRODUCER_EPOCH) is Outcome.GIVE_UP

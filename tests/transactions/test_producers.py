"""InitProducerId: who gets which epoch, and who is fenced."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moldau.core.decision import Decision, Released, Timer
from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId
from moldau.transactions.limits import TransactionLimits
from moldau.transactions.producers import decide_init_producer_id
from moldau.transactions.records import TransactionChanged
from moldau.transactions.states import State
from moldau.transactions.transaction import MARKERS, ProducerReply, Transaction, timeout_key
from tests.transactions.worlds import ID, TIMEOUT_MS, initialising, transaction

NOW_MS = 2_000
SPARE = ProducerId(50)
IDLE = [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT]


def decide(
    before: Transaction | None,
    *,
    spare_id: ProducerId | None = None,
    limits: TransactionLimits | None = None,
    **request: Any,
) -> Decision[ProducerReply]:
    return decide_init_producer_id(
        before, initialising(**request), limits=limits or TransactionLimits(), spare_id=spare_id, now_ms=NOW_MS
    )


def refused(error: ErrorCode) -> Decision[ProducerReply]:
    return Decision.reply_only(ProducerReply(error))


def test_a_new_id_begins_with_epoch_zero() -> None:
    after = Transaction(ID, SPARE, epoch=0, previous_producer_id=SPARE, timeout_ms=TIMEOUT_MS, updated_ms=NOW_MS)
    assert decide(None, spare_id=SPARE) == Decision((TransactionChanged(after),), ProducerReply(ErrorCode.NONE, 50, 0))


def test_a_new_id_waits_for_a_producer_id() -> None:
    assert decide(None) == refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


@pytest.mark.parametrize("state", IDLE)
def test_whoever_comes_fences_those_before(state: State) -> None:
    before = transaction(state, last_epoch=2, client_version=2)
    after = transaction(State.EMPTY, epoch=4, timeout_ms=5_000, updated_ms=NOW_MS, client_version=2)
    assert decide(before, timeout_ms=5_000) == Decision(
        (TransactionChanged(after),), ProducerReply(ErrorCode.NONE, 7, 4)
    )


@pytest.mark.parametrize("state", IDLE)
def test_a_producer_goes_on_with_the_next_epoch(state: State) -> None:
    decision = decide(transaction(state), producer_id=7, epoch=3)
    assert decision.reply == ProducerReply(ErrorCode.NONE, 7, 4)
    (changed,) = decision.records
    assert changed.transaction.last_epoch == 3

    again = decide(changed.transaction, producer_id=7, epoch=3)
    assert again.reply == ProducerReply(ErrorCode.NONE, 7, 4)
    assert again.records == (TransactionChanged(changed.transaction),)


@pytest.mark.parametrize("state", [*IDLE, State.ONGOING])
@pytest.mark.parametrize(("producer_id", "epoch"), [(7, 2), (7, 4), (6, 3), (6, 32766)])
def test_a_fenced_producer_gets_nothing_and_changes_nothing(state: State, producer_id: int, epoch: int) -> None:
    assert decide(transaction(state), producer_id=producer_id, epoch=epoch) == refused(ErrorCode.PRODUCER_FENCED)


def test_an_open_transaction_is_aborted_first() -> None:
    before = transaction(State.ONGOING)
    after = replace(before, state=State.PREPARE_ABORT, epoch=4, last_epoch=3, updated_ms=NOW_MS, client_version=2)
    assert decide(before) == Decision(
        (TransactionChanged(after),),
        ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS),
        (Timer(timeout_key(ID), None),),
        (Released(MARKERS, ()),),
    )


@pytest.mark.parametrize("state", [State.PREPARE_COMMIT, State.PREPARE_ABORT])
def test_markers_under_way_are_waited_for(state: State) -> None:
    assert decide(transaction(state)) == refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert decide(transaction(state), producer_id=6, epoch=1) == refused(ErrorCode.CONCURRENT_TRANSACTIONS)


def test_used_up_epochs_need_another_producer_id() -> None:
    before = transaction(State.EMPTY, epoch=32766)
    assert decide(before) == refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    decision = decide(before, spare_id=SPARE)
    assert decision.reply == ProducerReply(ErrorCode.NONE, 50, 0)
    (changed,) = decision.records
    assert (changed.transaction.previous_producer_id, changed.transaction.last_epoch) == (7, -1)


def test_a_producer_that_missed_its_new_id_is_told_again() -> None:
    before = transaction(State.EMPTY, epoch=32766)
    (changed,) = decide(before, spare_id=SPARE, producer_id=7, epoch=32766).records
    again = decide(changed.transaction, producer_id=7, epoch=32766)
    assert again.reply == ProducerReply(ErrorCode.NONE, 50, 0)
    assert decide(changed.transaction, producer_id=7, epoch=32765) == refused(ErrorCode.PRODUCER_FENCED)


def test_an_older_epoch_is_fenced_also_when_epochs_are_used_up() -> None:
    before = transaction(State.EMPTY, epoch=32766)
    assert decide(before, spare_id=SPARE, producer_id=7, epoch=5) == refused(ErrorCode.PRODUCER_FENCED)


def test_a_forgotten_producer_gets_a_new_id() -> None:
    assert decide(None, spare_id=SPARE, producer_id=7, epoch=3).reply == ProducerReply(ErrorCode.NONE, 50, 0)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 7}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 3}, ErrorCode.INVALID_REQUEST),
        ({"timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": -1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"keeps_prepared": True}, ErrorCode.UNSUPPORTED_VERSION),
        ({"enables_two_phase_commit": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_requests_that_are_wrong(request_: dict[str, Any], error: ErrorCode) -> None:
    assert decide(transaction(), **request_) == refused(error)


def test_a_two_phase_commit_has_no_time_limit() -> None:
    limits = TransactionLimits(allows_two_phase_commit=True)
    (changed,) = decide(transaction(), limits=limits, enables_two_phase_commit=True, timeout_ms=-1).records
    opened = replace(changed.transaction, state=State.ONGOING, started_ms=NOW_MS)
    assert opened.deadline_ms is None

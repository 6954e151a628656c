"""EndTxn in both protocols, in every state; markers; fencing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from moldau.core.decision import Decision, Released, Timer
from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId
from moldau.transactions.endings import decide_end_txn, decide_fence, decide_markers_written
from moldau.transactions.limits import TransactionLimits
from moldau.transactions.records import TransactionChanged
from moldau.transactions.states import State
from moldau.transactions.transaction import MARKERS, ProducerIdAndEpoch, ProducerReply, Transaction, timeout_key
from tests.transactions.worlds import FIRST, ID, SECOND, ending, transaction

ENDED = (Timer(timeout_key(ID), None),)
WOKEN = (Released(MARKERS, ()),)
NOW_MS = 2_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What EndTxn is told: an error, or that it is done already (NONE), or the state that it leads to."""

    error: ErrorCode = ErrorCode.NONE
    state: State | None = None


FENCED = Answer(ErrorCode.PRODUCER_FENCED)
WRONG = Answer(ErrorCode.INVALID_TXN_STATE)
LATER = Answer(ErrorCode.CONCURRENT_TRANSACTIONS)
AGAIN = Answer()
COMMITS = Answer(state=State.PREPARE_COMMIT)
ABORTS = Answer(state=State.PREPARE_ABORT)

# (state, commit) -> the answer to the epoch before the current one, to the current one, to the one after it
FIRST_PROTOCOL = {
    (State.EMPTY, True): (FENCED, WRONG, FENCED),
    (State.EMPTY, False): (FENCED, WRONG, FENCED),
    (State.ONGOING, True): (FENCED, COMMITS, FENCED),
    (State.ONGOING, False): (FENCED, ABORTS, FENCED),
    (State.PREPARE_COMMIT, True): (FENCED, LATER, FENCED),
    (State.PREPARE_COMMIT, False): (FENCED, LATER, FENCED),
    (State.PREPARE_ABORT, True): (FENCED, LATER, FENCED),
    (State.PREPARE_ABORT, False): (FENCED, LATER, FENCED),
    (State.COMPLETE_COMMIT, True): (FENCED, AGAIN, FENCED),
    (State.COMPLETE_COMMIT, False): (FENCED, WRONG, FENCED),
    (State.COMPLETE_ABORT, True): (FENCED, WRONG, FENCED),
    (State.COMPLETE_ABORT, False): (FENCED, AGAIN, FENCED),
}
SECOND_PROTOCOL = {
    (State.EMPTY, True): (FENCED, WRONG, FENCED),
    (State.EMPTY, False): (FENCED, ABORTS, FENCED),
    (State.ONGOING, True): (FENCED, COMMITS, FENCED),
    (State.ONGOING, False): (FENCED, ABORTS, FENCED),
    (State.PREPARE_COMMIT, True): (LATER, LATER, LATER),
    (State.PREPARE_COMMIT, False): (LATER, LATER, LATER),
    (State.PREPARE_ABORT, True): (LATER, LATER, LATER),
    (State.PREPARE_ABORT, False): (LATER, LATER, LATER),
    (State.COMPLETE_COMMIT, True): (AGAIN, WRONG, FENCED),
    (State.COMPLETE_COMMIT, False): (WRONG, ABORTS, FENCED),
    (State.COMPLETE_ABORT, True): (WRONG, WRONG, FENCED),
    (State.COMPLETE_ABORT, False): (AGAIN, ABORTS, FENCED),
}
CASES = [
    (version, state, is_commit, epoch, answer)
    for version, table in ((FIRST, FIRST_PROTOCOL), (SECOND, SECOND_PROTOCOL))
    for (state, is_commit), answers in table.items()
    for epoch, answer in zip((2, 3, 4), answers, strict=True)
]


def decide(before: Transaction | None, spare_id: int | None = None, **request: int) -> Decision[ProducerReply]:
    spare = None if spare_id is None else ProducerId(spare_id)
    made = ending(**request)  # type: ignore[arg-type]
    return decide_end_txn(before, made, spare_id=spare, now_ms=NOW_MS)


@pytest.mark.parametrize(("version", "state", "is_commit", "epoch", "answer"), CASES)
def test_end_txn_in_every_state(version: int, state: State, is_commit: bool, epoch: int, answer: Answer) -> None:
    before = transaction(state)
    decision = decide(before, version=version, is_commit=is_commit, epoch=epoch)
    assert decision.reply.error is answer.error
    if answer.state is None:
        assert decision.records == ()
    else:
        (changed,) = decision.records
        assert changed.transaction.state is answer.state


def test_the_first_protocol_keeps_the_epoch_and_names_no_producer() -> None:
    before = transaction(State.ONGOING, last_epoch=2, client_version=0)
    after = replace(before, state=State.PREPARE_COMMIT, updated_ms=NOW_MS)
    assert decide(before, version=FIRST) == Decision(
        (TransactionChanged(after),), ProducerReply(ErrorCode.NONE), ENDED, WOKEN
    )


def test_the_second_protocol_raises_the_epoch() -> None:
    before = transaction(State.ONGOING)
    after = replace(before, state=State.PREPARE_COMMIT, epoch=4, last_epoch=3, updated_ms=NOW_MS, client_version=2)
    assert decide(before) == Decision((TransactionChanged(after),), ProducerReply(ErrorCode.NONE, 7, 4), ENDED, WOKEN)


def test_the_same_request_again_gets_the_same_producer() -> None:
    done = transaction(State.COMPLETE_COMMIT, epoch=4, client_version=2)
    assert decide(done) == Decision.reply_only(ProducerReply(ErrorCode.NONE, 7, 4))


def test_an_abort_of_nothing_begins_it() -> None:
    (changed,) = decide(transaction(State.EMPTY), is_commit=False).records
    assert changed.transaction == transaction(
        State.PREPARE_ABORT,
        epoch=4,
        last_epoch=3,
        started_ms=NOW_MS,
        updated_ms=NOW_MS,
        partitions=(),
        client_version=2,
    )


def test_with_the_last_epoch_comes_another_producer_id() -> None:
    before = transaction(State.ONGOING, epoch=32766)
    decision = decide(before, spare_id=50, epoch=32766)
    assert decision.reply == ProducerReply(ErrorCode.NONE, 50, 0)
    (changed,) = decision.records
    prepared = changed.transaction
    assert (prepared.producer_id, prepared.epoch, prepared.next_producer_id) == (7, 32767, 50)

    marked = decide_markers_written(prepared, ProducerIdAndEpoch(7, 32767), is_commit=True, now_ms=NOW_MS)
    (changed,) = marked.records
    done = changed.transaction
    assert (done.producer_id, done.epoch, done.previous_producer_id, done.next_producer_id) == (50, 0, 7, -1)

    again = decide(done, epoch=32766)
    assert again == Decision.reply_only(ProducerReply(ErrorCode.NONE, 50, 0))
    assert decide(done, epoch=32766, is_commit=False).reply.error is ErrorCode.INVALID_TXN_STATE
    assert decide(done, epoch=32765).reply.error is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_without_a_producer_id_the_client_comes_again() -> None:
    before = transaction(State.ONGOING, epoch=32766)
    assert decide(before, epoch=32766) == Decision.reply_only(ProducerReply(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))


@pytest.mark.parametrize("version", [FIRST, SECOND])
def test_somebody_else_may_not_end_it(version: int) -> None:
    error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert decide(None, version=version) == Decision.reply_only(ProducerReply(error))
    assert decide(transaction(State.ONGOING), version=version, producer_id=8).reply.error is error


def test_a_fence_in_the_second_protocol() -> None:
    before = transaction(State.ONGOING)
    after = replace(before, state=State.PREPARE_ABORT, epoch=4, last_epoch=3, updated_ms=NOW_MS, client_version=2)
    decision = decide_fence(before, limits=TransactionLimits(), spare_id=None, now_ms=NOW_MS)
    assert decision == Decision((TransactionChanged(after),), ErrorCode.NONE, ENDED, WOKEN)


def test_a_fence_in_the_first_protocol_forgets_the_epoch_before() -> None:
    before = transaction(State.ONGOING, last_epoch=2)
    after = replace(before, state=State.PREPARE_ABORT, epoch=4, last_epoch=-1, updated_ms=NOW_MS)
    limits = TransactionLimits(transaction_version=0)
    decision = decide_fence(before, limits=limits, spare_id=None, now_ms=NOW_MS)
    assert decision.records == (TransactionChanged(after),)


@pytest.mark.parametrize("state", State, ids=lambda state: state.label)
@pytest.mark.parametrize("is_commit", [True, False])
def test_markers_complete_only_what_they_were_written_for(state: State, is_commit: bool) -> None:
    decision = decide_markers_written(transaction(state), ProducerIdAndEpoch(7, 3), is_commit=is_commit, now_ms=NOW_MS)
    if state is not (State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT):
        assert decision == Decision.reply_only(ErrorCode.INVALID_TXN_STATE)
        return
    complete = State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT
    assert decision == Decision((TransactionChanged(transaction(complete, updated_ms=NOW_MS)),), ErrorCode.NONE)


def test_markers_of_an_older_epoch_complete_nothing() -> None:
    before = transaction(State.PREPARE_ABORT)
    older = decide_markers_written(before, ProducerIdAndEpoch(7, 2), is_commit=False, now_ms=NOW_MS)
    other = decide_markers_written(before, ProducerIdAndEpoch(8, 3), is_commit=False, now_ms=NOW_MS)
    assert older == Decision.reply_only(ErrorCode.PRODUCER_FENCED)
    assert other == Decision.reply_only(ErrorCode.INVALID_PRODUCER_ID_MAPPING)

"""The table: which event leads where, and that nothing else happens."""

from __future__ import annotations

from itertools import product

import pytest

from moldau.transactions.states import NEXT, Event, IllegalTransactionTransition, State, advance, may

INTO = {
    State.EMPTY: {State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT},
    State.ONGOING: {State.ONGOING, State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT},
    State.PREPARE_COMMIT: {State.ONGOING},
    State.PREPARE_ABORT: {
        State.ONGOING,
        State.PREPARE_EPOCH_FENCE,
        State.EMPTY,
        State.COMPLETE_COMMIT,
        State.COMPLETE_ABORT,
    },
    State.COMPLETE_COMMIT: {State.PREPARE_COMMIT},
    State.COMPLETE_ABORT: {State.PREPARE_ABORT},
    State.DEAD: {State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT},
    State.PREPARE_EPOCH_FENCE: {State.ONGOING},
}


@pytest.mark.parametrize("state", State, ids=lambda state: state.label)
def test_a_state_is_reached_only_from_where_kafka_allows_it(state: State) -> None:
    assert {before for (before, _), after in NEXT.items() if after is state} == INTO[state]


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_every_event_in_every_state(state: State, event: Event) -> None:
    if may(state, event):
        assert advance(state, event) is NEXT[state, event]
    else:
        with pytest.raises(IllegalTransactionTransition):
            advance(state, event)


def test_no_outcome_can_be_taken_back() -> None:
    assert {after for (before, _), after in NEXT.items() if before is State.PREPARE_COMMIT} == {State.COMPLETE_COMMIT}
    assert {after for (before, _), after in NEXT.items() if before is State.PREPARE_ABORT} == {State.COMPLETE_ABORT}


def test_labels_are_those_of_the_protocol() -> None:
    assert [state.label for state in State] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]

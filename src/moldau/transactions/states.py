"""The life of a transactional id, as a table.

    Empty --PARTITIONS_ADDED--> Ongoing --COMMITTED--> PrepareCommit --MARKED--> CompleteCommit
      ^                           |  |                                             |
      |                           |  +--ABORTED------> PrepareAbort ---MARKED--> CompleteAbort
      |                           +--FENCED--> PrepareEpochFence --ABORTED--^      |
      +------------------------------INITIALISED-----------------------------------+

A completed transaction is also where the next one begins. A client of the second protocol that does not know whether
it ever began one aborts to be sure, so that is allowed from everywhere. Two states are never logged: PrepareEpochFence
is left within the decision that enters it, and an id that is Dead has a tombstone instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType


class State(Enum):
    """The numbers are those of the log; names are what ListTransactions and DescribeTransactions show."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        return LABELS[self]


class Event(Enum):
    INITIALISED = "a producer got an epoch"
    PARTITIONS_ADDED = "the transaction writes to partitions"
    COMMITTED = "the producer asked for a commit"
    ABORTED = "the producer, or its time-out, asked for an abort"
    FENCED = "the epoch rises over a transaction that is open"
    MARKED = "every partition has its marker"
    EXPIRED = "nobody used the id for long"


NEXT: Mapping[tuple[State, Event], State] = MappingProxyType(
    {
        (State.EMPTY, Event.INITIALISED): State.EMPTY,
        (State.COMPLETE_COMMIT, Event.INITIALISED): State.EMPTY,
        (State.COMPLETE_ABORT, Event.INITIALISED): State.EMPTY,
        (State.EMPTY, Event.PARTITIONS_ADDED): State.ONGOING,
        (State.ONGOING, Event.PARTITIONS_ADDED): State.ONGOING,
        (State.COMPLETE_COMMIT, Event.PARTITIONS_ADDED): State.ONGOING,
        (State.COMPLETE_ABORT, Event.PARTITIONS_ADDED): State.ONGOING,
        (State.ONGOING, Event.COMMITTED): State.PREPARE_COMMIT,
        (State.ONGOING, Event.ABORTED): State.PREPARE_ABORT,
        (State.EMPTY, Event.ABORTED): State.PREPARE_ABORT,
        (State.COMPLETE_COMMIT, Event.ABORTED): State.PREPARE_ABORT,
        (State.COMPLETE_ABORT, Event.ABORTED): State.PREPARE_ABORT,
        (State.ONGOING, Event.FENCED): State.PREPARE_EPOCH_FENCE,
        (State.PREPARE_EPOCH_FENCE, Event.ABORTED): State.PREPARE_ABORT,
        (State.PREPARE_COMMIT, Event.MARKED): State.COMPLETE_COMMIT,
        (State.PREPARE_ABORT, Event.MARKED): State.COMPLETE_ABORT,
        (State.EMPTY, Event.EXPIRED): State.DEAD,
        (State.COMPLETE_COMMIT, Event.EXPIRED): State.DEAD,
        (State.COMPLETE_ABORT, Event.EXPIRED): State.DEAD,
    }
)

LABELS: Mapping[State, str] = MappingProxyType(
    {state: "".join(word.capitalize() for word in state.name.split("_")) for state in State}
)

# The outcome is in the log and the markers are under way: whoever asks for something else must come again.
PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})


class IllegalTransactionTransition(Exception):
    """A mistake of ours: no request can ask for it."""


def advance(state: State, event: Event) -> State:
    try:
        return NEXT[state, event]
    except KeyError:
        raise IllegalTransactionTransition(f"{state.label} does not go on when {event.value}") from None


def may(state: State, event: Event) -> bool:
    return (state, event) in NEXT

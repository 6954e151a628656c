"""The judges of the rebalance scenarios must find what they are there to find."""

from __future__ import annotations

from typing import Any

from tests.rebalance.ownership import Event, conflicts, owned, repeated, unread

P = ("t", 0)


def told(member: str, *events: tuple[int, str, Any]) -> list[Event]:
    names = {"read": "spans", "committed": "offsets"}
    return [Event(at_us, member, kind, {names.get(kind, "partitions"): content}) for at_us, kind, content in events]


def test_a_hand_over_is_no_conflict_and_two_owners_are() -> None:
    giver = told("a", (10, "assigned", [P]), (20, "revoked", [P]))
    assert not conflicts([giver, told("b", (21, "assigned", [P]))])
    (found,) = conflicts([giver, told("b", (19, "assigned", [P]))])
    assert (found[0], found[1].member, found[2].member) == (P, "a", "b")


def test_a_member_that_ended_owns_nothing_and_one_that_did_not_owns_it_still() -> None:
    dead = told("a", (10, "assigned", [P]), (20, "ended", []))
    assert (owned(dead), owned(dead[:1])) == (frozenset(), frozenset({P}))
    assert not conflicts([dead, told("b", (21, "assigned", [P]))])
    assert conflicts([dead[:1], told("b", (21, "assigned", [P]))])


def test_a_partition_may_come_back_to_its_owner() -> None:
    history = told("a", (1, "assigned", [P]), (2, "lost", [P]), (5, "assigned", [P]))
    assert not conflicts([history, told("b", (3, "assigned", [P]), (4, "revoked", [P]))])


def test_a_record_that_nobody_read_is_found() -> None:
    first, second = told("a", (1, "read", [[*P, 0, 3]])), told("b", (2, "read", [[*P, 5, 6]]))
    assert unread({P: 8}, [first, second]) == {P: [4, 7]}
    assert unread({P: 4}, [first]) == {}
    assert unread({("u", 1): 1}, [first]) == {("u", 1): [0]}


def test_what_was_committed_may_not_be_read_again() -> None:
    saved = told("a", (1, "read", [[*P, 0, 3]]), (2, "committed", [[*P, 4]]))
    unsaved = told("a", (1, "read", [[*P, 0, 3]]), (2, "ended", []))
    again, after = told("b", (9, "read", [[*P, 3, 5]])), told("b", (9, "read", [[*P, 4, 5]]))
    assert repeated([saved, again], committed_only=True)
    assert not repeated([saved, after], committed_only=False)
    assert not repeated([unsaved, again], committed_only=True)
    assert repeated([unsaved, again], committed_only=False)
    lost = told("a", (1, "read", [[*P, 0, 3]]), (2, "lost", [P]))
    assert not repeated([lost, again], committed_only=False)


def test_a_commit_is_of_all_that_was_read_since_the_last_one() -> None:
    history = told("a", (1, "read", [[*P, 0, 1]]), (2, "read", [[*P, 2, 3]]), (3, "committed", [[*P, 4]]))
    assert repeated([history, told("b", (9, "read", [[*P, 0, 0]]))], committed_only=True)
    history = told("a", (1, "read", [[*P, 0, 1]]), (2, "failed", []), (3, "committed", [[*P, 4]]))
    assert not repeated([history, told("b", (9, "read", [[*P, 0, 0]]))], committed_only=True)

from __future__ import annotations

from typing import Any

import pytest

from moldau.core.errors import ApiError, ErrorCode
from moldau.groups.consumer.members import MemberState, Progress
from moldau.groups.consumer.reconciliation import Goal, reconcile

T, U = b"t" * 16, b"u" * 16


def goal(*partitions: int, taken: set[int] | None = None, **values: Any) -> Goal:
    fields: dict[str, Any] = {
        "target_epoch": 8,
        "target": {T: frozenset(partitions)},
        "subscribed": {T},
        "is_resubscribed": False,
        "owned": None,
        "is_taken": lambda _, partition: partition in (taken or set()),
    }
    return Goal(**{**fields, **values})


def stable(*partitions: int, epoch: int = 7) -> Progress:
    return Progress(epoch, epoch, MemberState.STABLE, {T: dict.fromkeys(partitions, epoch)} if partitions else {})


def test_a_member_that_is_there_stays_as_it_is() -> None:
    progress = stable(1, 2, epoch=8)
    assert reconcile(progress, goal(1, 2)) is progress


def test_what_is_free_is_had_at_once_with_the_epoch_it_came_in() -> None:
    assert reconcile(stable(1), goal(1, 2)) == Progress(8, 7, MemberState.STABLE, {T: {1: 7, 2: 8}})


def test_what_others_have_is_waited_for_and_the_rest_is_had() -> None:
    assert reconcile(stable(1), goal(1, 2, 3, taken={2})) == Progress(8, 7, MemberState.UNRELEASED, {T: {1: 7, 3: 8}})


def test_nothing_is_given_to_a_member_that_must_give_something_up_first() -> None:
    assert reconcile(stable(1, 2), goal(2, 3)) == Progress(7, 7, MemberState.UNREVOKED, {T: {2: 7}}, {T: {1: 7}})


@pytest.mark.parametrize("owned", [None, {T: frozenset({1})}, {T: frozenset({1, 2})}])
def test_a_member_that_has_it_still_waits(owned: Any) -> None:
    unrevoked = Progress(7, 7, MemberState.UNREVOKED, {T: {2: 7}}, {T: {1: 7}})
    assert reconcile(unrevoked, goal(2, 3, owned=owned)) is unrevoked


@pytest.mark.parametrize("owned", [{}, {T: frozenset({2})}, {U: frozenset({1})}])
def test_a_member_that_gave_it_up_goes_on(owned: Any) -> None:
    unrevoked = Progress(7, 7, MemberState.UNREVOKED, {T: {2: 7}}, {T: {1: 7}})
    assert reconcile(unrevoked, goal(2, 3, owned=owned)) == Progress(8, 7, MemberState.STABLE, {T: {2: 7, 3: 8}})


def test_what_the_client_never_took_need_not_be_given_up() -> None:
    assert reconcile(stable(1, 2), goal(2, 3, owned={T: frozenset({2})})) == Progress(
        8, 7, MemberState.STABLE, {T: {2: 7, 3: 8}}
    )


def test_a_member_that_waits_looks_again_with_every_heartbeat() -> None:
    waiting = Progress(8, 7, MemberState.UNRELEASED, {T: {1: 7}})
    assert reconcile(waiting, goal(1, 2, taken={2})) == Progress(8, 8, MemberState.UNRELEASED, {T: {1: 7}})
    assert reconcile(waiting, goal(1, 2)) == Progress(8, 8, MemberState.STABLE, {T: {1: 7, 2: 8}})


def test_a_target_that_changes_on_the_way_counts_at_once() -> None:
    waiting = Progress(8, 7, MemberState.UNRELEASED, {T: {1: 7}})
    assert reconcile(waiting, goal(2, target_epoch=9)) == Progress(8, 8, MemberState.UNREVOKED, {}, {T: {1: 7}})


def test_an_old_target_gives_nothing_of_a_topic_that_is_not_wanted_any_more() -> None:
    assert reconcile(stable(), goal(1, 2, subscribed=set())) == Progress(8, 7, MemberState.STABLE, {})


def test_a_topic_that_is_not_wanted_any_more_is_taken_before_the_next_target_is_there() -> None:
    progress = stable(1, epoch=8)
    assert reconcile(progress, goal(1, subscribed={U}, is_resubscribed=True)) == Progress(
        8, 8, MemberState.UNREVOKED, {}, {T: {1: 8}}
    )
    assert reconcile(progress, goal(1, subscribed={U}, is_resubscribed=True, owned={})) == Progress(
        8, 8, MemberState.STABLE, {}
    )
    assert reconcile(progress, goal(1, is_resubscribed=True)) is progress


def test_a_state_of_another_release_is_only_for_who_begins_anew() -> None:
    unknown = Progress(7, 6, MemberState.UNKNOWN, {T: {1: 7}})
    with pytest.raises(ApiError) as refused:
        reconcile(unknown, goal(1))
    assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert reconcile(unknown, goal(1, owned={})).state is MemberState.STABLE

"""An answer that comes later: told once, and taken back by whoever stops waiting."""

from __future__ import annotations

from moldau.broker.requests.delayed_response import DelayedResponse


def test_whoever_waits_is_told_at_once_and_once() -> None:
    later: DelayedResponse[int] = DelayedResponse()
    told: list[int | None] = []
    later.add_done_callback(lambda done: told.append(done.result()))
    later.set_result(7)
    later.set_result(8)
    later.cancel()
    assert (told, later.cancelled()) == ([7], False)


def test_a_cancelled_answer_is_not_waited_for_any_more() -> None:
    left: list[str] = []
    later: DelayedResponse[int] = DelayedResponse(lambda: left.append("left"))
    later.cancel()
    later.cancel()
    later.set_result(7)
    assert (left, later.cancelled()) == (["left"], True)


def test_one_that_follows_another_has_its_result_its_failure_or_its_end() -> None:
    leaders: list[DelayedResponse[int]] = [DelayedResponse() for _ in range(3)]
    followers: list[DelayedResponse[int]] = [DelayedResponse() for _ in range(3)]
    for leader, follower in zip(leaders, followers, strict=True):
        follower.follow(leader)
    leaders[0].set_result(7)
    leaders[1].set_exception(ValueError("planted"))
    leaders[2].cancel()
    assert followers[0].result() == 7
    assert isinstance(followers[1].exception(), ValueError)
    assert followers[2].cancelled()

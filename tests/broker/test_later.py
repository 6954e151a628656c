"""An answer that comes later: told once, and taken back by whoever stops waiting."""

from __future__ import annotations

from moldau.broker.later import Later


def test_whoever_waits_is_told_at_once_and_once() -> None:
    later: Later[int] = Later()
    told: list[int | None] = []
    later.add_done_callback(lambda done: told.append(done.result()))
    later.set_result(7)
    later.set_result(8)
    later.cancel()
    assert (told, later.cancelled()) == ([7], False)


def test_a_cancelled_answer_is_not_waited_for_any_more() -> None:
    left: list[str] = []
    later: Later[int] = Later(lambda: left.append("left"))
    later.cancel()
    later.cancel()
    later.set_result(7)
    assert (left, later.cancelled()) == (["left"], True)

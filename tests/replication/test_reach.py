"""Which other brokers are out of reach, by the questions that they leave unanswered."""

from __future__ import annotations

from moldau.replication.reach import Reach

TIMEOUT_S = 9.0


def looked_at(reach: Reach, *, from_s: int, to_s: int) -> dict[int, tuple[int, ...]]:
    """What was out of reach, second by second."""
    return {now_s: reach.out_of_reach(now_s) for now_s in range(from_s, to_s + 1)}


def test_a_broker_is_out_of_reach_a_session_after_its_first_unanswered_question() -> None:
    reach = Reach(TIMEOUT_S)
    reach.asked(2, 1.0)
    reach.asked(2, 5.0)
    seen = looked_at(reach, from_s=1, to_s=11)
    assert [now_s for now_s, silent in seen.items() if silent == (2,)] == [10, 11]


def test_an_answer_brings_it_back() -> None:
    reach = Reach(TIMEOUT_S)
    reach.asked(2, 0.0)
    reach.asked(3, 0.0)
    assert looked_at(reach, from_s=0, to_s=9)[9] == (2, 3)
    reach.heard(2)
    reach.asked(2, 10.0)
    assert looked_at(reach, from_s=10, to_s=18)[18] == (3,)


def test_a_broker_that_nobody_asked_may_be_silent() -> None:
    reach = Reach(TIMEOUT_S)
    reach.heard(2)
    assert set(looked_at(reach, from_s=0, to_s=30).values()) == {()}


def test_who_was_stopped_meanwhile_has_not_listened() -> None:
    reach = Reach(TIMEOUT_S)
    reach.asked(2, 0.0)
    assert looked_at(reach, from_s=0, to_s=3)[3] == ()
    assert reach.out_of_reach(40.0) == ()
    reach.asked(2, 40.0)
    assert looked_at(reach, from_s=41, to_s=49)[49] == (2,)

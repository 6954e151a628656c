from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinator.long_work import SLICE_S, LongWork
from moldau.coordinator.timers import STALE_MIN, Timers


class Handle:
    def __init__(self, at_s: float, call: Callable[[], None]) -> None:
        self.at_s = at_s
        self.call = call
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeLoop:
    """A loop whose time passes when the test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.handles: list[Handle] = []

    def time(self) -> float:
        return self.now_s

    def call_soon(self, call: Callable[[], None]) -> Handle:
        return self.call_at(self.now_s, call)

    def call_at(self, at_s: float, call: Callable[[], None]) -> Handle:
        self.handles.append(Handle(at_s, call))
        return self.handles[-1]

    def pass_time(self, s: float) -> None:
        end_s = self.now_s + s
        while due := [handle for handle in self.handles if not handle.is_cancelled and handle.at_s <= end_s]:
            first = min(due, key=lambda handle: handle.at_s)
            self.handles.remove(first)
            self.now_s = max(self.now_s, first.at_s)
            first.call()
        self.handles = [handle for handle in self.handles if not handle.is_cancelled]
        self.now_s = end_s


def timers_that(loop: FakeLoop, fire: Callable[[Hashable], None]) -> Timers:
    real = cast(asyncio.AbstractEventLoop, loop)
    return Timers(real, fire, LongWork(real))


def timers_on(loop: FakeLoop) -> tuple[Timers, list[tuple[float, Hashable]]]:
    fired: list[tuple[float, Hashable]] = []
    return timers_that(loop, lambda key: fired.append((loop.now_s, key))), fired


def test_heartbeats_leave_no_trace() -> None:
    loop = FakeLoop()
    timers, fired = timers_on(loop)
    for _ in range(1_000):
        timers.set("session", 10_000)
        loop.pass_time(1)
    assert (fired, len(timers), len(loop.handles)) == ([], 1, 1)
    loop.pass_time(10)
    assert [key for _, key in fired] == ["session"]


def test_cancelled_timers_do_not_wait_for_their_time() -> None:
    loop = FakeLoop()
    timers, fired = timers_on(loop)
    for number in range(100):
        timers.set(("kept", number), 3_600_000 + number)
    for number in range(20_000):
        timers.set(number, 86_400_000)
        timers.set(number, 1_800_000)
        timers.cancel(number)
    assert len(timers._heap) <= 2 * 100 + 2 * STALE_MIN
    assert len(timers._queued) <= 2 * 100 + 2 * STALE_MIN
    loop.pass_time(3_601)
    assert [key for _, key in fired] == [("kept", number) for number in range(100)]


def test_many_at_one_moment_leave_turns_of_the_loop_to_others() -> None:
    loop = FakeLoop()
    fired: list[Hashable] = []

    def fire(key: Hashable) -> None:
        fired.append(key)
        loop.now_s += SLICE_S / 10 + 1e-9

    timers = timers_that(loop, fire)
    for number in range(25):
        timers.set(number, 1_000)
    loop.now_s = 1.0
    seen = []
    while loop.handles:
        loop.handles.pop().call()
        seen.append(len(fired))
    assert seen == [0, 10, 10, 20, 20, 25], "the first turn is the clock's, and every other one everybody else's"
    assert fired == list(range(25))


def test_one_that_waits_for_its_turn_can_still_be_cancelled_or_moved() -> None:
    loop = FakeLoop()
    fired: list[Hashable] = []

    def fire(key: Hashable) -> None:
        fired.append(key)
        loop.now_s += SLICE_S

    timers = timers_that(loop, fire)
    for key in ("first", "cancelled", "moved"):
        timers.set(key, 1_000)
    loop.now_s = 1.0
    while not fired:
        loop.handles.pop(0).call()
    timers.cancel("cancelled")
    timers.set("moved", 5_000)
    loop.pass_time(1)
    assert fired == ["first"]
    loop.pass_time(5)
    assert fired == ["first", "moved"]


def test_after_clear_nothing_fires() -> None:
    loop = FakeLoop()
    timers, fired = timers_on(loop)
    timers.set("a", 10)
    timers.clear()
    loop.pass_time(1)
    assert fired == []


def test_a_timer_may_set_itself_again() -> None:
    loop = FakeLoop()
    fired: list[float] = []

    def again(key: Hashable) -> None:
        fired.append(loop.now_s)
        timers.set(key, 1_000)

    timers = timers_that(loop, again)
    timers.set("tick", 1_000)
    loop.pass_time(3.5)
    assert fired == [1.0, 2.0, 3.0]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("abc"), st.integers(0, 50)),
        st.tuples(st.just("cancel"), st.sampled_from("abc"), st.just(0)),
        st.tuples(st.just("pass"), st.just(""), st.integers(0, 30)),
    ),
    max_size=60,
)


@given(steps=STEPS)
def test_each_fires_once_at_its_last_deadline(steps: list[tuple[str, str, int]]) -> None:
    loop = FakeLoop()
    timers, fired = timers_on(loop)
    deadlines: dict[str, float] = {}
    expected: list[tuple[float, str]] = []
    for step, key, amount in [*steps, ("pass", "", 100)]:
        if step == "set":
            timers.set(key, amount * 1_000)
            deadlines[key] = loop.now_s + amount
        elif step == "cancel":
            timers.cancel(key)
            deadlines.pop(key, None)
        else:
            end_s = loop.now_s + amount
            expected += [(at_s, each) for each, at_s in deadlines.items() if at_s <= end_s]
            deadlines = {each: at_s for each, at_s in deadlines.items() if at_s > end_s}
            loop.pass_time(amount)
    assert sorted(cast(Any, fired)) == sorted(expected)

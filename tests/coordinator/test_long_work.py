from __future__ import annotations

import asyncio
import time

from moldau.coordinator.long_work import SLICE_S, LongWork
from tests.coordinator.loops import on_a_loop


@on_a_loop
async def test_what_was_asked_during_a_slice_is_answered_before_the_next_one() -> None:
    loop, long_work, order = asyncio.get_running_loop(), LongWork(), list[str]()

    def hold(name: str) -> None:
        order.append(name)
        time.sleep(2 * SLICE_S)

    def first_slice() -> None:
        hold("first slice")
        loop.call_soon(read)  # as a request that arrives now: it is read in the next turn, and answered at its end

    def read() -> None:
        loop.call_soon(order.append, "answer")

    long_work.call(first_slice)
    long_work.call(lambda: hold("second slice"))
    while len(order) < 3:  # noqa: ASYNC110 - the turns of the loop are what is looked at
        await asyncio.sleep(0)
    assert order == ["first slice", "answer", "second slice"]

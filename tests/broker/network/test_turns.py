"""Nobody waits long for one who asks for much: with many requests at once, or with long ones."""

from __future__ import annotations

import asyncio
import struct
import time
from asyncio import StreamReader, StreamWriter
from contextlib import AsyncExitStack

import pytest

from moldau.broker.api import Api, api
from moldau.broker.context import Context
from moldau.broker.network.turns import ANSWERS_HELD_S, SLICE_S, TURN_S, Turns
from moldau.wire.api import ApiKey
from moldau.wire.messages import HeartbeatRequest, ListGroupsRequest, ListGroupsResponse
from tests.broker.network.test_connection import WAIT_S_MAX, answer_to, client_of, healthy, listening, named

REQUESTS = 2_000


class Work:
    """ListGroups that takes a while, and counts."""

    def __init__(self, takes_s: float) -> None:
        self.takes_s = takes_s
        self.done = 0

    def api(self) -> Api:
        @api(ApiKey.LIST_GROUPS, ListGroupsRequest, versions=(0, 2))
        def long(_: ListGroupsRequest, __: Context) -> ListGroupsResponse:
            until = time.perf_counter() + self.takes_s
            while time.perf_counter() < until:
                pass
            self.done += 1
            return ListGroupsResponse()

        return long


async def read_all(reader: StreamReader, count: int) -> None:
    for correlation_id in range(count):
        assert (await answer_to(reader))[:4] == struct.pack(">i", correlation_id)


async def ask(client: tuple[StreamReader, StreamWriter], number: int) -> None:
    client[1].write(named(HeartbeatRequest(generation_id=number), 0, number))
    assert await answer_to(client[0]) == struct.pack(">ih", number, number)


@pytest.mark.parametrize("attackers", [1, 8])
@pytest.mark.parametrize("takes_s", [0.0001, 0.001, 0.01])
def test_one_request_passes_by_thousands_of_others(attackers: int, takes_s: float) -> None:
    count = min(REQUESTS, int(0.6 / takes_s / attackers))
    work = Work(takes_s)

    async def test() -> list[int]:
        async with listening(healthy, work.api()) as listener, AsyncExitStack() as stack:
            crowd = [await stack.enter_async_context(client_of(listener)) for _ in range(attackers)]
            other = await stack.enter_async_context(client_of(listener))
            await ask(other, 1)
            for _, writer in crowd:
                writer.write(b"".join(named(ListGroupsRequest(), 0, number) for number in range(count)))
            reading = [asyncio.create_task(read_all(reader, count)) for reader, _ in crowd]
            while not work.done:  # noqa: ASYNC110 - the broker shares this loop
                await asyncio.sleep(0)
            meanwhile = []
            for number in range(20):
                before = work.done
                await ask(other, number)
                meanwhile.append(work.done - before)
            await asyncio.gather(*reading)
            return meanwhile

    meanwhile = asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))
    assert work.done == count * attackers
    # Its request is read in one turn of the loop and its answer in another; the client's own steps take turns as well.
    turns = 6
    allowed = turns * max(2, TURN_S / takes_s) + attackers
    assert max(meanwhile) <= allowed, meanwhile


def test_a_queue_gives_everybody_a_turn_and_the_loop_its_own() -> None:
    async def test() -> tuple[list[int], int]:
        turns = Turns(asyncio.get_running_loop())
        order: list[int] = []
        others = 0
        left = dict.fromkeys(range(4), 3)

        def go_on(who: int) -> None:
            time.sleep(SLICE_S)
            order.append(who)
            left[who] -= 1
            if left[who]:
                turns.queue(lambda: go_on(who))

        for who in left:
            turns.queue(lambda who=who: go_on(who))  # type: ignore[misc]
        while any(left.values()):
            await asyncio.sleep(0)
            others += 1
        return order, others

    order, others = asyncio.run(test())
    assert order == [0, 1, 2, 3] * 3
    assert others >= len(order) * SLICE_S / TURN_S, "the loop has a turn of its own after each of the queue's"


def test_a_failure_in_the_queue_does_not_stop_it() -> None:
    async def test() -> list[object]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        turns = Turns(loop)
        seen: list[object] = []
        turns.queue(lambda: seen.append(1 / 0))
        turns.queue(lambda: seen.append("still here"))
        while not seen:  # noqa: ASYNC110 - nothing else would wake us
            await asyncio.sleep(0)
        return seen

    assert asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX)) == ["still here"]


def test_answers_wait_for_everybody_who_can_be_read_from() -> None:
    async def test() -> list[str]:
        loop = asyncio.get_running_loop()
        turns = Turns(loop)
        seen: list[str] = []

        def turn(who: str) -> None:
            seen.append(f"{who} answered")
            turns.send_soon(lambda: seen.append(f"{who} sent"), 0.0)

        for who in "ab":
            loop.call_soon(turn, who)
        while len(seen) < 4:  # noqa: ASYNC110 - nothing else would wake us
            await asyncio.sleep(0)
        return seen

    seen = asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))
    assert seen == ["a answered", "b answered", "a sent", "b sent"]


def test_answers_do_not_wait_for_a_crowd() -> None:
    async def test() -> list[str]:
        turns = Turns(asyncio.get_running_loop())
        seen: list[str] = []
        for who, now_s in (("a", 10.0), ("b", 10.0 + ANSWERS_HELD_S / 2), ("c", 10.0 + ANSWERS_HELD_S), ("d", 10.1)):
            turns.send_soon(lambda who=who: seen.append(who), now_s)  # type: ignore[misc]
        at_once = list(seen)
        while len(seen) < 4:  # noqa: ASYNC110 - nothing else would wake us
            await asyncio.sleep(0)
        assert seen == ["a", "b", "c", "d"]
        return at_once

    assert asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX)) == ["a", "b", "c"]


def test_one_answer_that_can_not_be_sent_does_not_stop_the_others() -> None:
    async def test() -> list[object]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        turns = Turns(loop)
        seen: list[object] = []
        turns.send_soon(lambda: seen.append(1 / 0), 0.0)
        turns.send_soon(lambda: seen.append("still here"), 0.0)
        while not seen:  # noqa: ASYNC110 - nothing else would wake us
            await asyncio.sleep(0)
        return seen

    assert asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX)) == ["still here"]

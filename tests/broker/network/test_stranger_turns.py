"""Strangers have their share of the loop, whatever they send, and those who are known go before them."""

from __future__ import annotations

import asyncio
import gc
import itertools
import socket
import struct
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from moldau.broker.network.secured.connection import SecuredConnection
from moldau.broker.network.secured.stranger_turns import ASKED_AT_ONCE, TURN_S, TURN_S_MAX, StrangerTurns
from moldau.broker.network.secured.strangers import Strangers
from tests.broker.network.test_strangers import Scene, played
from tests.security.tls.world import World, make_world

WAIT_S_MAX = 20.0
CROWD = 50
HALF = struct.pack(">i", 524_288) + bytes(10_000)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("tls"))


def run(play: Callable[[StrangerTurns], Coroutine[Any, Any, None]]) -> None:
    async def timed() -> None:
        async with asyncio.timeout(WAIT_S_MAX):
            await play(StrangerTurns(asyncio.get_running_loop()))

    asyncio.run(timed())


@contextmanager
def pairs(count: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    made = [socket.socketpair() for _ in range(count)]
    try:
        yield made
    finally:
        for pair in made:
            for each in pair:
                each.close()


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - what it waits for is the loop
        await asyncio.sleep(0)


def test_one_turn_of_the_loop_has_few_of_many_who_can_be_read() -> None:
    told: list[int] = []

    def read(ours: socket.socket, number: int) -> None:
        ours.recv(1)
        told.append(number)

    async def play() -> None:
        seconds = itertools.count(0.0, TURN_S / 2.5)  # a look at the clock is two fifths of a turn
        turns = StrangerTurns(asyncio.get_running_loop(), lambda: next(seconds), lambda: 0.0)
        with pairs(CROWD) as crowd:
            for number, (ours, theirs) in enumerate(crowd):
                turns.add_reader(ours.fileno(), read, ours, number)
                theirs.send(b"x")
            while len(told) < CROWD:
                before = len(told)
                await asyncio.sleep(0)
                assert len(told) - before <= ASKED_AT_ONCE
            for ours, _ in crowd:
                turns.remove_reader(ours.fileno())

    asyncio.run(asyncio.wait_for(play(), WAIT_S_MAX))
    assert sorted(told) == list(range(CROWD))


@pytest.mark.parametrize(
    ("busy_s", "idle_s", "served"),
    [(0.0, 0.0, 10), (TURN_S_MAX, 0.0, 10), (0.002, 0.0, 40), (1.0, 0.0, 50), (0.0, 1.0, 10), (0.002, 1.0, 40)],
)
def test_a_busy_loop_leaves_strangers_their_share(busy_s: float, idle_s: float, served: int) -> None:
    now_s = worked_s = 0.0
    done: list[int] = []

    def work(number: int) -> None:
        nonlocal now_s
        now_s += TURN_S / 10
        done.append(number)

    async def play() -> None:
        nonlocal now_s, worked_s
        turns = StrangerTurns(asyncio.get_running_loop(), lambda: now_s, lambda: worked_s)
        for number in range(2 * CROWD):
            turns.call_soon(work, number)
        now_s, worked_s = busy_s + idle_s, busy_s
        await asyncio.sleep(0)
        assert len(done) in {served, served + 1}  # the clock's sum may be a hair below

    asyncio.run(play())


def test_answers_of_the_known_go_before_strangers() -> None:
    order: list[str] = []

    async def play(turns: StrangerTurns) -> None:
        turns.come_after(lambda: order.append("known"))
        turns.queue(lambda: order.append("stranger"))
        await until(lambda: len(order) == 2)

    run(play)
    assert order == ["known", "stranger"]


def test_who_is_always_readable_does_not_keep_those_who_wait_from_their_turn() -> None:
    served: list[str] = []

    async def play(turns: StrangerTurns) -> None:
        with pairs(1) as [(ours, theirs)]:
            theirs.send(b"never read")
            turns.add_reader(ours.fileno(), served.append, "readable")
            await until(lambda: len(served) > CROWD)
            turns.queue(lambda: served.append("waited"))
            await until(lambda: "waited" in served)
            count = len(served)
            await until(lambda: len(served) > count)
            turns.remove_reader(ours.fileno())

    run(play)


def test_who_always_has_more_to_do_does_not_keep_others_from_being_read() -> None:
    read: list[bytes] = []

    async def play(turns: StrangerTurns) -> None:
        def again() -> None:
            if not read:
                turns.queue(again)

        with pairs(1) as [(ours, theirs)]:
            turns.queue(again)
            turns.add_reader(ours.fileno(), lambda: read.append(ours.recv(1)))
            theirs.send(b"x")
            await until(lambda: bool(read))
            turns.remove_reader(ours.fileno())

    run(play)
    assert read == [b"x"]


def test_one_failure_does_not_end_the_turns_of_others() -> None:
    done: list[int] = []
    failures: list[BaseException] = []

    async def play(turns: StrangerTurns) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: failures.append(told["exception"]))
        turns.queue(lambda: int("none"))
        turns.queue(lambda: done.append(1))
        await until(lambda: bool(done))

    run(play)
    assert [type(each) for each in failures] == [ValueError]


def test_a_reset_is_told_of_again_until_it_is_read() -> None:
    told: list[str] = []

    async def play(turns: StrangerTurns) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            theirs = socket.create_connection(server.getsockname())
            ours, _ = server.accept()
            with ours:
                turns.add_reader(ours.fileno(), told.append, "reset")
                theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                theirs.close()
                await until(lambda: len(told) > 2)
                turns.remove_reader(ours.fileno())

    run(play)


def test_reading_and_writing_are_watched_apart() -> None:
    told: list[str] = []

    async def play(turns: StrangerTurns) -> None:
        with pairs(1) as [(ours, theirs)]:
            descriptor = ours.fileno()
            turns.add_reader(descriptor, told.append, "read")
            turns.add_writer(descriptor, told.append, "written")
            await until(lambda: bool(told))
            assert set(told) == {"written"}
            turns.remove_writer(descriptor)
            told.clear()
            theirs.send(b"x")
            await until(lambda: bool(told))
            turns.remove_reader(descriptor)
            turns.remove_reader(descriptor)
            told.clear()
            for _ in range(3):  # nobody is watched: whatever came would be told of in these turns
                await asyncio.sleep(0)

    run(play)
    assert told == []


def test_strangers_that_are_gone_leave_nothing_to_collect(world: World) -> None:
    """A flood of them would be a flood of collections, each of which stops the loop."""

    async def play(scene: Scene) -> None:
        gc.collect()
        gc.disable()
        try:
            for _ in range(10):
                _, writer = await scene.connected()
                writer.write(HALF)
                await writer.drain()
            await until(lambda: len(scene.listener.guests) == 10)
            for writer in scene.writers:
                writer.transport.abort()
            await until(lambda: not scene.listener.guests)
            await asyncio.sleep(0)
            left = [each for each in gc.get_objects() if isinstance(each, SecuredConnection)]
            assert left == []
        finally:
            gc.enable()

    played(lambda: Scene(world, tls=False, logins=True, strangers=Strangers()), play)

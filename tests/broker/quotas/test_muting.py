"""A throttled client is answered at once, and then not looked at until its time is over (KIP-219)."""

from __future__ import annotations

import asyncio
import struct
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.broker.api import Api, api
from moldau.broker.context import Context, Services
from moldau.broker.network.connection_quotas import ConnectionQuotas
from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.listener import ConnectionLimits, Listener
from moldau.broker.quotas.clients import ClientQuotas
from moldau.broker.quotas.rates import Windows
from moldau.broker.quotas.throttling import Stopwatch, Throttling
from moldau.broker.requests.answers import Encoded, Relayed, in_thread, in_turn
from moldau.broker.requests.dispatch import Dispatch
from moldau.controller.settings.quotas import quota_entity
from moldau.coordinator.long_work import LongWork
from moldau.core.clock import monotonic_ms
from moldau.wire.api import ApiKey
from moldau.wire.codec import encode, is_flexible
from moldau.wire.messages import HeartbeatRequest, HeartbeatResponse, ProduceRequest, ProduceResponse
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.schema import Message
from tests.hostile.attacker import framed

WAIT_S_MAX = 20.0
HEARTBEAT_VERSION = 3  # with a throttle time
PAUSE_MS = 300
LONG_PAUSE_MS = 3_600_000  # nobody waits for its end
CLIENT_ID = b"app"


@api(ApiKey.HEARTBEAT, HeartbeatRequest, versions=(0, 3))
def at_once(_: HeartbeatRequest, __: Context) -> HeartbeatResponse:
    return HeartbeatResponse()


@api(ApiKey.HEARTBEAT, HeartbeatRequest, versions=(0, 3))
async def later(_: HeartbeatRequest, __: Context) -> HeartbeatResponse:
    await asyncio.sleep(0)
    return HeartbeatResponse()


@api(ApiKey.HEARTBEAT, HeartbeatRequest, versions=(0, 3))
async def in_a_thread(_: HeartbeatRequest, context: Context) -> Encoded[HeartbeatResponse]:
    return Encoded(HeartbeatResponse(), context.version)


@api(ApiKey.HEARTBEAT, HeartbeatRequest, versions=(0, 3))
async def elsewhere(_: HeartbeatRequest, context: Context) -> Relayed:
    return Relayed(struct.pack(">iih", context.header.correlation_id, 0, 0))


BUSY_S = 0.1


@api(ApiKey.HEARTBEAT, HeartbeatRequest, versions=(0, 3))
def busy_in_a_task(request: HeartbeatRequest, context: Context) -> asyncio.Future[Any]:
    return context.start(work_of(request, context))


async def work_of(_: HeartbeatRequest, __: Context) -> HeartbeatResponse:
    until_s = time.perf_counter() + BUSY_S
    while time.perf_counter() < until_s:
        pass
    return HeartbeatResponse()


@api(ApiKey.HEARTBEAT, HeartbeatRequest, versions=(0, 3))
def busy_item_by_item(request: HeartbeatRequest, context: Context) -> Any:
    return in_turn(range(100), spend, lambda _: HeartbeatResponse(), context)


def spend(_: int) -> int:
    until_s = time.perf_counter() + BUSY_S / 100
    while time.perf_counter() < until_s:
        pass
    return 0


@api(ApiKey.HEARTBEAT, HeartbeatRequest, versions=(0, 3))
async def busy_in_a_thread(_: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    await in_thread(spend_all, context)
    return HeartbeatResponse()


@api(ApiKey.HEARTBEAT, HeartbeatRequest, versions=(0, 3))
async def busy_in_a_thread_for_nothing(_: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    with pytest.raises(ArithmeticError):
        await in_thread(fail_after_all, context)
    return HeartbeatResponse()


def spend_all() -> None:
    until_s = time.thread_time() + BUSY_S
    while time.thread_time() < until_s:
        pass


def fail_after_all() -> None:
    spend_all()
    raise ArithmeticError


@api(ApiKey.PRODUCE, ProduceRequest, versions=(3, 13))
def without_answer(_: ProduceRequest, __: Context) -> None:
    return None


@api(ApiKey.PRODUCE, ProduceRequest, versions=(3, 13))
def stored(_: ProduceRequest, __: Context) -> ProduceResponse:
    return ProduceResponse()


@api(ApiKey.PRODUCE, ProduceRequest, versions=(3, 13))
async def stored_later(_: ProduceRequest, __: Context) -> ProduceResponse:
    await asyncio.sleep(PAUSE_MS / 1_000)
    return ProduceResponse()


def frame_of(request: Message, version: int, correlation_id: int) -> bytes:
    start = struct.pack(">hhih", request.API_KEY, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID
    tags = b"\0" if is_flexible(type(request), version) else b""
    return framed(start + tags + encode(request, version))


def heartbeats(*correlation_ids: int) -> bytes:
    return b"".join(frame_of(HeartbeatRequest(), HEARTBEAT_VERSION, each) for each in correlation_ids)


@asynccontextmanager
async def limited(
    *table: Api, pause_ms: int = PAUSE_MS, budget: FrameBudget | None = None, **values: float
) -> AsyncIterator[tuple[Listener, StreamReader, StreamWriter]]:
    """A client that pauses this long after each request, unless it has other limits."""
    clients = ClientQuotas(monotonic_ms, windows=Windows(2, pause_ms), mutation_windows=Windows())
    clients.limit({quota_entity([("client-id", "app")]): values or {"request_percentage": 1e-9}})
    services = SimpleNamespace(long_work=LongWork(), computing=None)  # the handlers here need no other
    dispatch = Dispatch(table, cast("Services", services))
    dispatch.limit(Throttling(clients))
    listener = Listener("PLAINTEXT")
    listener.bind("127.0.0.1", 0)
    listener.start(dispatch, ConnectionLimits(), budget or FrameBudget(), ConnectionQuotas())
    reader, writer = await asyncio.open_connection(listener.host, listener.port)
    try:
        yield listener, reader, writer
    finally:
        writer.transport.abort()
        listener.close()


async def throttle_ms_of(reader: StreamReader, correlation_id: int) -> int:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    found, throttle_ms = struct.unpack_from(">ii", await reader.readexactly(size))
    assert found == correlation_id
    return int(throttle_ms)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


async def until_empty(listener: Listener) -> None:
    while listener._connections:  # noqa: ASYNC110 - there is nobody who could tell
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("row", [at_once, later, in_a_thread, elsewhere], ids=lambda row: row.call.__name__)
def test_an_answer_tells_of_the_pause_and_the_next_comes_after_it(row: Api) -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        async with limited(row) as (_, reader, writer):
            began_s = loop.time()
            writer.write(heartbeats(1, 2))
            assert await throttle_ms_of(reader, 1) == PAUSE_MS
            first_s = loop.time()
            assert await throttle_ms_of(reader, 2) == PAUSE_MS
            assert loop.time() - first_s > 0.9 * PAUSE_MS / 1_000 - (first_s - began_s)

    run(test)


def test_a_client_that_gets_no_answers_pauses_too() -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        async with limited(without_answer, at_once, producer_byte_rate=10.0) as (_, reader, writer):
            began_s = loop.time()
            writer.write(frame_of(ProduceRequest(), 3, 1) + heartbeats(2))
            assert await throttle_ms_of(reader, 2) == 0
            assert loop.time() - began_s > 0.5

    run(test)


def test_a_client_that_goes_away_during_its_pause_is_forgotten_at_once() -> None:
    async def test() -> None:
        async with limited(at_once, pause_ms=LONG_PAUSE_MS) as (listener, reader, writer):
            writer.write(heartbeats(1))
            assert await throttle_ms_of(reader, 1) == LONG_PAUSE_MS
            writer.close()
            await until_empty(listener)

    run(test)


@pytest.mark.parametrize("row", [at_once, later], ids=["at_once", "later"])
def test_a_listener_that_finishes_waits_for_no_pause(row: Api) -> None:
    async def test() -> None:
        async with limited(row, pause_ms=LONG_PAUSE_MS) as (listener, reader, writer):
            writer.write(heartbeats(1, 2))
            assert await throttle_ms_of(reader, 1) == LONG_PAUSE_MS
            finishing = asyncio.ensure_future(listener.finish())
            assert await reader.read() == b"", "what came during the pause is not answered"
            writer.close()
            await finishing
            assert not listener._connections

    run(test)


def test_a_listener_that_closes_during_a_pause_leaves_nothing_behind() -> None:
    async def test() -> None:
        async with limited(at_once, pause_ms=LONG_PAUSE_MS) as (listener, reader, writer):
            writer.write(heartbeats(1))
            assert await throttle_ms_of(reader, 1) == LONG_PAUSE_MS
            listener.close()
            assert await reader.read() == b""

    run(test)


@pytest.mark.parametrize("first", ["a request", "one that waits", "a part of the large one"])
def test_a_client_that_pauses_takes_no_memory_that_others_share(first: str) -> None:
    """A large frame behind what it pauses for stays in the socket, and is answered when the time is over."""
    large = frame_of(ProduceRequest(topic_data=[large_topic()]), 9, 2)
    rows = (stored_later, at_once) if first == "one that waits" else (stored, at_once)

    async def test() -> None:
        loop, budget = asyncio.get_running_loop(), FrameBudget()
        async with limited(*rows, budget=budget) as (listener, reader, writer):
            begun = frame_of(ProduceRequest(), 9, 1) if first == "one that waits" else heartbeats(1)
            writer.write(begun + (large[:300_000] if first == "a part of the large one" else b""))
            if first == "one that waits":
                writer.write(large)
            else:
                assert await throttle_ms_of(reader, 1) == PAUSE_MS
                writer.write(large[300_000 if first == "a part of the large one" else 0 :])
            until_s = loop.time() + 0.8 * PAUSE_MS / 1_000
            while loop.time() < until_s:
                assert budget._held_bytes == 0
                assert all(connection.large_frames == 0 for connection in listener._connections)
                await asyncio.sleep(0.01)
            if first == "one that waits":
                await answer_to(reader, 1)
            await answer_to(reader, 2)

    run(test)


def large_topic() -> TopicProduceData:
    return TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=bytes(3_000_000))])


async def answer_to(reader: StreamReader, correlation_id: int) -> None:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    assert struct.unpack_from(">i", await reader.readexactly(size))[0] == correlation_id


BUSY = (busy_in_a_task, busy_item_by_item, busy_in_a_thread, busy_in_a_thread_for_nothing)


@pytest.mark.parametrize("row", BUSY, ids=lambda row: row.call.__name__)
def test_work_that_a_handler_starts_counts_as_its_own(row: Api) -> None:
    """The largest requests are answered by such: uncounted, they would be free."""

    async def test() -> None:
        async with limited(row, request_percentage=10.0) as (_, reader, writer):
            writer.write(heartbeats(1))
            assert await throttle_ms_of(reader, 1) > 0

    run(test)


def test_only_the_time_in_which_a_request_runs_is_counted() -> None:
    class Failure(Exception):
        pass

    async def work(fails: bool) -> str:
        await asyncio.sleep(0.2)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.1)
        if fails:
            raise Failure
        return "done"

    async def test() -> None:
        stopwatch = Stopwatch()
        assert await stopwatch.timed(work(fails=False)) == "done"
        assert 0 < stopwatch.spent_ns < 100_000_000
        with pytest.raises(Failure):
            await stopwatch.timed(work(fails=True))
        cancelled = asyncio.ensure_future(stopwatch.timed(work(fails=False)))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    run(test)

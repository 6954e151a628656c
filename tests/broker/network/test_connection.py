"""Whatever is raised between a request and its answer ends that connection, with one line, and harms no other."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import struct
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from moldau.broker.api import Api, api
from moldau.broker.context import Context, Services
from moldau.broker.network.connection_quotas import ConnectionQuotas
from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.listener import ConnectionLimits, Listener
from moldau.broker.network.turns import ANSWERS_HELD_S, SLICE_S
from moldau.broker.requests.delayed_response import DelayedResponse
from moldau.broker.requests.dispatch import Dispatch
from moldau.core.errors import ProtocolViolation
from moldau.core.limits import REQUEST_ELEMENTS_MAX
from moldau.log.file_range import FileRange
from moldau.wire.api import ApiKey
from moldau.wire.codec import decoder, encode, encoder
from moldau.wire.messages import FetchRequest, FetchResponse, HeartbeatRequest, HeartbeatResponse, ListGroupsRequest
from moldau.wire.messages.fetch import FetchableTopicResponse, PartitionData
from moldau.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from moldau.wire.schema import Message
from tests.hostile.attacker import framed

WAIT_S_MAX = 20.0
NO_SERVICES = cast("Services", None)  # none of the handlers here needs one
CLIENT_ID = "a client\nof some name"
FAILURES: list[type[BaseException]] = [
    ValueError,
    KeyError,
    RecursionError,
    MemoryError,
    AssertionError,
    OSError,
    ConnectionResetError,
    TimeoutError,
    StopIteration,
    struct.error,
    UnicodeError,
    asyncio.CancelledError,
]


def named(request: Message, version: int, correlation_id: int) -> bytes:
    raw = CLIENT_ID.encode()
    start = struct.pack(">hhih", request.API_KEY, version, correlation_id, len(raw)) + raw
    return framed(start + encode(request, version))


@api(ApiKey.HEARTBEAT, HeartbeatRequest, versions=(0, 3))
def healthy(request: HeartbeatRequest, _: Context) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=request.generation_id % 1_000)


def planted(answer: Callable[[], Any]) -> Api:
    """ListGroups with a bug in it."""

    @api(ApiKey.LIST_GROUPS, ListGroupsRequest, versions=(0, 2))
    def buggy(_: ListGroupsRequest, __: Context) -> Any:
        return answer()

    return buggy


@asynccontextmanager
async def listening(*table: Api, idle_ms_max: int = 0) -> AsyncIterator[Listener]:
    listener = Listener("PLAINTEXT")
    listener.bind("127.0.0.1", 0)
    allowed = ConnectionLimits(idle_ms_max=idle_ms_max, send_buffer_bytes=1 << 16)
    listener.start(Dispatch(table, NO_SERVICES), allowed, FrameBudget(), ConnectionQuotas())
    try:
        yield listener
    finally:
        listener.close()


@asynccontextmanager
async def client_of(listener: Listener, *, window_bytes: int = 0) -> AsyncIterator[tuple[StreamReader, StreamWriter]]:
    sock = socket.socket()
    if window_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window_bytes)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (listener.host, listener.port))
    reader, writer = await asyncio.open_connection(sock=sock)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def answer_to(reader: StreamReader) -> bytes:
    """One frame's content; b"" when the connection was closed instead."""
    try:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return b""


async def until_empty(listener: Listener) -> None:
    while listener._connections:  # noqa: ASYNC110 - there is nobody who could tell
        await asyncio.sleep(0.01)


async def until_closed_beside_a_neighbour(bug: Api) -> None:
    """One client runs into the bug while its other requests, and another client, are answered as ever."""
    async with listening(healthy, bug) as listener, client_of(listener) as unlucky, client_of(listener) as other:
        unlucky[1].write(named(HeartbeatRequest(generation_id=7), 0, 1) + named(ListGroupsRequest(), 0, 4711))
        assert await answer_to(unlucky[0]) == struct.pack(">ih", 1, 7)
        assert await answer_to(unlucky[0]) == b""
        for turn in range(10):
            other[1].write(named(HeartbeatRequest(generation_id=turn), 0, turn))
            assert await answer_to(other[0]) == struct.pack(">ih", turn, turn)
        assert len(listener._connections) == 1


def raising(failure: type[BaseException]) -> Callable[[], Any]:
    def fail() -> Any:
        raise failure("planted")

    return fail


def failing_task(failure: type[BaseException]) -> Callable[[], Any]:
    async def fail() -> Any:
        await asyncio.sleep(0)
        raise failure("planted")

    return fail


def failing_future(failure: type[BaseException]) -> Callable[[], Any]:
    def fail() -> Any:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        loop.call_soon(
            future.set_exception, RuntimeError("planted") if failure is StopIteration else failure("planted")
        )
        return future

    return fail


def failing_later(failure: type[BaseException]) -> Callable[[], Any]:
    def fail() -> Any:
        later: DelayedResponse[Any] = DelayedResponse()
        asyncio.get_running_loop().call_soon(later.set_exception, failure("planted"))
        return later

    return fail


def failed_already(failure: type[BaseException]) -> Callable[[], Any]:
    def fail() -> Any:
        later: DelayedResponse[Any] = DelayedResponse()
        later.set_exception(failure("planted"))
        return later

    return fail


WAYS = [raising, failing_task, failing_future, failing_later, failed_already]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failing_handler_ends_its_connection_alone(
    failure: type[BaseException], way: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(asyncio.wait_for(until_closed_beside_a_neighbour(planted(way(failure))), WAIT_S_MAX))
    (line,) = [record for record in caplog.records if record.name.startswith("moldau")]
    assert line.levelno == (logging.WARNING if "cancelled" in line.message else logging.ERROR), line.message
    assert line.exc_info is None, "a trace is for DEBUG"
    assert "closing connection from 127.0.0.1:" in line.message
    assert f"(LIST_GROUPS v0, correlation id 4711, client id {CLIENT_ID!r})" in line.message


def test_the_trace_is_there_for_those_who_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    asyncio.run(asyncio.wait_for(until_closed_beside_a_neighbour(planted(raising(KeyError))), WAIT_S_MAX))
    assert "in fail" in caplog.text


UNENCODABLE: dict[str, Any] = {
    "a string too long": ListGroupsResponse(groups=[ListedGroup(group_id="g" * 40_000)]),
    "a number too large": ListGroupsResponse(error_code=2**15),
    "no string": ListGroupsResponse(groups=[ListedGroup(group_id=cast("str", 7))]),
    "half a surrogate pair": ListGroupsResponse(groups=[ListedGroup(group_id="\ud800")]),
    "no message": "a string",
}


@pytest.mark.parametrize("response", UNENCODABLE)
@pytest.mark.parametrize("is_late", [False, True], ids=["now", "later"])
def test_an_answer_that_can_not_be_encoded_ends_its_connection_alone(
    response: str, is_late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def later() -> Any:
        await asyncio.sleep(0)
        return UNENCODABLE[response]

    bug = planted(later if is_late else lambda: UNENCODABLE[response])
    asyncio.run(asyncio.wait_for(until_closed_beside_a_neighbour(bug), WAIT_S_MAX))
    (line,) = [record for record in caplog.records if record.name.startswith("moldau")]
    assert (line.levelno, line.exc_info) == (logging.ERROR, None)
    assert "LIST_GROUPS v0, correlation id 4711" in line.message


def test_a_file_that_can_not_be_sent_ends_its_connection_alone(caplog: pytest.LogCaptureFixture) -> None:
    """The answer's first bytes are out when the segment turns out to be unreadable."""

    @api(ApiKey.FETCH, FetchRequest, versions=(4, 11))
    def unreadable(_: FetchRequest, __: Context) -> FetchResponse:
        records = FileRange(-1, 0, 1 << 20, None)
        topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])
        return FetchResponse(responses=[topic])

    async def test() -> None:
        async with listening(healthy, unreadable) as listener, client_of(listener) as unlucky:
            unlucky[1].write(named(FetchRequest(), 4, 1))
            assert await answer_to(unlucky[0]) == b""
            async with client_of(listener) as other:
                other[1].write(named(HeartbeatRequest(generation_id=3), 0, 3))
                assert await answer_to(other[0]) == struct.pack(">ih", 3, 3)

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))
    (line,) = [record for record in caplog.records if record.name.startswith("moldau")]
    assert line.levelno == logging.ERROR


def fetch_of(records: FileRange) -> Api:
    @api(ApiKey.FETCH, FetchRequest, versions=(4, 11))
    def fetch(_: FetchRequest, __: Context) -> FetchResponse:
        topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])
        return FetchResponse(responses=[topic])

    return fetch


def test_a_connection_ends_although_its_last_answers_can_not_be_sent(caplog: pytest.LogCaptureFixture) -> None:
    decoder(FetchRequest, 4, REQUEST_ELEMENTS_MAX), encoder(FetchResponse, 4)  # to make them takes longer than a turn

    async def test() -> None:
        unreadable = fetch_of(FileRange(cast("int", None), 0, 6, None))  # fails with a TypeError each time
        async with (
            listening(unreadable, planted(raising(KeyError))) as listener,
            client_of(listener) as (reader, writer),
        ):
            writer.write(named(FetchRequest(), 4, 1) + named(ListGroupsRequest(), 0, 4711))
            assert await answer_to(reader) == b""
            assert not listener._connections

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))
    (line,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert line.message.startswith("closing connection from 127.0.0.1:")


def test_who_hung_up_while_others_were_answered_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    """Answers are sent in the middle of a turn when others wait for theirs, and one's own may fail then."""

    async def test() -> None:
        asked = asyncio.Event()
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wait() -> asyncio.Future[None]:
            asked.set()
            return answer

        @api(ApiKey.HEARTBEAT, HeartbeatRequest, versions=(0, 3))
        def slow(_: HeartbeatRequest, __: Context) -> HeartbeatResponse:
            time.sleep(2 * ANSWERS_HELD_S)
            if not answer.done():
                answer.set_result(None)  # is heard of on this turn of the loop, before what is held is sent
            return HeartbeatResponse()

        async with listening(slow, planted(wait)) as listener, client_of(listener) as (reader, writer):
            with socket.create_connection((listener.host, listener.port)) as hasty:
                hasty.sendall(named(ListGroupsRequest(), 0, 1) + named(HeartbeatRequest(), 0, 2))
                await asked.wait()
                hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # the next send fails
            writer.write(named(HeartbeatRequest(), 0, 3))
            assert await answer_to(reader)
            while len(listener._connections) > 1:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("lingers", [True, False], ids=["closed", "reset"])
def test_what_a_client_asked_before_it_hung_up_is_done(lingers: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "moldau")

    async def test() -> None:
        asked, goes_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def work() -> None:
            asked.set()
            await goes_on.wait()
            done.set()

        async with listening(healthy, planted(work)) as listener, client_of(listener) as (reader, writer):
            with socket.create_connection((listener.host, listener.port)) as hasty:
                hasty.sendall(named(ListGroupsRequest(), 0, 1))
                await asked.wait()
                if not lingers:
                    hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            for turn in range(3):  # by then the end was seen
                writer.write(named(HeartbeatRequest(generation_id=turn), 0, turn))
                assert await answer_to(reader) == struct.pack(">ih", turn, turn)
            goes_on.set()
            await done.wait()
            while len(listener._connections) > 1:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_who_waits_for_others_is_forgotten_when_it_hangs_up() -> None:
    async def test() -> None:
        later: DelayedResponse[Any] = DelayedResponse()
        asked = asyncio.Event()

        @api(ApiKey.FETCH, FetchRequest, versions=(4, 11))
        def poll(_: FetchRequest, __: Context) -> DelayedResponse[Any]:
            asked.set()
            return later

        async with listening(poll) as listener:
            with socket.create_connection((listener.host, listener.port)) as hasty:
                hasty.sendall(named(FetchRequest(), 4, 1))
                await asked.wait()
            while listener._connections:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0)
            assert later.cancelled()

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


def test_a_listener_that_finishes_lets_requests_under_way_be_answered_and_nobody_else_wait() -> None:
    async def test() -> None:
        asked, goes_on = asyncio.Event(), asyncio.Event()

        async def work() -> ListGroupsResponse:
            asked.set()
            await goes_on.wait()
            return ListGroupsResponse(error_code=7)

        table = (healthy, planted(work))
        async with listening(*table) as listener, client_of(listener) as busy, client_of(listener) as idle:
            busy[1].write(named(ListGroupsRequest(), 0, 1) + named(HeartbeatRequest(), 0, 2))
            await asked.wait()
            finishing = asyncio.ensure_future(listener.finish())
            assert await answer_to(idle[0]) == b""
            assert not finishing.done()
            goes_on.set()
            assert (await answer_to(busy[0]))[:6] == struct.pack(">ih", 1, 7)
            assert await answer_to(busy[0]) == b"", "what was not begun is not begun any more"
            busy[1].close()
            await finishing
            assert not listener._connections

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


def test_a_listener_that_finishes_gives_up_what_takes_too_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("moldau.broker.network.listener._WORK_S_MAX", 0.1)
    monkeypatch.setattr("moldau.broker.network.listener._SEND_S_MAX", 0.1)

    async def test() -> None:
        asked = asyncio.Event()

        async def work() -> None:
            asked.set()
            await asyncio.Event().wait()

        async with listening(planted(work)) as listener, client_of(listener) as (reader, writer):
            writer.write(named(ListGroupsRequest(), 0, 1))
            await asked.wait()
            await listener.finish()
            assert await answer_to(reader) == b""

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))
    assert [record.message for record in caplog.records] == [
        "1 requests given up, which took more than 0 s since the stop"
    ]


LARGE = [ListedGroup(group_id="g" * 1_000) for _ in range(5_000)]


def large_answer_after(asked: asyncio.Event, goes_on: asyncio.Event) -> Callable[[], Awaitable[ListGroupsResponse]]:
    async def work() -> ListGroupsResponse:
        asked.set()
        await goes_on.wait()
        return ListGroupsResponse(groups=LARGE)

    return work


@pytest.mark.parametrize("is_read", [False, True])
def test_a_listener_that_finishes_waits_for_what_takes_long_to_send_but_not_for_ever(
    is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moldau.broker.network.listener._SEND_S_MAX", WAIT_S_MAX if is_read else 0.1)

    async def test() -> None:
        asked, goes_on = asyncio.Event(), asyncio.Event()
        work = large_answer_after(asked, goes_on)

        async with listening(planted(work)) as listener, client_of(listener) as (reader, writer):
            writer.write(named(ListGroupsRequest(), 0, 1))
            await asked.wait()
            finishing = asyncio.ensure_future(listener.finish())
            goes_on.set()
            if is_read:
                assert len(await answer_to(reader)) > 5_000_000
                writer.close()
            await finishing
            assert not listener._connections

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


def test_a_listener_that_finishes_sends_all_of_what_was_answered_in_the_same_turn() -> None:
    async def test() -> None:
        asked = asyncio.Event()

        def work() -> ListGroupsResponse:
            asked.set()
            return ListGroupsResponse(groups=LARGE)

        async with listening(planted(work)) as listener, client_of(listener) as (reader, writer):
            writer.write(named(ListGroupsRequest(), 0, 1))
            answer = asyncio.ensure_future(answer_to(reader))
            answer.add_done_callback(lambda _: writer.close())
            await asked.wait()
            await listener.finish()
            assert len(await answer) > 5_000_000

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


def test_requests_behind_the_last_one_that_is_answered_dont_cut_its_answer() -> None:
    async def test() -> None:
        asked, goes_on = asyncio.Event(), asyncio.Event()
        work = large_answer_after(asked, goes_on)

        async with listening(healthy, planted(work)) as listener, client_of(listener, window_bytes=4_096) as client:
            reader, writer = client
            writer.write(named(ListGroupsRequest(), 0, 1) + named(HeartbeatRequest(), 0, 2) * 10_000)
            await asked.wait()
            finishing = asyncio.ensure_future(listener.finish())
            goes_on.set()
            assert len(await answer_to(reader)) > 5_000_000
            assert await answer_to(reader) == b""
            writer.close()
            await finishing
            assert not listener._connections

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


def test_a_violation_is_the_peers_and_names_its_request(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(asyncio.wait_for(until_closed_beside_a_neighbour(planted(raising(ProtocolViolation))), WAIT_S_MAX))
    (line,) = [record for record in caplog.records if record.name.startswith("moldau")]
    assert line.levelno == logging.WARNING
    assert "planted (LIST_GROUPS v0, correlation id 4711" in line.message


def test_who_says_no_more_still_gets_every_answer() -> None:
    async def test() -> None:
        async with listening(healthy) as listener, client_of(listener) as (reader, writer):
            count = 10_000  # more than the buffer that connections share holds
            writer.write(b"".join(named(HeartbeatRequest(generation_id=7), 0, number) for number in range(count)))
            writer.write_eof()
            for number in range(count):
                assert await answer_to(reader) == struct.pack(">ih", number, 7)
            assert await answer_to(reader) == b""

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


def test_what_was_answered_is_sent_although_the_listener_closes() -> None:
    async def test() -> None:
        answered = asyncio.Event()

        def tell() -> ListGroupsResponse:
            answered.set()
            return ListGroupsResponse()

        async with listening(planted(tell)) as listener, client_of(listener) as (reader, writer):
            writer.write(named(ListGroupsRequest(), 0, 4711))
            await answered.wait()
            listener.close()
            assert (await answer_to(reader))[:4] == struct.pack(">i", 4711)

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


def test_who_says_no_more_still_gets_an_answer_that_takes_long_to_send() -> None:
    async def test() -> None:
        groups = [ListedGroup(group_id="g" * 30_000)] * 1_000  # far more than a socket's buffers hold
        async with listening(planted(lambda: ListGroupsResponse(groups=groups))) as listener:
            async with client_of(listener) as (reader, writer):
                writer.write(named(ListGroupsRequest(), 0, 4711))
                await reader.readexactly(4)  # so the broker is in the middle of it
                writer.write_eof()
                assert len(await reader.read()) == 4 + 2 + 4 + 1_000 * (2 + 30_000 + 2)
            await until_empty(listener)

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))


def test_a_peer_that_goes_away_while_it_waits_is_no_failure_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    """A consumer that is killed in the middle of a long poll: an everyday event."""

    async def test() -> None:
        asked = asyncio.Event()

        def park() -> DelayedResponse[Any]:
            asked.set()
            return DelayedResponse()

        async with listening(planted(park)) as listener, client_of(listener) as (_, writer):
            writer.write(named(ListGroupsRequest(), 0, 4711))
            await asked.wait()
            linger = struct.pack("ii", 1, 0)  # closing resets the connection
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            await until_empty(listener)

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))
    assert [record for record in caplog.records if record.name.startswith("moldau")] == []


def test_nothing_is_sent_twice_when_a_file_fails_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that recovers in the same moment: what was cut stays cut, and no answer comes again behind it."""
    (tmp_path / "segment").write_bytes(bytes(1 << 20))
    really, failures = os.sendfile, [OSError(errno.EIO, "planted")]

    def sendfile(*arguments: Any) -> int:
        if failures:
            raise failures.pop()
        return really(*arguments)

    monkeypatch.setattr(os, "sendfile", sendfile)

    async def test(fd: int) -> None:
        @api(ApiKey.FETCH, FetchRequest, versions=(4, 11))
        def stored(_: FetchRequest, __: Context) -> FetchResponse:
            partition = PartitionData(records=FileRange(fd, 0, 1 << 20, None))
            return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])

        async with listening(healthy, stored) as listener, client_of(listener) as (reader, writer):
            writer.write(named(HeartbeatRequest(generation_id=7), 0, 1) + named(FetchRequest(), 4, 2))
            assert await answer_to(reader) == struct.pack(">ih", 1, 7)
            assert await answer_to(reader) == b""

    with (tmp_path / "segment").open("rb") as segment:
        asyncio.run(asyncio.wait_for(test(segment.fileno()), WAIT_S_MAX))
    (line,) = [record for record in caplog.records if record.name.startswith("moldau")]
    assert line.levelno == logging.ERROR


@pytest.mark.parametrize("size", [-1, 2**31 - 1], ids=["negative", "too large"])
def test_a_frame_of_an_absurd_size_is_refused_behind_a_slow_request(
    size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It was taken for one that has not arrived whole: nobody looked at it before more came."""

    async def test() -> None:
        def slow() -> ListGroupsResponse:
            time.sleep(2 * SLICE_S)
            return ListGroupsResponse()

        async with listening(planted(slow)) as listener, client_of(listener) as (reader, writer):
            writer.write(named(ListGroupsRequest(), 0, 4711) + struct.pack(">ihh", size, 0, 9))
            assert (await answer_to(reader))[:4] == struct.pack(">i", 4711)
            assert await answer_to(reader) == b""

    asyncio.run(asyncio.wait_for(test(), 5.0))
    (line,) = [record for record in caplog.records if record.name.startswith("moldau")]
    assert f"frame of {size} bytes; allowed" in line.message


def test_who_reads_a_long_answer_slowly_is_not_idle() -> None:
    async def test() -> None:
        answer = ListGroupsResponse(groups=[ListedGroup(group_id="g" * 30_000)] * 1_000)
        table = planted(lambda: answer)
        async with listening(table, idle_ms_max=1_000) as listener, client_of(listener) as (reader, writer):
            writer.write(named(ListGroupsRequest(), 0, 4711))
            read_bytes = 0
            while read_bytes < 4 + 4 + 2 + 4 + 1_000 * (2 + 30_000 + 2):
                more = await reader.read(1 << 20)
                assert more, f"closed after {read_bytes} bytes"
                read_bytes += len(more)
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(test(), WAIT_S_MAX))

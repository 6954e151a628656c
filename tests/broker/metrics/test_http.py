"""How long a scraper may take, and how long its page."""

from __future__ import annotations

import asyncio
import gc

import pytest

from moldau.broker.metrics.http import connection
from moldau.broker.metrics.http.connection import TEXT, Answer
from moldau.broker.metrics.http.server import HttpServer

REQUEST = b"GET /metrics HTTP/1.1\r\nhost: here\r\n\r\n"


async def served(answer: asyncio.Future[Answer] | None = None) -> HttpServer:
    async def answers(_: str) -> Answer:
        return Answer(200, TEXT, [b"page\n"]) if answer is None else await answer

    server = HttpServer()
    server.bind("127.0.0.1", 0)
    server.start(answers)
    return server


def test_a_page_may_take_longer_than_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker is busy, or a disk is slow to tell of its room."""

    async def scenario() -> bytes:
        made: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        server = await served(made)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(REQUEST)
        asyncio.get_running_loop().call_later(
            3 * connection.REQUEST_S_MAX, made.set_result, Answer(200, TEXT, [b"page\n"])
        )
        found = await reader.readuntil(b"page\n")
        writer.close()
        await server.close()
        return found

    monkeypatch.setattr(connection, "REQUEST_S_MAX", 0.2)
    assert asyncio.run(scenario()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("before", [b"", REQUEST, REQUEST + REQUEST[:3]], ids=["first", "second", "begun with another"])
def test_a_request_has_to_arrive_in_its_time(before: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte by byte, a connection of the few that there are could be kept for ever."""

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            writer.write(b"x")
            await asyncio.sleep(connection.REQUEST_S_MAX / 10)

    async def scenario() -> None:
        server = await served()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(before)
        if before:
            await reader.readuntil(b"page\n")
        else:
            writer.write(REQUEST[:-4])
        task = asyncio.create_task(trickle(reader, writer))
        try:
            assert await asyncio.wait_for(reader.read(), 100 * connection.REQUEST_S_MAX) == b""
        except ConnectionError:
            pass
        finally:
            task.cancel()
            writer.close()
            await server.close()

    monkeypatch.setattr(connection, "REQUEST_S_MAX", 0.3)
    asyncio.run(scenario())


def test_whoever_sends_a_body_is_answered_and_hung_up_on(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is in the body: nobody reads it. It ended the answering task, and the connection stayed."""

    async def scenario() -> bytes:
        server = await served()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(REQUEST.replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\nno size of a chunk\r\n"))
        found = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        await server.close()
        gc.collect()
        return found

    assert asyncio.run(scenario()).endswith(b"\r\n\r\npage\n")
    assert caplog.text == ""

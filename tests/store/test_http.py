"""Answers of etcd's gateway, and what is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from moldau.store.etcd.http import Answer, HttpFailed, HttpServer
from tests.store.kinds import run

PLAIN = b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"a": 1}'
CHUNKED = b'HTTP/1.1 503 Unavailable\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"b"\r\n4\r\n: 2}\r\n0\r\n\r\n'
WITH_TRAILERS = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Grpc-Status\r\n\r\n"
    b'8\r\n{"c": 3}\r\n0\r\nGrpc-Status: 0\r\nGrpc-Message: \r\n\r\n'
)


def served(answers: list[bytes], test: Callable[[HttpServer], Awaitable[None]]) -> None:
    """A server that gives these answers, one for each request, whoever asks."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while answers and await reader.read(65_536):
            writer.write(answers.pop(0))
            await writer.drain()
        writer.close()

    async def go() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        client = HttpServer("127.0.0.1", server.sockets[0].getsockname()[1])
        async with server:
            await test(client)
            client.close()

    run(go)


def test_one_connection_serves_answers_of_every_form() -> None:
    async def test(client: HttpServer) -> None:
        for expected in (Answer(200, {"a": 1}), Answer(503, {"b": 2}), Answer(200, {"c": 3}), Answer(200, {"a": 1})):
            assert await client.post("/", {}) == expected
        assert len(client._idle) == 1

    served([PLAIN, CHUNKED, WITH_TRAILERS, PLAIN], test)


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 two\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[1,",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"",
    ],
)
def test_what_is_no_answer_ends_its_connection(answer: bytes) -> None:
    async def test(client: HttpServer) -> None:
        with pytest.raises(HttpFailed):
            await client.post("/", {})
        assert not client._idle

    served([answer], test)

"""JSON over HTTP/1.1, as much of it as etcd's gateway speaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from moldau.security.tls.client_contexts import ClientTls

BODY_BYTES_MAX = 64 * 1024 * 1024  # etcd's own limit for an answer is 2 GB; ours are a part of 512 KB, or many names
LINE_BYTES_MAX = 65_536
IDLE_MAX = 8  # connections that are kept for the next requests


class HttpFailed(Exception):
    """There is no connection, or what came over it is no answer."""


class Answer(NamedTuple):
    status: int
    body: dict[str, Any]


class Connection(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class HttpServer:
    """Connections to one server."""

    def __init__(self, host: str, port: int, tls: ClientTls | None = None) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._idle: list[Connection] = []

    async def post(self, path: str, body: dict[str, Any]) -> Answer:
        connection = self._idle.pop() if self._idle else await self._open()
        try:
            status, headers = await self._send(connection, path, body)
            parts = [part async for part in _body(connection.reader, headers)]
            answer = Answer(status, _object(b"".join(parts) or b"{}"))
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as wrong:
            connection.writer.close()
            raise HttpFailed(str(wrong)) from wrong
        except BaseException:
            connection.writer.close()
            raise
        if len(self._idle) < IDLE_MAX:
            self._idle.append(connection)
        else:
            connection.writer.close()
        return answer

    async def stream(self, path: str, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The messages of an answer that has no end, one a line."""
        connection = await self._open()
        try:
            _, headers = await self._send(connection, path, body)
            rest = b""
            async for part in _body(connection.reader, headers):
                *lines, rest = (rest + part).split(b"\n")
                for line in filter(None, lines):
                    yield _object(line)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as wrong:
            raise HttpFailed(str(wrong)) from wrong
        finally:
            connection.writer.close()

    def close(self) -> None:
        for connection in self._idle:
            connection.writer.close()
        self._idle.clear()

    async def _open(self) -> Connection:
        try:
            context = None if self._tls is None else self._tls.current().context
            return Connection(*await asyncio.open_connection(self._host, self._port, limit=LINE_BYTES_MAX, ssl=context))
        except OSError as wrong:  # those of TLS, too
            raise HttpFailed(str(wrong)) from wrong

    async def _send(self, connection: Connection, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str]]:
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Length: {len(content)}\r\n\r\n"
        connection.writer.write(head.encode() + content)
        await connection.writer.drain()
        status_line, *lines = (await connection.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        version, _, status = status_line.partition(" ")
        if not version.startswith("HTTP/1."):
            raise ValueError(f"an answer that begins with {status_line[:20]!r}")
        return int(status[:3]), headers


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> AsyncIterator[bytes]:
    if headers.get("transfer-encoding") != "chunked":
        yield await reader.readexactly(_checked(int(headers.get("content-length", "0"))))
        return
    while size := int(await reader.readuntil(b"\r\n"), 16):
        part = await reader.readexactly(_checked(size))
        await reader.readexactly(2)
        yield part
    while await reader.readuntil(b"\r\n") != b"\r\n":  # trailers, which gRPC has after every stream
        pass


def _object(text: bytes) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"an answer that is no object: {text[:20]!r}")
    return found


def _checked(size: int) -> int:
    if not 0 <= size <= BODY_BYTES_MAX:
        raise ValueError(f"an answer of {size} bytes")
    return size

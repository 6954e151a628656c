"""A TCP proxy in front of a server, which can hold back what is sent, in either direction, and cut connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

CHUNK_BYTES = 65_536


class Proxy:
    """While a direction is silent its bytes wait here, as packets do that a network loses again and again."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._requests_pass, self._answers_pass = asyncio.Event(), asyncio.Event()
        self.heal()

    @property
    def is_used(self) -> bool:
        return bool(self._connections)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Nobody listens any more, and who was connected is cut off."""
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.sleep(0)

    def cut(self) -> None:
        for connection in self._connections:
            connection.cancel()

    def silence(self, *, answers_only: bool = False) -> None:
        self._answers_pass.clear()
        if not answers_only:
            self._requests_pass.clear()

    def heal(self) -> None:
        self._requests_pass.set()
        self._answers_pass.set()

    async def stop(self) -> None:
        await self.refuse()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        upstream: asyncio.StreamWriter | None = None
        try:
            answers, upstream = await asyncio.open_connection("127.0.0.1", self._target_port)
            await asyncio.gather(
                self._pump(reader, upstream, self._requests_pass), self._pump(answers, writer, self._answers_pass)
            )
        except (OSError, asyncio.CancelledError, EOFError):
            pass
        finally:
            self._connections.discard(task)
            for each in (writer, upstream):
                if each is not None:
                    each.transport.abort()

    @staticmethod
    async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter, passes: asyncio.Event) -> None:
        while data := await source.read(CHUNK_BYTES):
            await passes.wait()
            target.write(data)
            await target.drain()
        raise EOFError


@contextlib.asynccontextmanager
async def proxies(ports: list[int]) -> AsyncIterator[list[Proxy]]:
    made = [Proxy(port) for port in ports]
    try:
        for each in made:
            await each.start()
        yield made
    finally:
        for each in made:
            await each.stop()

"""Watches on keys of etcd: one stream of changes for each, begun anew when it ends or says nothing for long."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from moldau.store.etcd.http import HttpFailed, HttpServer
from moldau.store.etcd.transactions import encoded
from moldau.store.tree.client import Signal

RETRY_S = 0.05


class Watches:
    """A path that ends with a slash stands for all that is below it.

    A stream without changes is silent, and so is one whose server is cut off. So each is left when it was silent for
    `idle_s_max`; whoever watches is told after every beginning, and reads what it may have missed.
    """

    def __init__(
        self, server: Callable[[], HttpServer], leave: Callable[[HttpServer], None], *, idle_s_max: float
    ) -> None:
        self._server = server
        self._leave = leave
        self._idle_s_max = idle_s_max
        self._streams: dict[tuple[str, Signal], tuple[asyncio.Event, asyncio.Task[None]]] = {}

    async def begin(self, path: str, signal: Signal) -> None:
        """Returns when changes from now on are told."""
        folder = path[: path.rstrip("/").rfind("/") + 1]
        known = self._streams.get((path, signal)) or self._streams.get((folder, signal))
        if known is None:
            created = asyncio.Event()
            task = asyncio.create_task(self._follow(path, signal, created), name=f"etcd-watch {path}")
            known = self._streams[path, signal] = created, task
        await known[0].wait()

    async def stop(self) -> None:
        tasks = [task for _, task in self._streams.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, path: str, signal: Signal, created: asyncio.Event) -> None:
        wanted = {"key": encoded(path.encode())}
        if path.endswith("/"):
            wanted["range_end"] = encoded(path[:-1].encode() + b"0")
        while True:
            server = self._server()
            try:
                await self._follow_stream(server, {"create_request": wanted}, signal, created)
                if not created.is_set():  # a server that refuses is not asked again at once
                    await asyncio.sleep(RETRY_S)
            except HttpFailed:
                self._leave(server)
                await asyncio.sleep(RETRY_S)
            finally:
                created.clear()

    async def _follow_stream(
        self, server: HttpServer, request: dict[str, Any], signal: Signal, created: asyncio.Event
    ) -> None:
        async with contextlib.aclosing(server.stream("/v3/watch", request)) as messages:
            while True:
                try:
                    async with asyncio.timeout(self._idle_s_max):
                        message = await anext(messages)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    if not created.is_set():
                        self._leave(server)
                    return
                result = message.get("result", {})
                if result.get("created"):
                    created.set()
                signal.fire()
                if result.get("canceled") or not result:
                    return

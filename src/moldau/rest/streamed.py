"""An answer that is sent piece by piece, as each is there, until its client goes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.types import Receive, Scope, Send

from moldau.rest.calls import Chunks

LAST = {"type": "http.response.body", "body": b"", "more_body": False}
WAITED = {"type": "http.response.body", "body": b"", "more_body": True}
PIECE_BYTES = (
    64 * 1024
)  # a slow client takes such a piece in the time that the guard gives it, however large a chunk is
LAST_S_MAX = 1.0  # for a client that reads nothing, when the proxy ends


class Streamed:
    """`watches` whether the client goes; who reads the request's body learns that there.

    The next chunk is not made until the client has taken this one.
    When `ending` is set, because the proxy ends, so does the answer, wherever it is.
    """

    def __init__(
        self,
        chunks: Chunks,
        media_type: str,
        *,
        ending: asyncio.Event,
        watches: bool,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.chunks = chunks
        self.ending = ending
        self.watches = watches
        given = {"content-type": media_type, **(headers or {})}
        self.headers = [(name.encode(), value.encode()) for name, value in given.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        sending = asyncio.ensure_future(self._send(send))
        others: list[asyncio.Future[Any]] = [asyncio.ensure_future(self.ending.wait())]
        if self.watches:
            others.append(asyncio.ensure_future(_gone(receive)))
        try:
            await asyncio.wait([sending, *others], return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
        finally:
            for each in (sending, *others):
                each.cancel()
            await asyncio.wait([sending])
            await self.chunks.aclose()
        if sending.cancelled() and self.ending.is_set():
            await asyncio.wait_for(send(LAST), LAST_S_MAX)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.headers})
        async for chunk in self.chunks:
            for start in range(0, len(chunk), PIECE_BYTES):
                piece = chunk[start : start + PIECE_BYTES]
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send(WAITED)  # writes nothing: uvicorn waits for room before it sends, and not behind it
        await send(LAST)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

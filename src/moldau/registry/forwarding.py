"""Requests that only the leader can answer, sent on to it as they came, with the credentials that they came with."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from moldau.registry import refusals
from moldau.registry.storing.electing import Identity

FORWARDED = "X-Forward"
"""Confluent's header: whoever gets a request with it answers it or refuses it, and sends it nowhere."""
OFFSET = "X-Moldau-Offset"
"""Of an answer: up to where the topic was read for it."""
TOPIC = "X-Moldau-Topic"
"""Of a request: where whoever sends it on keeps schemas, for a leader that keeps them elsewhere to refuse it."""
TIMEOUT_S = 60.0
ELECTED_S = 15.0  # from a leader's death until all know another: its session, and a heartbeat of the others
THREADS = 32
ANSWER_BYTES_MAX = 16 << 20
PASSED_ON = ("authorization", "content-type", "accept")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    content_type: str
    body: bytes
    offset: int | None


@dataclass(frozen=True, slots=True)
class Question:
    method: str
    target: str
    """The path as it came, with the query."""
    headers: Mapping[str, str]
    body: bytes
    topic: str


class Forwarder:
    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._threads = ThreadPoolExecutor(THREADS, "forwarding")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def ask(self, leader: Identity, question: Question, is_over: Coroutine[Any, Any, None]) -> Answer | None:
        """None if `is_over` came before the answer: the leader may have done it or not. Raises 50003.

        A leader that does not answer may have died, which is known only when its session has ended.
        """
        connection = self._connection(leader)
        asked = asyncio.get_running_loop().run_in_executor(self._threads, self._ask, connection, question)
        over = asyncio.create_task(is_over)
        try:
            waiting: list[asyncio.Future[Any]] = [asked, over]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                asked.add_done_callback(lambda found: found.cancelled() or found.exception())
                asked.cancel()  # what waits for a thread must not be done when nobody wants it any more
                if connection.sock is not None:
                    with suppress(OSError):
                        connection.sock.shutdown(socket.SHUT_RDWR)  # the thread is not left to wait
                return None
            return await asked
        except (OSError, http.client.HTTPException) as wrong:
            may_pass = question.method != "DELETE" and not isinstance(wrong, ssl.SSLError)  # certificates stay bad
            if may_pass and (await asyncio.wait([over], timeout=ELECTED_S))[0]:
                return None
            told = str(wrong) or type(wrong).__name__
            raise refusals.not_forwarded(
                f"Error while forwarding the request to the leader {leader.url}: {told}"
            ) from None
        finally:
            over.cancel()

    def _connection(self, leader: Identity) -> http.client.HTTPConnection:
        if leader.scheme != "https":
            return http.client.HTTPConnection(leader.host, leader.port, timeout=TIMEOUT_S)
        context = self._tls or ssl.create_default_context()
        return http.client.HTTPSConnection(leader.host, leader.port, timeout=TIMEOUT_S, context=context)

    def _ask(self, connection: http.client.HTTPConnection, question: Question) -> Answer:
        try:
            headers = {name: each for name, each in question.headers.items() if name.lower() in PASSED_ON}
            headers |= {FORWARDED: "true", TOPIC: question.topic}
            connection.request(question.method, question.target, question.body, headers)
            found = connection.getresponse()
            if found.length is None or found.length > ANSWER_BYTES_MAX:
                raise http.client.HTTPException("an answer without a size, or of too much")
            body = found.read()  # of all of it, or IncompleteRead: a leader that died half way has not answered
            offset = found.getheader(OFFSET, "")
            return Answer(
                found.status,
                found.getheader("content-type", "application/json"),
                body,
                int(offset) if offset.isdecimal() else None,
            )
        finally:
            connection.close()

"""One HTTP connection of a scraper or a probe: h11 reads and frames, and this is the glue to the event loop.

What a stranger can take is limited in time, in bytes and in turns of the loop: a request is answered when the pace of
all connections allows, and a connection is read from again only after a pause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from time import monotonic
from typing import NamedTuple, cast

import h11

from moldau.core.limits import HTTP_HEADER_BYTES_MAX

LOGGER = logging.getLogger(__name__)

REQUEST_S_MAX = 10.0  # for a whole request to arrive
ANSWER_S_MAX = 120.0  # for a page to be made: as long as any scraper waits
IDLE_S_MAX = 150.0  # between two requests: scrapers come every 15 to 60 s, and some only every two minutes
SEND_S_MAX = 30.0  # for an answer to be taken: 10,000 partitions are 7 MB
READ_PAUSE_S = 0.005  # between two reads: a request comes in one, and whoever sends byte by byte takes no more turns

TEXT = "text/plain; charset=utf-8"
METHODS = frozenset({b"GET", b"HEAD"})
REASONS = {each.value: each.phrase.encode() for each in HTTPStatus}


class Answer(NamedTuple):
    status: int
    content_type: str
    body: Sequence[bytes]


Answers = Callable[[str], Awaitable[Answer]]
"""What is answered to a path."""


class HttpConnection(asyncio.Protocol):
    def __init__(self, answers: Answers, *, wait_turn: Callable[[], Awaitable[None]], on_close: OnClose) -> None:
        self.last_active_s = monotonic()
        self.is_answering = False
        self._answers = answers
        self._wait_turn = wait_turn
        self._on_close = on_close
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HTTP_HEADER_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._resume: asyncio.TimerHandle | None = None
        self._is_sending = False
        self._is_arriving = True
        """A request began, or its time did."""
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=0)  # to be told when all is sent
        self._allow(REQUEST_S_MAX)

    def connection_lost(self, _: Exception | None) -> None:
        for timer in (self._deadline, self._resume):
            if timer is not None:
                timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._transport = None
        self._on_close(self)

    def data_received(self, data: bytes) -> None:
        if not self._is_arriving:
            self._is_arriving = True
            self._allow(REQUEST_S_MAX)
        self._pause_reading()
        self.last_active_s = monotonic()
        self._http.receive_data(data)
        self._go_on()

    def eof_received(self) -> bool:
        return self.is_answering or self._is_sending  # whoever said all may still read

    def resume_writing(self) -> None:
        """All is sent."""
        if self._is_sending:
            self._is_sending = False
            self._next_cycle()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _allow(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._loop.call_later(seconds, self.abort)

    def _pause_reading(self) -> None:
        assert self._transport is not None, "only what is open receives"
        self._transport.pause_reading()
        if self._resume is not None:
            self._resume.cancel()
        self._resume = self._loop.call_later(READ_PAUSE_S, self._read_on)

    def _read_on(self) -> None:
        """Nothing is read while an answer is under way: what a pipelining client sends stays in its socket."""
        if self._transport is not None and not self.is_answering and not self._is_sending:
            self._transport.resume_reading()

    def _go_on(self) -> None:
        if self._transport is None or self.is_answering or self._is_sending:
            return
        try:
            event = self._http.next_event()
        except h11.RemoteProtocolError as wrong:
            self._refuse(wrong.error_status_hint, "this is no request of HTTP that can be answered\n")
            return
        if isinstance(event, h11.Request):
            self.is_answering = True
            self._allow(ANSWER_S_MAX)
            self._task = self._loop.create_task(self._answer(event))
        elif isinstance(event, h11.ConnectionClosed):
            self._transport.close()

    def _refuse(self, status: int, line: str) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send(Answer(status, TEXT, [line.encode()]), is_head=False, closes=True)
        elif self._transport is not None:
            self._transport.close()

    async def _answer(self, request: h11.Request) -> None:
        await self._wait_turn()
        try:
            if request.method in METHODS:
                path = request.target.partition(b"?")[0].decode("latin-1")
                answer = await self._answers(path)
            else:
                answer = Answer(405, TEXT, [b"only GET and HEAD are answered here\n"])
        except Exception:
            LOGGER.exception("a request for %r failed", request.target[:100])
            answer = Answer(500, TEXT, [b"this failed; the broker's log says why\n"])
        self.is_answering = False
        if self._transport is None:
            return
        closes = request.method not in METHODS or _has_body(request)
        self._send(answer, is_head=request.method == b"HEAD", closes=closes)

    def _send(self, answer: Answer, *, is_head: bool, closes: bool) -> None:
        assert self._transport is not None, "nobody is answered who is gone"
        headers = [
            ("content-type", answer.content_type),
            ("content-length", str(sum(map(len, answer.body)))),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
        ]
        if closes:
            headers.append(("connection", "close"))
        if answer.status == 405:
            headers.append(("allow", "GET, HEAD"))
        self._write(h11.Response(status_code=answer.status, headers=headers, reason=REASONS[answer.status]))
        if not is_head:
            for each in answer.body:
                self._write(h11.Data(data=each))
        self._write(h11.EndOfMessage())
        self.last_active_s = monotonic()
        self._is_sending = self._transport.get_write_buffer_size() > 0
        if self._is_sending:
            self._allow(SEND_S_MAX)
        else:
            self._next_cycle()

    def _write(self, event: h11.Event) -> None:
        assert self._transport is not None, "nobody is answered who is gone"
        data = self._http.send(event)
        if data:
            self._transport.write(data)

    def _next_cycle(self) -> None:
        """The next request of the same connection, on the next turn of the loop: others are there, too."""
        if self._transport is None:
            return
        if self._http.our_state is h11.MUST_CLOSE:  # perhaps for a body, which is not even looked at
            self._transport.close()
            return
        if self._http.their_state is h11.SEND_BODY:
            self._http.next_event()  # the end of a request without a body
        if self._http.their_state is not h11.DONE:
            self._transport.close()
            return
        self._http.start_next_cycle()
        # What came behind the last request may be a part of the next one.
        self._is_arriving = bool(self._http.trailing_data[0])
        self._allow(REQUEST_S_MAX if self._is_arriving else IDLE_S_MAX)
        self._read_on()
        self._loop.call_soon(self._go_on)


OnClose = Callable[[HttpConnection], None]


def _has_body(request: h11.Request) -> bool:
    """Which is not read."""
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in request.headers)

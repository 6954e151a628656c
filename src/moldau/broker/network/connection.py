"""One client's connection: bytes in, replies out, one request at a time in order of arrival.

It works on a plain non-blocking socket rather than on an asyncio transport, because a transport can neither receive
into memory that we choose nor send a file. While a request waits or its reply is not yet sent, the next one is not
looked at, which is Kafka's own back-pressure: a connection never holds more than one request and one turn's replies.

The loop enters a connection through `_turn` only. Whatever is raised there, by anybody, ends this connection: none
stays open with a position in the buffer that all connections share, or with a request that nobody answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from time import monotonic
from typing import Any

from moldau.broker.context import Peer
from moldau.broker.network.inbox import Inbox
from moldau.broker.network.outbox import Outbox, Part
from moldau.broker.network.refusals import Refusals
from moldau.broker.network.turns import LONG_S, SLICE_S, Turns
from moldau.broker.requests.dispatch import Dispatch, Muted, Unanswered, describe
from moldau.core.errors import ProtocolViolation
from moldau.log.file_range import FileRange
from moldau.wire.api import ApiKey

LOGGER = logging.getLogger(__name__)

PARTS_HELD_MAX = 16  # replies that wait for the ones behind them; each may be large, so there must not be many
_UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})


class Connection:
    __slots__ = (
        "_dispatch", "_inbox", "_is_finishing", "_is_queued", "_loop", "_on_close", "_outbox", "_reading", "_ready",
        "_refusals", "_sending", "_socket", "_taken", "_took_long", "_turns", "_until_s", "_waiting_for", "closed",
        "last_active_s", "peer",
    )  # fmt: skip

    def __init__(
        self,
        sock: socket.socket,
        peer: Peer,
        *,
        dispatch: Dispatch,
        inbox: Inbox,
        turns: Turns,
        refusals: Refusals,
        loop: asyncio.AbstractEventLoop,
        on_close: Callable[[Connection], None],
        outbox: Outbox | None = None,
    ) -> None:
        self.peer = peer
        self.closed = False
        self.last_active_s = monotonic()
        self._socket = sock
        self._dispatch = dispatch
        self._inbox = inbox
        inbox.on_room = self._has_room
        self._outbox = outbox or Outbox(sock)
        self._turns = turns
        self._refusals = refusals
        self._loop = loop
        self._on_close = on_close
        self._reading = True
        self._ready: list[Part] = []
        self._sending = False
        self._is_finishing = False
        self._is_queued = False
        self._taken: Unanswered | None = None
        self._took_long = False
        self._until_s = 0.0
        self._waiting_for: Unanswered | None = None
        loop.add_reader(sock.fileno(), self._turn, self._receive)

    def close(self) -> None:
        if self.closed:
            return
        if self._ready:
            self._send_last(self._ready)
        self.closed = True
        self._inbox.on_room = None
        self._inbox.close()
        descriptor = self._socket.fileno()
        self._loop.remove_reader(descriptor)
        self._loop.remove_writer(descriptor)
        self._socket.close()
        self._on_close(self)
        if self._waiting_for is not None:
            self._waiting_for.future.cancel()

    def finish(self) -> asyncio.Future[Any] | None:
        """Take no more requests, and close when the one that is under way is answered and all is sent.

        Gives what the request waits for. One that waits for others, for records say, is given up at once.
        """
        waiting_for = self._waiting_for
        has_answered = bool(self._ready)
        self._send_now()
        if self.closed:
            return None
        if isinstance(waiting_for, Muted):
            self._take_no_more()
            waiting_for.end()
            return None
        if waiting_for.waits_for_others if waiting_for is not None else not (self._sending or has_answered):
            self.close()
            return None
        self._take_no_more()
        if waiting_for is None:
            self._goes_on()
            return None
        assert isinstance(waiting_for.future, asyncio.Future), "delayed responses wait for others"
        return waiting_for.future

    def _take_no_more(self) -> None:
        self._is_finishing = True
        self._inbox.on_room = None
        self._loop.remove_reader(self._socket.fileno())

    @property
    def holds_up_others(self) -> bool:
        return self._inbox.holds_up_others

    @property
    def large_frames(self) -> int:
        return self._inbox.large_frames

    @property
    def waits_for(self) -> ApiKey | None:
        return None if self._waiting_for is None else self._waiting_for.api

    @property
    def was_reset(self) -> bool:
        """The loop tells of it once, and then bytes that came before may be all that the turn reads."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0

    def _turn(self, begin: Callable[[], bool]) -> None:
        """Answer every whole frame that is here, until one has to wait. What is answered together is sent together.

        `begin` is what the loop was asked to tell this connection; it says whether to go on.
        """
        ready: list[Part] = []
        frame: memoryview | None = None
        is_over = False
        now_s = 0.0
        try:
            if self.closed or not begin():
                return
            inbox = self._inbox
            until_s = self._until_s
            while not self._sending and self._waiting_for is None and not self._is_queued:
                frame = inbox.next_frame() or self._receive_more()
                if frame is None:
                    break
                answer = self._dispatch.answer(frame, self.peer)
                if isinstance(answer, Unanswered):
                    ready += answer.at_once
                    self._wait_for(answer)
                elif answer is not None:
                    ready += answer
                frame = None
                if len(ready) >= PARTS_HELD_MAX:
                    self._send(ready)
                    ready = []
                now_s = monotonic()
                if now_s >= until_s:
                    is_over = True
                    break
            self._put_away(ready, now_s, is_over=is_over)
        except BaseException as wrong:
            self._fail(wrong, frame, ready)
            if not isinstance(wrong, Exception | asyncio.CancelledError):
                raise

    def _receive(self) -> bool:
        try:
            count = self._socket.recv_into(self._inbox.space())
        except BlockingIOError:
            return False
        except ConnectionError:
            if self._waiting_for is None:
                raise
            count = 0
        if count == 0:
            self._hang_up()
            return False
        self.last_active_s = now_s = monotonic()  # _begin_turn, without a call on the path of every request
        self._until_s = now_s + SLICE_S
        self._inbox.received(count)
        if self._took_long:
            self._took_long = False
            self._queue()
        return True

    def _hang_up(self) -> None:
        """The client says no more. It may still read, and what it asked for last is done even if it is gone.

        The end is met again when all is done and sent. Only whoever waits for others is given up.
        """
        waiting_for = self._waiting_for
        if self._sending or (waiting_for is not None and not waiting_for.waits_for_others):
            self._reading = False
            self._loop.remove_reader(self._socket.fileno())
        else:
            self.close()

    def _receive_more(self) -> memoryview | None:
        """The frame that a full buffer cut: its rest is probably there, and then it needs no memory of its own."""
        inbox = self._inbox
        frame = None
        while frame is None and inbox.may_have_more():
            try:
                count = self._socket.recv_into(inbox.space_behind())
            except BlockingIOError:
                break
            if count == 0:  # left for the next turn: there may be answers to send before
                break
            inbox.received(count)
            frame = inbox.next_frame()
        return frame

    def _begin_turn(self, slice_s: float) -> None:
        self.last_active_s = now_s = monotonic()
        self._until_s = now_s + slice_s

    def _queue(self) -> None:
        """Nothing more is answered before it is this connection's turn among those that ask for much."""
        if not self._is_queued:
            self._is_queued = True
            self._turns.queue(self._go_on)

    def _go_on(self) -> None:
        self._turn(self._leave_queue)

    def _leave_queue(self) -> bool:
        self._is_queued = False
        self._begin_turn(self._turns.slice_s)
        return not self._is_finishing

    def _has_room(self) -> None:
        """Not at once: another connection is in the middle of something."""
        self._loop.call_soon(self._turn, self._receive_again)

    def _receive_again(self) -> bool:
        self._begin_turn(SLICE_S)
        return not self._is_finishing

    def _wait_for(self, answer: Unanswered) -> None:
        self._waiting_for = answer
        answer.future.add_done_callback(self._answered)

    def _answered(self, _: object) -> None:
        self._turn(self._take_answer)
        if self.closed and self._waiting_for is not None:
            # Nobody hears a failure of an abandoned request, but asking keeps it from being reported as unheard.
            answer, self._waiting_for = self._waiting_for, None
            answer.future.cancelled() or answer.future.exception()

    def _take_answer(self) -> bool:
        assert self._waiting_for is not None, "only what was waited for can arrive"
        self._taken = self._waiting_for  # which a failure is then of, and not of the connection
        parts, pause_ms = self._taken.parts(), self._taken.pause_ms
        self._begin_turn(SLICE_S)
        self._waiting_for = self._taken = None
        if parts is not None:
            self._send(parts)
        if pause_ms and not self._is_finishing:
            self._wait_for(Muted(pause_ms))
        return self._goes_on()

    def _goes_on(self) -> bool:
        """Whether another request may follow the one that was answered."""
        if self._is_finishing and not self._sending and self._waiting_for is None:
            self._say_no_more()
        return not self._is_finishing

    def _say_no_more(self) -> None:
        """Close when the client has, who reads all answers first: closing with requests unread would cut the last one.

        TCP resets a connection then, and the kernel drops what it has not sent yet.
        """
        self._inbox.close()
        with contextlib.suppress(OSError):  # a client that is gone is met by the next read
            self._socket.shutdown(socket.SHUT_WR)
        self._loop.add_reader(self._socket.fileno(), self._turn, self._ignore)

    def _ignore(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            if self._socket.recv_into(self._inbox.space()) == 0:
                self.close()
        return False

    def _send_soon(self, parts: list[Part], now_s: float) -> None:
        if FileRange in map(type, parts):
            self._send(parts)  # takes its time whenever it is sent, so the client may begin to read
            return
        is_first = not self._ready
        self._ready += parts
        if is_first:
            self._turns.send_soon(self._send_now, now_s)

    def _send_now(self) -> None:
        self._turn(self._send_ready)

    def _send_ready(self) -> bool:
        if self._ready:
            self._send([])
        return False

    def _send(self, parts: list[Part]) -> None:
        if self._ready:
            parts = self._ready + parts
            self._ready = []
        if not self._outbox.send(parts) and not self._sending:
            self._sending = True
            self._loop.add_writer(self._socket.fileno(), self._turn, self._send_more)

    def _send_more(self) -> bool:
        if not self._outbox.flush():
            self.last_active_s = monotonic()  # there was room for some of it: the peer reads
            return False
        self._begin_turn(SLICE_S)
        self._loop.remove_writer(self._socket.fileno())
        self._sending = False
        return self._goes_on()

    def _put_away(self, ready: list[Part], now_s: float, *, is_over: bool) -> None:
        """Send what is ready, keep what has arrived, and read on unless there is no use in more."""
        if ready:
            self._send_soon(ready, now_s)
            if self.closed:  # it was sent at once, and nobody is there
                return
        inbox = self._inbox
        if is_over:
            self._took_long = monotonic() - self.last_active_s >= LONG_S
            if inbox.is_full():
                self._queue()
        if self._waiting_for is not None and self._waiting_for.may_pause:
            wanted = inbox.pause()
        elif self._sending or self._is_queued or self._waiting_for is not None:
            wanted = inbox.hold()
        else:
            wanted = inbox.keep()
        if wanted is self._reading:
            return
        self._reading = wanted
        if wanted:
            self._loop.add_reader(self._socket.fileno(), self._turn, self._receive)
        else:
            self._loop.remove_reader(self._socket.fileno())

    def _fail(self, wrong: BaseException, frame: memoryview | None, ready: list[Part]) -> None:
        """End the connection, but not before what was answered in order is on its way."""
        try:
            self._report(wrong, frame or self._taken)
            if frame is not None or not isinstance(wrong, OSError):  # else sending failed, and what was cut stays cut
                self._ready += ready
        finally:
            self.close()

    def _send_last(self, parts: list[Part]) -> None:
        try:
            self._outbox.send(parts)
        except Exception as lost:  # whatever it is, it must not keep the connection from being closed
            LOGGER.debug("connection from %s lost: %s", self.peer, lost)

    def _report(self, wrong: BaseException, asked: memoryview | Unanswered | None) -> None:
        if asked is None and isinstance(wrong, OSError) and _is_farewell(wrong):
            LOGGER.debug("connection from %s lost: %s", self.peer, wrong)
            return
        of_what = "" if asked is None else f" ({describe(asked)})"
        if isinstance(wrong, ProtocolViolation):
            self._refusals.violated(self.peer, wrong, of_what)
        else:
            self._refusals.failed(self.peer, wrong, of_what)


def _is_farewell(wrong: OSError) -> bool:
    """The peer went away: an everyday event, not a fault. A file that can't be sent is one."""
    return isinstance(wrong, ConnectionError | TimeoutError) or wrong.errno in _UNREACHABLE

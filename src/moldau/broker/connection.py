"""One client's connection: bytes in, replies out, one request at a time in order of arrival.

It works on a plain non-blocking socket rather than on an asyncio transport, because a transport can neither receive
into memory that we choose nor send a file. While a request waits or its reply is not yet sent, the next one is not
looked at, which is Kafka's own back-pressure: a connection never holds more than one request and one reply.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from moldau.broker.context import Peer
from moldau.broker.dispatch import Dispatch, Unanswered
from moldau.broker.inbox import Inbox
from moldau.broker.outbox import Outbox, Part
from moldau.core.errors import ProtocolViolation

log = logging.getLogger(__name__)

PARTS_HELD_MAX = 16  # replies that wait for the ones behind them; each may be large, so there must not be many


class Connection:
    __slots__ = (
        "_answer_frame",
        "_inbox",
        "_loop",
        "_on_close",
        "_outbox",
        "_reading",
        "_sending",
        "_socket",
        "_waiting_for",
        "closed",
        "last_active_s",
        "peer",
    )

    def __init__(
        self,
        sock: socket.socket,
        peer: Peer,
        *,
        dispatch: Dispatch,
        inbox: Inbox,
        loop: asyncio.AbstractEventLoop,
        on_close: Callable[[Connection], None],
    ) -> None:
        self.peer = peer
        self.closed = False
        self.last_active_s = loop.time()
        self._socket = sock
        self._answer_frame = dispatch.answer
        self._inbox = inbox
        inbox.on_room = self._has_room
        self._outbox = Outbox(sock)
        self._loop = loop
        self._on_close = on_close
        self._reading = True
        self._sending = False
        self._waiting_for: Unanswered | None = None
        loop.add_reader(sock.fileno(), self._readable)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        descriptor = self._socket.fileno()
        self._loop.remove_reader(descriptor)
        self._loop.remove_writer(descriptor)
        self._socket.close()
        self._inbox.close()
        self._inbox.on_room = None
        if self._waiting_for is not None:
            self._waiting_for.future.cancel()
        self._on_close(self)

    @property
    def holds_up_others(self) -> bool:
        return self._inbox.holds_up_others

    def _has_room(self) -> None:
        """Not at once: another connection is in the middle of something."""
        self._loop.call_soon(self._receive_again)

    def _receive_again(self) -> None:
        if not self.closed:
            self._serve()

    def _readable(self) -> None:
        inbox = self._inbox
        try:
            count = self._socket.recv_into(inbox.space())
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        if count == 0:
            self.close()
            return
        self.last_active_s = self._loop.time()
        inbox.received(count)
        self._serve()

    def _serve(self) -> None:
        """Answer every whole frame that is here, until one has to wait. What is answered together is sent together."""
        inbox = self._inbox
        answer_frame = self._answer_frame
        ready: list[Part] = []
        try:
            while not self._sending and self._waiting_for is None:
                frame = inbox.next_frame()
                if frame is None:
                    break
                answer = answer_frame(frame, self.peer)
                if isinstance(answer, Unanswered):
                    self._wait_for(answer)
                elif answer is not None:
                    ready += answer
                    if len(ready) >= PARTS_HELD_MAX:
                        self._send(ready)
                        ready = []
            if ready:
                self._send(ready)
        except ProtocolViolation as wrong:
            self._refuse(wrong, ready)
            return
        except OSError as wrong:
            self._lost(wrong)
            return
        self._set_reading(inbox.keep() and not (inbox.is_full() and (self._sending or self._waiting_for is not None)))

    def _refuse(self, wrong: ProtocolViolation, ready: list[Part]) -> None:
        """End the connection, but not before what was answered in order is on its way."""
        log.warning("closing connection from %s: %s", self.peer, wrong)
        try:
            if ready:
                self._outbox.send(ready)
        except OSError as lost:
            log.debug("connection from %s lost: %s", self.peer, lost)
        self.close()

    def _set_reading(self, wanted: bool) -> None:
        if wanted is self._reading or self.closed:
            return
        self._reading = wanted
        if wanted:
            self._loop.add_reader(self._socket.fileno(), self._readable)
        else:
            self._loop.remove_reader(self._socket.fileno())

    def _wait_for(self, answer: Unanswered) -> None:
        self._waiting_for = answer
        answer.future.add_done_callback(self._answered)

    def _answered(self, _: object) -> None:
        answer, self._waiting_for = self._waiting_for, None
        assert answer is not None, "only what was waited for can arrive"
        if self.closed:
            # Nobody hears a failure of an abandoned request, but asking keeps it from being reported as unheard.
            answer.future.cancelled() or answer.future.exception()
            return
        try:
            parts = answer.parts()
            if parts is not None:
                self._send(parts)
        except ProtocolViolation as wrong:
            self._refuse(wrong, [])
            return
        except OSError as wrong:
            self._lost(wrong)
            return
        self._serve()

    def _send(self, parts: list[Part]) -> None:
        if not self._outbox.send(parts) and not self._sending:
            self._sending = True
            self._loop.add_writer(self._socket.fileno(), self._writable)

    def _writable(self) -> None:
        try:
            if not self._outbox.flush():
                return
        except OSError as wrong:
            self._lost(wrong)
            return
        self.last_active_s = self._loop.time()
        self._loop.remove_writer(self._socket.fileno())
        self._sending = False
        self._serve()

    def _lost(self, wrong: OSError) -> None:
        """The peer went away: an everyday event, not a fault."""
        log.debug("connection from %s lost: %s", self.peer, wrong)
        self.close()

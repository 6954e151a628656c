"""A connection that was secured: over TLS, with a login, or both. What a plain one does not need is here."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

from moldau.broker.context import Peer
from moldau.broker.network.connection import Connection
from moldau.broker.network.inbox import Inbox
from moldau.broker.network.outbox import Outbox, Part
from moldau.broker.network.refusals import Refusals
from moldau.broker.network.secured.login_inbox import LoginInbox
from moldau.broker.network.secured.strangers import LOGIN_S_MAX, Strangers
from moldau.broker.network.turns import Turns
from moldau.broker.requests.dispatch import Dispatch
from moldau.broker.requests.logging_in import LoginGate
from moldau.core.errors import ProtocolViolation
from moldau.security.principals import Principal
from moldau.security.tls.outbox import TlsOutbox
from moldau.security.tls.session import RECORDS_PER_CALL_MAX, STRANGERS_RECORDS_PER_CALL, TlsSession


class SecuredConnection(Connection):
    __slots__ = ("_awaits_turn", "_deadline", "_gate", "_of_known", "_session", "_strangers")

    def __init__(
        self,
        stream: socket.socket | TlsSession,
        peer: Peer,
        *,
        gate: LoginGate | None,
        dispatch: Dispatch,
        inbox: Inbox,
        turns: Turns,
        refusals: Refusals,
        loop: asyncio.AbstractEventLoop,
        on_close: Callable[[Any], None],
        scratch: memoryview,
        strangers: Strangers,
        until_s: float,
    ) -> None:
        """`scratch` is for what is encrypted, and is shared by the connections of a loop.

        Who has to log in has to have done so by `until_s` of the loop's time.
        """
        self._gate = gate
        self._awaits_turn = False
        self._strangers = strangers
        self._deadline: asyncio.TimerHandle | None = None
        self._of_known = loop, turns
        self._session = stream if isinstance(stream, TlsSession) else None
        if gate is not None:
            apart: Any = strangers.turns(loop)
            loop = turns = apart
            if self._session is not None:
                self._session.records_per_call = STRANGERS_RECORDS_PER_CALL
        outbox = None if self._session is None else cast("Outbox", TlsOutbox(self._session, scratch))
        super().__init__(
            cast("socket.socket", stream),
            peer,
            dispatch=dispatch if gate is None else cast("Dispatch", gate),
            inbox=inbox,
            turns=turns,
            refusals=refusals,
            loop=loop,
            on_close=on_close,
            outbox=outbox,
        )
        if gate is not None:
            gate.on_login = self._logged_in
            self._deadline = self._of_known[0].call_at(until_s, self.give_up, f"no login within {LOGIN_S_MAX:.0f} s")
            strangers.add(self)
        if isinstance(inbox, LoginInbox):
            inbox.on_evicted = self._evicted
        self._receive_pending_soon()  # what came with the last words of the handshake

    def close(self) -> None:
        if isinstance(self._inbox, LoginInbox):
            self._inbox.on_evicted = None
        if self._gate is not None:
            self._gate.on_login = None  # else each stranger is a cycle, and thousands of them are long collections
        self._is_no_stranger()
        super().close()

    def _evicted(self) -> None:
        """What it sent is gone, so nothing more is read. Closed in its turn: another connection has this one."""
        self._reading = False
        self._loop.remove_reader(self._socket.fileno())
        self._loop.call_soon(self.give_up, "others before a login need the memory of its frame, and it began first")

    def give_up(self, why: str) -> None:
        if not self.closed:
            self._refusals.not_admitted(self.peer, why)
            self.close()

    def _is_no_stranger(self) -> None:
        self._strangers.discard(self)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _logged_in(self, principal: Principal) -> None:
        self._is_no_stranger()
        self._leave_strangers()
        self.peer = replace(self.peer, principal=principal)

    def _leave_strangers(self) -> None:
        loop, turns = self._of_known
        if self._loop is loop:  # it logged in again
            return
        descriptor = self._socket.fileno()
        self._loop.remove_reader(descriptor)
        self._loop.remove_writer(descriptor)
        self._loop, self._turns = loop, turns
        if self._session is not None:
            self._session.records_per_call = RECORDS_PER_CALL_MAX
        if self._reading:
            loop.add_reader(descriptor, self._turn, self._receive)
        if self._sending:
            loop.add_writer(descriptor, self._turn, self._send_more)

    def _take_answer(self) -> bool:
        goes_on = super()._take_answer()
        if self._gate is None or self._gate.failure is None or self.closed:
            return goes_on
        self._refusals.violated(self.peer, ProtocolViolation(printable(self._gate.failure)), "")
        self.close()
        return False

    def _put_away(self, ready: list[Part], now_s: float, *, is_over: bool) -> None:
        super()._put_away(ready, now_s, is_over=is_over)
        self._receive_pending_soon()

    @property
    def _is_stranger(self) -> bool:
        return self._gate is not None and not self._gate.is_known

    def _answered(self, done: object) -> None:
        """Failed logins are answered when their delay is over, which may be that of hundreds at once."""
        if self._is_stranger and not self.closed:
            self._turns.queue(partial(super()._answered, done))
        else:
            super()._answered(done)

    def _receive(self) -> bool:
        goes_on = super()._receive()
        if not goes_on:
            self._receive_pending_soon()  # records that held no data, and others behind them
        return goes_on

    def _receive_pending_soon(self) -> None:
        """What came already: the socket tells nobody of it."""
        session = self._session
        if session is not None and session.has_pending and self._reading and not self.closed:
            self._receive_in_turn()

    def _receive_in_turn(self) -> None:
        """Behind others that have much to do."""
        if not self._awaits_turn:
            self._awaits_turn = True
            self._turns.queue(self._go_on_receiving)

    def _go_on_receiving(self) -> None:
        self._awaits_turn = False
        self._turn(self._receive_now)

    def _receive_now(self) -> bool:
        return self._reading and not self._is_finishing and self._receive()


def printable(text: str) -> str:
    """A line of the log: what a client wrote must not end it."""
    return "".join(each if each.isprintable() else "?" for each in text)[:500]

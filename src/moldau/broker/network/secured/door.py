"""How clients come in by a listener that is not plain: TLS first, then the login, as far as the listener has them."""

from __future__ import annotations

import logging
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from moldau.broker.context import Peer
from moldau.broker.network.inbox import Inbox
from moldau.broker.network.listener import Guest, Hall
from moldau.broker.network.secured.authentications import Authentications
from moldau.broker.network.secured.connection import SecuredConnection
from moldau.broker.network.secured.handshakes import Handshake, ListenerTls
from moldau.broker.network.secured.login_inbox import LoginInbox, LoginMemory
from moldau.broker.network.secured.strangers import LOGIN_S_MAX, Strangers
from moldau.broker.requests.logging_in import LoginGate, Logins
from moldau.security.principals import Principal
from moldau.security.tls.outbox import new_scratch
from moldau.security.tls.session import TlsSession

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SecuredDoor:
    tls: ListenerTls | None
    logins: Logins | None
    strangers: Strangers = field(default_factory=Strangers)
    _scratch: memoryview = field(default_factory=new_scratch)
    _login_memory: LoginMemory = field(default_factory=LoginMemory)

    @property
    def authentications(self) -> Authentications:
        """By certificates, or by logins where the listener has them."""
        if self.logins is not None:
            return self.logins.authentications
        assert self.tls is not None, "a listener that is not plain has one of them"
        return self.tls.authentications

    def open(self, loop: AbstractEventLoop, send_known: Callable[[], None]) -> None:
        self.strangers.turns(loop).come_after(send_known)

    def in_turn(self, loop: AbstractEventLoop, do: Callable[[], None]) -> None:
        self.strangers.turns(loop).queue(do)

    def let_in(self, sock: socket.socket, peer: Peer, hall: Hall) -> Guest:
        strangers, until_s = self.strangers, hall.loop.time() + LOGIN_S_MAX
        if self.tls is None:
            return self._connect(sock, peer, hall, until_s)

        def done(handshake: Handshake, session: TlsSession, principal: Principal) -> None:
            strangers.discard(handshake)
            known = replace(peer, principal=principal)
            try:
                secured = self._connect(session, known, hall, until_s)
            except OSError as wrong:  # the kernel watches no more sockets
                LOGGER.debug("connection from %s dropped behind its TLS handshake: %s", peer, wrong)
                session.close()
                hall.on_close(handshake)
                return
            hall.on_secured(handshake, secured)

        def closed(handshake: Handshake) -> None:
            strangers.discard(handshake)
            hall.on_close(handshake)

        begun = Handshake(
            sock,
            peer,
            self.tls,
            refusals=hall.refusals,
            loop=hall.loop,
            turns=strangers.turns(hall.loop),
            on_close=closed,
            on_done=done,
        )
        strangers.add(begun)
        return begun

    def _connect(self, stream: socket.socket | TlsSession, peer: Peer, hall: Hall, until_s: float) -> SecuredConnection:
        frame_bytes_max = hall.allowed.frame_bytes_max
        inbox, gate = Inbox(hall.scratch, frame_bytes_max=frame_bytes_max, budget=hall.budget), None
        if self.logins is not None:
            inbox = LoginInbox(
                hall.scratch, frame_bytes_max=frame_bytes_max, budget=hall.budget, memory=self._login_memory
            )
            gate = LoginGate(self.logins, hall.dispatch, inbox)
        return SecuredConnection(
            stream,
            peer,
            gate=gate,
            dispatch=hall.dispatch,
            inbox=inbox,
            turns=hall.turns,
            refusals=hall.refusals,
            loop=hall.loop,
            on_close=hall.on_close,
            scratch=self._scratch,
            strangers=self.strangers,
            until_s=until_s,
        )

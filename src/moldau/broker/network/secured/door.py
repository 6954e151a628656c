"""How clients come in by a listener that is not plain: TLS first, then the login, as far as the listener has them."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field, replace

from moldau.broker.context import Peer
from moldau.broker.network.inbox import Inbox
from moldau.broker.network.listener import Guest, Hall
from moldau.broker.network.secured.connection import SecuredConnection
from moldau.broker.network.secured.handshakes import Handshake, ListenerTls
from moldau.broker.network.secured.login_inbox import LoginInbox, LoginMemory
from moldau.broker.requests.logging_in import LoginGate, Logins
from moldau.security.principals import Principal
from moldau.security.tls.outbox import new_scratch
from moldau.security.tls.session import TlsSession


@dataclass(frozen=True, slots=True)
class SecuredDoor:
    tls: ListenerTls | None
    logins: Logins | None
    _scratch: memoryview = field(default_factory=new_scratch)
    _login_memory: LoginMemory = field(default_factory=LoginMemory)

    def let_in(self, sock: socket.socket, peer: Peer, hall: Hall) -> Guest:
        if self.tls is None:
            return self._connect(sock, peer, hall)

        def done(handshake: Handshake, session: TlsSession, principal: Principal) -> None:
            hall.on_secured(handshake, self._connect(session, replace(peer, principal=principal), hall))

        return Handshake(
            sock, peer, self.tls, refusals=hall.refusals, loop=hall.loop, on_close=hall.on_close, on_done=done
        )

    def _connect(self, stream: socket.socket | TlsSession, peer: Peer, hall: Hall) -> SecuredConnection:
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
        )

"""TLS handshakes of a listener: each waits on the loop for the other end, and computes in a thread.

A client that says nothing costs a socket; one that stalls in the middle costs some memory until its time is up. When
too many are under way, the one is given up that has waited longest for its other end: an honest one answers within
milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

from moldau.broker.context import Peer
from moldau.broker.network.refusals import Refusals
from moldau.broker.network.secured.authentications import Authentications
from moldau.broker.network.secured.stranger_turns import StrangerTurns
from moldau.core.errors import ProtocolViolation
from moldau.security.principals import ANONYMOUS, Principal
from moldau.security.tls.contexts import LoadedTls
from moldau.security.tls.principal_mapping import NoMatchingRule, PrincipalMapper
from moldau.security.tls.session import HandshakeFailed, TlsSession

LOGGER = logging.getLogger(__name__)

HANDSHAKE_S_MAX = 10.0  # four messages, of which a slow line loses some; librdkafka and Java give up after 10 s, too
HANDSHAKES_MAX = 512  # under way at a time: each has some 60 KiB of OpenSSL's


@dataclass(slots=True)
class ListenerTls:
    """What new handshakes begin with; those under way, and connections, go on with what they began with."""

    loaded: LoadedTls
    mapper: PrincipalMapper
    executor: Executor
    is_principal: bool
    """Whether a certificate says who the client is; where it logs in, the login does."""
    under_way: int = 0
    waiting: dict[Handshake, None] = field(default_factory=dict)
    """For the other end, whoever has waited longest first."""
    authentications: Authentications = field(default_factory=Authentications)

    def begin(self, handshake: Handshake) -> None:
        """An honest client is waited for as long as a message takes; a step that was computed is not to be in vain."""
        self.under_way += 1
        self.waiting[handshake] = None
        if self.under_way > HANDSHAKES_MAX:
            first = next(iter(self.waiting))  # the new one, where all others have work to do
            del self.waiting[first]
            first.give_up_soon("too many TLS handshakes are under way, and this one waited longest")

    def principal_of(self, session: TlsSession) -> Principal:
        if not self.is_principal:
            return ANONYMOUS
        name = session.distinguished_name()
        try:
            return ANONYMOUS if name is None else Principal("User", self.mapper.name_of(name))
        except NoMatchingRule as wrong:
            raise HandshakeFailed(str(wrong)) from None


class Handshake:
    """One connection until it is secured."""

    __slots__ = (
        "_deadline",
        "_loop",
        "_on_close",
        "_on_done",
        "_refusals",
        "_session",
        "_socket",
        "_tls",
        "_turns",
        "_work_under_way",
        "closed",
        "last_active_s",
        "peer",
    )

    def __init__(
        self,
        sock: socket.socket,
        peer: Peer,
        tls: ListenerTls,
        *,
        refusals: Refusals,
        loop: asyncio.AbstractEventLoop,
        turns: StrangerTurns,
        on_close: Callable[[Any], None],
        on_done: Callable[[Handshake, TlsSession, Principal], None],
    ) -> None:
        self.peer = peer
        self.closed = False
        self.last_active_s = monotonic()
        self._socket = sock
        self._session: TlsSession | None = None
        self._tls = tls
        self._refusals = refusals
        self._loop = loop
        self._turns = turns
        self._on_close = on_close
        self._on_done = on_done
        self._work_under_way: Future[Principal | None] | None = None
        turns.add_reader(sock.fileno(), self._go_on)  # may fail, and then there is nothing to undo
        self._deadline = loop.call_later(
            HANDSHAKE_S_MAX, self.give_up, f"no TLS handshake within {HANDSHAKE_S_MAX:.0f} s"
        )
        tls.begin(self)

    @property
    def holds_up_others(self) -> bool:
        return False

    @property
    def waits_for(self) -> None:
        """Nothing was asked yet."""

    @property
    def was_reset(self) -> bool:
        """It watches its socket anew for each step, and is told again."""
        return False

    @property
    def large_frames(self) -> int:
        return 0

    def finish(self) -> asyncio.Future[Any] | None:
        self.close()
        return None

    def close(self) -> None:
        if self.closed:
            return
        self._end()
        self.closed = True
        work = self._work_under_way
        if work is None or work.cancel():  # else a thread uses the descriptor, whose number another could get
            self._hang_up()
        self._on_close(self)

    def give_up_soon(self, why: str) -> None:
        self._loop.call_soon(self.give_up, why)

    def give_up(self, why: str) -> None:
        if not self.closed:
            self._refusals.not_admitted(self.peer, why)
            self.close()

    def _end(self) -> None:
        """Neither waited for nor counted any more."""
        self._deadline.cancel()
        self._tls.under_way -= 1
        self._tls.waiting.pop(self, None)
        if self._work_under_way is None:
            self._ignore_socket()

    def _ignore_socket(self) -> None:
        descriptor = self._socket.fileno()
        self._turns.remove_reader(descriptor)
        self._turns.remove_writer(descriptor)

    @property
    def _stream(self) -> socket.socket | TlsSession:
        return self._socket if self._session is None else self._session

    def _go_on(self) -> None:
        """The socket is ready. The loop leaves it alone while the thread has it."""
        self._ignore_socket()
        self._tls.waiting.pop(self, None)
        self._work_under_way = self._tls.executor.submit(self._work)
        worked = asyncio.wrap_future(self._work_under_way, loop=self._loop)
        worked.add_done_callback(partial(self._turns.call_soon, self._worked))

    def _work(self) -> Principal | None:
        """None while the handshake goes on."""
        if self._session is None:
            self._session = TlsSession(self._socket, self._tls.loaded)
        return self._tls.principal_of(self._session) if self._session.handshake() else None

    def _worked(self, work: asyncio.Future[Principal | None]) -> None:
        self._work_under_way = None
        if self.closed:
            work.cancelled() or work.exception()  # asked for, or asyncio would log that nobody did
            self._hang_up()
        elif work.cancelled():
            self.close()
        elif (wrong := work.exception()) is not None:
            self._fail(wrong)
        elif (principal := work.result()) is not None:
            self._done(principal)
        else:
            self.last_active_s = monotonic()
            self._wait()

    def _wait(self) -> None:
        assert self._session is not None
        self._tls.waiting[self] = None
        wait = self._turns.add_writer if self._session.wants_write else self._turns.add_reader
        wait(self._session.fileno(), self._go_on)

    def _done(self, principal: Principal) -> None:
        assert self._session is not None
        self._end()
        self.closed = True
        self._tls.authentications.succeeded += self._tls.is_principal
        self._on_done(self, self._session, principal)

    def _fail(self, wrong: BaseException) -> None:
        self._tls.authentications.failed += 1
        if isinstance(wrong, ProtocolViolation):
            self._refusals.violated(self.peer, wrong, "")
        elif isinstance(wrong, OSError):
            LOGGER.debug("connection from %s lost in a TLS handshake: %s", self.peer, wrong)
        else:
            self._refusals.failed(self.peer, wrong, "")
        self.close()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.close()

"""Accepting connections on one address, within limits."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
from collections.abc import Callable, Collection
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from moldau.broker.context import Peer
from moldau.broker.network.connection import Connection
from moldau.broker.network.connection_quotas import ConnectionQuotas
from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.inbox import Inbox
from moldau.broker.network.refusals import Refusals
from moldau.broker.network.turns import Turns
from moldau.broker.requests.dispatch import Dispatch
from moldau.core import limits
from moldau.core.repeated_line import RepeatedLine

if TYPE_CHECKING:
    from moldau.broker.network.host_rates import HostRates
    from moldau.broker.network.secured.authentications import Authentications
    from moldau.wire.api import ApiKey

LOGGER = logging.getLogger(__name__)

_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ACCEPTS_PER_TURN = 64  # a flood of connections must not keep the others from being served
_STRANGERS_ACCEPTED_AT_ONCE = 2  # half of the time that strangers have
_PAUSE_S = 0.1
_THROTTLED_MAX = 100  # connections of hosts that connect too fast, which are held for a moment; others end at once
_WORK_S_MAX = 20.0  # for requests under way when the broker stops: 10,000 partitions are made in 13 s
_SEND_S_MAX = 2.0  # for their answers, which a client may never read
_MAPPED_IPV4 = "::ffff:"
_ACCEPT_S_MAX = 0.0005  # in one turn: whoever waits to be let in is told of again
_SWEEPS_PER_IDLE_TIME = 10
_SWEEP_S_MAX = 5.0
_STALL_S_MAX = 30.0  # silence in the middle of a large frame, while others wait for the memory that it holds
_HOLD_S_MAX = 60.0  # all of a large frame meanwhile; its sender gives up after 30 s (Java) or 60 s (librdkafka)


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    idle_ms_max: int = 0
    frame_bytes_max: int = limits.FRAME_BYTES_MAX
    send_buffer_bytes: int = -1


def descriptors_for_connections() -> int:
    """Connections that the process limit on open files allows, while segments keep their share of it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return max(64, soft // 2)


class Guest(Protocol):
    """Whoever came in: a connection, or one that is still being made."""

    peer: Peer
    last_active_s: float

    @property
    def holds_up_others(self) -> bool: ...

    @property
    def large_frames(self) -> int: ...

    @property
    def waits_for(self) -> ApiKey | None: ...

    @property
    def was_reset(self) -> bool: ...

    def close(self) -> None: ...

    def finish(self) -> asyncio.Future[Any] | None: ...


class Hall(NamedTuple):
    """What a listener gives to those who come in."""

    dispatch: Dispatch
    allowed: ConnectionLimits
    scratch: memoryview
    budget: FrameBudget
    turns: Turns
    refusals: Refusals
    loop: asyncio.AbstractEventLoop
    on_close: Callable[[Guest], None]
    on_secured: Callable[[Guest, Guest], None]
    """The second takes the place of the first, whose handshake is done."""


class Door(Protocol):
    """What a listener has before its connections, if it is not plain."""

    def open(self, loop: asyncio.AbstractEventLoop, send_known: Callable[[], None]) -> None:
        """`send_known` sends what those were answered who are no strangers to this door."""

    def in_turn(self, loop: asyncio.AbstractEventLoop, do: Callable[[], None]) -> None:
        """Call it when strangers have their turn."""

    def let_in(self, sock: socket.socket, peer: Peer, hall: Hall) -> Guest: ...

    @property
    def authentications(self) -> Authentications: ...


class Listener:
    """A listening socket and the connections that came in by it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.host = ""
        self.port = 0
        self._dispatch: Dispatch | None = None
        self._allowed = ConnectionLimits()
        self._budget = FrameBudget()
        self._quotas = ConnectionQuotas()
        self._full = RepeatedLine(LOGGER, logging.WARNING)
        self._no_descriptors = RepeatedLine(LOGGER, logging.WARNING)
        self._connections: set[Guest] = set()
        self._held_since_s: dict[tuple[Guest, int], float] = {}  # large frames, since others wait for their memory
        self._throttled: set[socket.socket] = set()  # accepted and not served, for their hosts connect too fast
        self.refusals = Refusals()
        self._scratch = memoryview(bytearray(limits.RECEIVE_BYTES))
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turns: Turns | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._swept_s = 0.0
        self._is_empty: asyncio.Event | None = None
        self._door: Door | None = None
        self._accept_is_due = False

    def bind(self, host: str, port: int, *, backlog: int = 1024, receive_buffer_bytes: int = -1) -> None:
        """Take the address, so that a wrong one is known before anything else starts. Nobody is answered yet."""
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.setblocking(False)
            if receive_buffer_bytes > 0:
                # On the listening socket, because the window that a connection may have is agreed on as it is made.
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            listening.bind(address)
            listening.listen(backlog)
        except OSError:
            listening.close()
            raise
        self._socket = listening
        self.host, self.port = listening.getsockname()[:2]

    @property
    def guests(self) -> Collection[Guest]:
        return self._connections

    @property
    def authentications(self) -> Authentications | None:
        """None where nobody has to prove anything."""
        return None if self._door is None else self._door.authentications

    def start(
        self,
        dispatch: Dispatch,
        allowed: ConnectionLimits,
        budget: FrameBudget,
        quotas: ConnectionQuotas,
        door: Door | None = None,
    ) -> None:
        assert self._socket is not None, "bind comes before start"
        self._quotas, self._door = quotas, door
        self._dispatch, self._allowed, self._budget = dispatch, allowed, budget
        self._loop = asyncio.get_running_loop()
        self._turns = Turns(self._loop)
        if door is not None:
            door.open(self._loop, self._turns.send_now)
        self._accept_again()
        quotas.when_exceeded(self.name, self._close_most_idle)
        self._sweep_later()

    def stop_accepting(self) -> None:
        if self._socket is not None and self._loop is not None:
            self._loop.remove_reader(self._socket.fileno())
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._sweep is not None:
            self._sweep.cancel()

    async def finish(self) -> None:
        """Let go of everybody, but not before requests under way are answered: half of one may be done already."""
        self.stop_accepting()
        self._is_empty = asyncio.Event()
        begun = [future for one in tuple(self._connections) if (future := one.finish()) is not None]
        if begun:
            _, late = await asyncio.wait(begun, timeout=_WORK_S_MAX)
            if late:
                LOGGER.warning(
                    "%d requests given up, which took more than %.0f s since the stop", len(late), _WORK_S_MAX
                )
        if self._connections:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_empty.wait(), _SEND_S_MAX)
        self.close()

    def close(self) -> None:
        self.stop_accepting()
        for connection in tuple(self._connections):
            connection.close()
        for sock in tuple(self._throttled):
            self._hang_up_on(sock)

    def _accept_soon(self) -> None:
        assert self._loop is not None
        assert self._door is not None
        if not self._accept_is_due:
            self._accept_is_due = True
            self._door.in_turn(self._loop, self._accept_strangers)

    def _accept_strangers(self) -> None:
        self._accept_is_due = False
        if self._socket is not None:
            self._accept()

    def _accept(self) -> None:
        assert self._socket is not None
        assert self._loop is not None
        until_s = monotonic() + _ACCEPT_S_MAX
        for _ in range(_ACCEPTS_PER_TURN if self._door is None else _STRANGERS_ACCEPTED_AT_ONCE):
            if self._must_wait() or monotonic() >= until_s:
                return
            try:
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as wrong:
                if wrong.errno not in _NO_DESCRIPTORS:
                    raise
                self._no_descriptors.say(f"not accepting on {self.name} for {_PAUSE_S} s: {wrong.strerror}")
                self._pause(_PAUSE_S)
                return
            self._admit(sock, Peer(self.name, address[0].removeprefix(_MAPPED_IPV4), address[1]))

    def _must_wait(self) -> bool:
        """Whether a limit keeps us from accepting now; then the time to go on is arranged."""
        assert self._loop is not None
        full = self._quotas.full(self.name)
        if full is not None:
            self._full.say(f"not accepting on {self.name} until a connection is closed: {full}")
            self._pause(None)
            return True
        wait_s = self._quotas.wait_s(self.name, self._loop.time())
        if wait_s > 0:
            self._pause(wait_s)
        return wait_s > 0

    def _pause(self, seconds: float | None) -> None:
        """Stop accepting for some time, or until there is room again."""
        assert self._socket is not None
        assert self._loop is not None
        self._loop.remove_reader(self._socket.fileno())
        if seconds is None:
            self._quotas.when_free(self._accept_again)
        else:
            self._loop.call_later(seconds, self._accept_again)

    def _accept_again(self) -> None:
        if self._socket is not None and self._loop is not None:
            self._loop.add_reader(self._socket.fileno(), self._accept if self._door is None else self._accept_soon)

    def _admit(self, sock: socket.socket, peer: Peer) -> None:
        allowed = self._allowed
        if self._quotas.host_rates is not None and self._is_throttled(sock, peer, self._quotas.host_rates):
            return
        if self._quotas.has_too_many(peer.host):
            most = self._quotas.most_of(peer.host)
            why = f"its host has {most} connections, the most allowed (max.connections.per.ip)"
            self.refusals.not_admitted(peer, why)
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if allowed.send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, allowed.send_buffer_bytes)
        assert self._loop is not None
        assert self._dispatch is not None
        assert self._turns is not None
        self._quotas.opened(self.name, peer.host, self._loop.time())
        try:
            self._connections.add(self._guest(sock, peer, self._hall(self._dispatch, self._turns, self._loop)))
        except OSError as wrong:  # the kernel watches no more sockets; nothing of this one may stay behind
            self._no_descriptors.say(f"a connection on {self.name} is dropped: {wrong.strerror}")
            self._quotas.closed(self.name, peer.host)
            sock.close()

    def _guest(self, sock: socket.socket, peer: Peer, hall: Hall) -> Guest:
        if self._door is not None:
            return self._door.let_in(sock, peer, hall)
        return Connection(
            sock,
            peer,
            dispatch=hall.dispatch,
            inbox=Inbox(hall.scratch, frame_bytes_max=hall.allowed.frame_bytes_max, budget=hall.budget),
            turns=hall.turns,
            refusals=hall.refusals,
            loop=hall.loop,
            on_close=hall.on_close,
        )

    def _is_throttled(self, sock: socket.socket, peer: Peer, rates: HostRates) -> bool:
        """Whether its host connects too fast; then it is hung up on when the time to pause is over."""
        assert self._loop is not None
        wait_s = rates.wait_s(peer.host, self._loop.time())
        if wait_s <= 0:
            return False
        self.refusals.not_admitted(peer, "its host connects too fast (connection_creation_rate)")
        if len(self._throttled) >= _THROTTLED_MAX:
            sock.close()
        else:
            self._throttled.add(sock)
            self._loop.call_later(wait_s, self._hang_up_on, sock)
        return True

    def _hang_up_on(self, sock: socket.socket) -> None:
        self._throttled.discard(sock)
        sock.close()

    def _hall(self, dispatch: Dispatch, turns: Turns, loop: asyncio.AbstractEventLoop) -> Hall:
        own = self._allowed, self._scratch, self._budget
        return Hall(dispatch, *own, turns, self.refusals, loop, on_close=self._forget, on_secured=self._replace)

    def _replace(self, one: Guest, by: Guest) -> None:
        self._connections.discard(one)
        self._connections.add(by)

    def _forget(self, connection: Guest) -> None:
        self._connections.discard(connection)
        connection.peer.client.is_connected = False
        self._quotas.closed(self.name, connection.peer.host)
        if self._is_empty is not None and not self._connections:
            self._is_empty.set()

    def _close_most_idle(self) -> None:
        connection = min(self._connections, key=lambda one: one.last_active_s)
        why = "another listener needs its place (max.connections)"
        self.refusals.not_admitted(connection.peer, why)
        connection.close()

    def _sweep_later(self) -> None:
        assert self._loop is not None
        idle_s = self._allowed.idle_ms_max / 1000
        pause_s = max(0.1, min(idle_s / _SWEEPS_PER_IDLE_TIME, _SWEEP_S_MAX)) if idle_s > 0 else _SWEEP_S_MAX
        self._sweep = self._loop.call_later(pause_s, self._close_idle)

    def _close_idle(self) -> None:
        now_s = monotonic()
        if self._allowed.idle_ms_max > 0:
            oldest_s = now_s - self._allowed.idle_ms_max / 1000
            for connection in [one for one in self._connections if one.last_active_s < oldest_s]:
                LOGGER.debug("closing idle connection from %s", connection.peer)
                connection.close()
        # Whoever was silent since the last look is watched, and has nothing that a reset could hide behind.
        for connection in [one for one in self._connections if one.last_active_s >= self._swept_s and one.was_reset]:
            LOGGER.debug("connection from %s was reset", connection.peer)
            connection.close()
        self._swept_s = now_s
        self._close_holders(now_s)
        self._sweep_later()

    def _close_holders(self, now_s: float) -> None:
        """Nobody keeps memory that others wait for by sending nothing, or a byte now and then."""
        holders = [one for one in self._connections if one.holds_up_others] if self._budget.is_short else []
        frames = [(one, one.large_frames) for one in holders]
        self._held_since_s = {frame: self._held_since_s.get(frame, now_s) for frame in frames}
        for frame, since_s in self._held_since_s.items():
            connection = frame[0]
            if connection.last_active_s < now_s - _STALL_S_MAX:
                why = "silent in the middle of a large frame"
            elif since_s < now_s - _HOLD_S_MAX:
                why = "too slow with a large frame while others wait for memory"
            else:
                continue
            LOGGER.warning("closing connection from %s: %s", connection.peer, why)
            connection.close()

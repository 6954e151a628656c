"""Strangers at a broker with TLS and logins, for `python -m bench.attackers --secured`.

The well-behaved client speaks TLS 1.3 and has logged in by SCRAM. Strangers come by the same listener, and those who
fail to log in as fast as they can by one without TLS, where a handshake does not slow them down.

Attackers share the client's core, and what the kernel does for them there goes before the client. So each attack is
made twice: on another broker, which has that core with the attackers, and on the client's own. What the two differ by
is what the attack does to a broker; what the first differs from quiet by is what it does to a machine of two cores.
"""

from __future__ import annotations

import base64
import contextlib
import os
import selectors
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from bench.attackers import CLIENTS_CORE, OWN, Attack, Attacked, create, place, run
from moldau.security.sasl.scram.client import ScramClient
from moldau.security.sasl.scram.credential import ScramMechanism
from moldau.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.hostile.attacker import Address, Attacker, frame
from tests.hostile.raw_tls import DATA, RawTls
from tests.node.securing.secured import PASSWORDS, Secured, running_secured

FAILURES_PER_S = 1_000
AT_ONCE_MAX = 100
STALLED = 600
TLS13 = ssl.TLSVersion.TLSv1_3
BEGUN_FRAME = (500_000).to_bytes(4, "big")


class Strangers:
    """What attacks need to know of the broker; each is a method that a process of its own runs."""

    def __init__(self, secured: Secured) -> None:
        self.trusted = Path(secured.keys.trusted)
        self.plain = address_of(secured, "SASL_PLAINTEXT")

    @property
    def every(self) -> list[Attack]:
        return [
            self.stalled_handshakes,
            self.handshakes_and_nothing_more,
            self.garbage_instead_of_tls,
            self.oversized_first_frames,
            self.half_of_a_first_frame,
            self.failed_logins_by_plain,
            self.failed_logins_by_scram,
            self.failed_logins_by_token,
            self.large_tokens,
            self.key_updates,
            self.key_updates_between_bytes,
            self.one_byte_in_a_record,
        ]

    def stalled_handshakes(self, address: Address, stop: Event) -> None:
        """More than may be under way; whoever is given up comes again."""
        crowd: list[socket.socket] = []
        while not stop.is_set():
            with contextlib.suppress(OSError):
                one = socket.create_connection(address, 5)
                one.send(b"\x16\x03\x01")
                crowd.append(one)
            if len(crowd) > STALLED:
                crowd.pop(0).close()
                time.sleep(0.001)

    def handshakes_and_nothing_more(self, address: Address, stop: Event) -> None:
        context = ssl.create_default_context(cafile=str(self.trusted))
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(address, 5) as plain:
                context.wrap_socket(plain, server_hostname="localhost").close()

    def garbage_instead_of_tls(self, address: Address, stop: Event) -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(address, 5) as one:
                one.sendall(bytes(range(256)) * 16)
                one.recv(100)

    def oversized_first_frames(self, address: Address, stop: Event) -> None:
        """Announced as larger than may be, after a handshake of TLS."""
        context = ssl.create_default_context(cafile=str(self.trusted))
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(address, 5) as plain:
                one = context.wrap_socket(plain, server_hostname="localhost")
                one.sendall(struct.pack(">i", 2**31 - 1) + bytes(1_000))
                one.recv(100)
                one.close()

    def half_of_a_first_frame(self, _: Address, stop: Event) -> None:
        """As large as may be, and never whole."""
        half = struct.pack(">i", 524_288) + bytes(500_000)
        crowd: list[Attacker] = []
        while not stop.is_set():
            with contextlib.suppress(OSError):
                crowd.append(Attacker(self.plain, wait_s=2))
                crowd[-1].send(half)
            if len(crowd) > STALLED:
                crowd.pop(0).__exit__()

    def key_updates(self, address: Address, stop: Event) -> None:
        self._flood(address, stop, lambda peer: b"".join(peer.key_update() for _ in range(2_000)))

    def key_updates_between_bytes(self, address: Address, stop: Event) -> None:
        """With a byte now and then, which no limit of records in a row ends."""

        def made(peer: RawTls) -> bytes:
            between = (
                b"".join([*(peer.key_update() for _ in range(7)), peer.record(DATA, b"x")]) for _ in range(2_000)
            )
            return peer.record(DATA, BEGUN_FRAME) + b"".join(between)

        self._flood(address, stop, made)

    def one_byte_in_a_record(self, address: Address, stop: Event) -> None:
        self._flood(
            address,
            stop,
            lambda peer: b"".join([peer.record(DATA, BEGUN_FRAME), *(peer.record(DATA, b"x") for _ in range(20_000))]),
        )

    def _flood(self, address: Address, stop: Event, made: Callable[[RawTls], bytes]) -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError, AssertionError), socket.create_connection(address, 5) as one:
                one.sendall(made(RawTls(one, self.trusted, TLS13)))

    def failed_logins_by_plain(self, _: Address, stop: Event) -> None:
        burst = frame(SaslHandshakeRequest("PLAIN"), 1) + frame(SaslAuthenticateRequest(b"\0alice\0wrong"), 2)
        self._fail(stop, [burst])

    def failed_logins_by_scram(self, _: Address, stop: Event) -> None:
        first = b"n,,n=alice,r=a-nonce"
        begin = frame(SaslHandshakeRequest("SCRAM-SHA-512"), 1) + frame(SaslAuthenticateRequest(first), 2)
        last = b"c=biws,r=%s,p=" + base64.b64encode(bytes(64))
        self._fail(stop, [begin, last])

    def failed_logins_by_token(self, _: Address, stop: Event) -> None:
        self._fail(stop, [bearer(b'{"alg":"RS256"}', bytes(256))])

    def large_tokens(self, _: Address, stop: Event) -> None:
        """As fast as they can be sent, with a header whose JSON takes long, and nobody waits for an answer."""
        burst = bearer(b'{"alg":"RS256","a":[' + b",".join([b"{}"] * 8_100) + b"]}", b"none")
        crowd: list[socket.socket] = []
        while not stop.is_set():
            with contextlib.suppress(OSError):
                crowd.append(socket.create_connection(self.plain, 5))
                crowd[-1].sendall(burst)
            if len(crowd) > AT_ONCE_MAX:
                crowd.pop(0).close()

    def _fail(self, stop: Event, messages: list[bytes]) -> None:
        """A thousand a second, if the broker answers so many."""
        with selectors.DefaultSelector() as waiting:
            begun_s, begun = time.monotonic(), 0
            while not stop.is_set():
                due = int((time.monotonic() - begun_s) * FAILURES_PER_S) - begun
                for _ in range(min(due, AT_ONCE_MAX)):
                    begun += 1
                    one = socket.create_connection(self.plain, 5)
                    one.sendall(messages[0])
                    one.setblocking(False)
                    waiting.register(one, selectors.EVENT_READ, messages[1:])
                go_on(waiting)


def bearer(header: bytes, signature: bytes) -> bytes:
    """A login with a token that no key of the broker signed."""
    token = b".".join(base64.urlsafe_b64encode(each).rstrip(b"=") for each in (header, b"{}", signature))
    first = b"n,,\x01auth=Bearer " + token + b"\x01\x01"
    return frame(SaslHandshakeRequest("OAUTHBEARER"), 1) + frame(SaslAuthenticateRequest(first), 2)


def go_on(waiting: selectors.BaseSelector) -> None:
    for key, _ in waiting.select(0.001):
        one = key.fileobj
        assert isinstance(one, socket.socket)
        told = b""
        with contextlib.suppress(OSError):
            told = one.recv(4096)
        if told and key.data and b"r=a-nonce" in told:
            nonce = told.split(b"r=", 1)[1].split(b",", 1)[0]
            with contextlib.suppress(OSError):
                one.sendall(frame(SaslAuthenticateRequest(key.data[0] % nonce), 2))
            waiting.modify(one, selectors.EVENT_READ, ())
        elif not told:
            waiting.unregister(one)
            one.close()


def address_of(secured: Secured, protocol: str) -> Address:
    found = secured.broker.addresses[protocol]
    return found.host, found.port


def known_client(secured: Secured) -> Attacker:
    """Over TLS, logged in by SCRAM."""
    client = Attacker(address_of(secured, "SASL_SSL"))
    context = ssl.create_default_context(cafile=str(secured.keys.trusted))
    client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
    client.ask(SaslHandshakeRequest("SCRAM-SHA-512"), 1)
    step = ScramClient(ScramMechanism.SHA_512, "alice", PASSWORDS["alice"], "client-nonce").evaluate(b"")
    while step is not None:
        answer = client.ask(SaslAuthenticateRequest(step.token), 2)
        assert answer.error_code == 0, answer
        step = step.next.evaluate(bytes(answer.auth_bytes))
    return client


def run_all(names: list[str], how: dict[str, Any], *, is_alone: bool) -> int:
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as next_door,
        running_secured(Path(folder)) as secured,
        running_secured(Path(next_door)) as neighbour,
    ):
        pairs = zip(Strangers(secured).every, Strangers(neighbour).every, strict=True)
        wanted = [pair for pair in pairs if not names or pair[0].__name__ in names]
        connect = partial(known_client, secured)
        with connect() as client:
            create(client, OWN)
        place(secured.broker.pid, is_alone=is_alone)
        os.sched_setaffinity(neighbour.broker.pid, {CLIENTS_CORE})
        attacked = [
            Attacked(attack, address_of(secured, "SASL_SSL"), elsewhere, address_of(neighbour, "SASL_SSL"))
            for attack, elsewhere in wanted
        ]
        return 1 if run(attacked, connect, process_id=secured.broker.pid, **how) else 0

"""Records that are allowed and hold no data: what one call may cost, and when a session ends."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from moldau.core.errors import ProtocolViolation
from moldau.security.tls.session import (
    IDLE_RECORDS_MAX,
    RECEIVE_BYTES,
    RECORDS_FED_MAX,
    RECORDS_PER_CALL_MAX,
    TlsSession,
)
from tests.hostile.raw_tls import ALERT, DATA, HANDSHAKE, USER_CANCELLED, RawTls
from tests.security.tls.test_session import establish, receive, server, sockets, wait
from tests.security.tls.world import World

TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
CLIENT_HELLO = b"\x01\x00\x00\x2b\x03\x03" + bytes(32) + b"\x00\x00\x02\xc0\x2c\x01\x00\x00\x00"
VIEW = memoryview(bytearray(1 << 18))


@contextmanager
def raw(
    world: World, version: ssl.TLSVersion = TLS13, ends: tuple[socket.socket, socket.socket] | None = None
) -> Iterator[tuple[TlsSession, RawTls]]:
    trusted = world.folder / "trusted.pem"
    trusted.write_bytes(world.authority.certificate_pem())
    with nullcontext(ends) if ends else sockets() as (here, there), ThreadPoolExecutor(1) as pool:
        session = TlsSession(here, server(world))
        shaking = pool.submit(RawTls, there, trusted, version)
        establish(session)
        try:
            yield session, shaking.result(30)
        finally:
            session.close()


def received_by_calls(session: TlsSession, size: int) -> list[int]:
    """How many bytes each call gave."""
    counts: list[int] = []
    while sum(counts) < size:
        try:
            counts.append(session.recv_into(VIEW))
        except BlockingIOError:
            assert not session.has_pending
            wait(session)
    return counts


def test_a_call_goes_through_few_records_of_a_flood(world: World) -> None:
    """Key updates with a byte in between, so that nothing is wrong with any of them."""
    between = IDLE_RECORDS_MAX - RECORDS_FED_MAX
    with raw(world) as (session, peer):
        peer.socket.sendall(
            b"".join(
                b"".join([*(peer.key_update() for _ in range(between)), peer.record(DATA, b"x")]) for _ in range(200)
            )
        )
        counts = received_by_calls(session, 200)
    assert max(counts) <= RECORDS_PER_CALL_MAX // (between + 1) + 1
    assert sum(counts) == 200


def test_a_strangers_call_goes_through_fewer_and_more_are_pending(world: World) -> None:
    with raw(world) as (session, peer):
        session.records_per_call = 4
        updates = 10
        peer.socket.sendall(b"".join(peer.key_update() for _ in range(updates)) + peer.record(DATA, b"x"))
        wait(session)
        for _ in range(updates // 4):
            with pytest.raises(BlockingIOError):
                session.recv_into(VIEW)
            assert session.has_pending
        assert session.recv_into(VIEW) == 1
        assert not session.has_pending


def test_tiny_records_are_all_read_and_few_of_them_at_a_time(world: World) -> None:
    with raw(world) as (session, peer):
        peer.socket.sendall(b"".join(peer.record(DATA, b"x") for _ in range(1_000)))
        counts = received_by_calls(session, 1_000)
    assert max(counts) <= RECORDS_PER_CALL_MAX


FLOODS: dict[str, Any] = {
    "key updates": (TLS13, lambda peer: peer.key_update()),
    "key updates that ask for one": (TLS13, lambda peer: peer.key_update(requested=True)),
    "empty records": (TLS13, lambda peer: peer.record(DATA, b"")),
    "empty records of TLS 1.2": (TLS12, lambda peer: peer.record(DATA, b"")),
    "warnings": (TLS13, lambda peer: peer.record(ALERT, USER_CANCELLED)),
    "warnings of TLS 1.2": (TLS12, lambda peer: peer.record(ALERT, USER_CANCELLED)),
    "renegotiations": (TLS12, lambda peer: peer.record(HANDSHAKE, CLIENT_HELLO)),
    "hellos": (TLS13, lambda peer: peer.record(HANDSHAKE, CLIENT_HELLO)),
    "changes of the cipher": (TLS13, lambda _: b"\x14\x03\x03\x00\x01\x01"),
    "changes of the cipher in TLS 1.2": (TLS12, lambda _: b"\x14\x03\x03\x00\x01\x01"),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_of_records_without_data_ends_the_session(world: World, flood: str) -> None:
    version, make = FLOODS[flood]
    with raw(world, version) as (session, peer):
        peer.socket.sendall(b"".join(make(peer) for _ in range(2 * IDLE_RECORDS_MAX)))
        with pytest.raises(ProtocolViolation, match=r"^TLS: "):
            received_by_calls(session, 1)


@pytest.mark.parametrize("requested", [False, True])
def test_a_key_update_now_and_then_is_taken(world: World, requested: bool) -> None:
    with raw(world) as (session, peer):
        for number in range(3 * IDLE_RECORDS_MAX):
            peer.socket.sendall(peer.key_update(requested=requested) + peer.record(DATA, b"%3d" % number))
            assert receive(session, 3) == b"%3d" % number
            assert session.send(b"answer") == 6
            assert session.flush()


def test_who_asks_for_renegotiations_and_reads_no_answer_is_hung_up_on(world: World) -> None:
    """Each is refused with an alert, which must not gather without end."""
    here, there = socket.socketpair()
    here.setblocking(False)
    with here, there, raw(world, TLS12, (here, there)) as (session, peer):
        here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        with pytest.raises(ProtocolViolation, match="reads none"):
            ask_again_and_again(session, peer)


def ask_again_and_again(session: TlsSession, peer: RawTls) -> None:
    for _ in range(10_000):
        peer.socket.sendall(peer.record(HANDSHAKE, CLIENT_HELLO) + peer.record(DATA, b"x"))
        received_by_calls(session, 1)


def test_what_is_kept_of_a_record_that_does_not_end_is_the_record(world: World) -> None:
    with raw(world) as (session, peer):
        whole = b"".join(peer.record(DATA, bytes(1_000)) for _ in range(60))
        peer.socket.sendall(whole + peer.record(DATA, bytes(16_000))[:-1])
        assert len(receive(session, 60_000, 1 << 18)) == 60_000
        assert len(session._received) < 16_100 < RECEIVE_BYTES

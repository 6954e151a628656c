"""A session beside real ones: OpenSSL's and Java's, clients that stall, lie, flood and vanish."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from moldau.core.errors import ProtocolViolation
from moldau.log.file_range import FileRange
from moldau.security.tls.contexts import LoadedTls, client_tls, server_tls
from moldau.security.tls.outbox import BYTES_PER_TURN_MAX, TlsOutbox, new_scratch
from moldau.security.tls.session import HandshakeFailed, TlsSession
from tests import apache_kafka
from tests.security.tls import judge
from tests.security.tls.world import World

WAIT_S = 30.0
SCRATCH = new_scratch()
OPEN: list[TlsSession] = []


@pytest.fixture(autouse=True)
def _closes_sessions() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def opened(sock: socket.socket, tls: LoadedTls, server_hostname: str | None = None) -> TlsSession:
    session = TlsSession(sock, tls, server_hostname=server_hostname)
    OPEN.append(session)
    return session


def server(world: World, **others: Any) -> LoadedTls:
    return server_tls(world.settings(world.server, **others), now_s=world.now_s)


def client(world: World, *, shows_certificate: bool = False, **others: Any) -> LoadedTls:
    return client_tls(world.settings(world.client if shows_certificate else None, **others), now_s=world.now_s)


@contextlib.contextmanager
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = socket.create_connection(listening.getsockname())
        here, _ = listening.accept()
    with here, there:
        here.setblocking(False)
        there.settimeout(WAIT_S)
        there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield here, there


def wait(session: TlsSession, *, writable: bool = False) -> None:
    ends = [session.fileno()]
    assert any(select.select([] if writable else ends, ends if writable else [], [], WAIT_S)), "nothing came"


def establish(session: TlsSession) -> None:
    """As a listener would, without a loop."""
    while not session.handshake():
        wait(session, writable=session.wants_write)


@contextlib.contextmanager
def connected(tls: LoadedTls, other: LoadedTls) -> Iterator[tuple[TlsSession, ssl.SSLSocket]]:
    """Our session, and Python's own TLS socket at the other end."""
    with sockets() as (here, there), ThreadPoolExecutor(1) as pool:
        session = opened(here, tls)
        wrapping = pool.submit(other.context.wrap_socket, there, server_hostname="localhost")
        establish(session)
        with wrapping.result(WAIT_S) as peer:
            yield session, peer


def receive(session: TlsSession, size: int, view_bytes: int = 4096) -> bytes:
    found, view = bytearray(), memoryview(bytearray(view_bytes))
    while len(found) < size:
        try:
            count = session.recv_into(view)
        except BlockingIOError:
            assert not session.has_pending
            wait(session)
            continue
        assert count
        found += view[:count]
    return bytes(found)


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("view_bytes", [3, 4096, 1 << 20])
def test_bytes_arrive_whatever_the_buffer(world: World, protocol: str, view_bytes: int) -> None:
    sent = os.urandom(300_000)
    tls = server(world, enabled_protocols=(protocol,))
    with connected(tls, client(world)) as (session, peer), ThreadPoolExecutor(1) as pool:
        sending = pool.submit(peer.sendall, sent)
        assert receive(session, len(sent), view_bytes) == sent
        sending.result(WAIT_S)
        assert session.protocol == protocol


def test_what_is_decrypted_already_is_pending(world: World) -> None:
    with connected(server(world), client(world)) as (session, peer):
        peer.sendall(b"abcdef")
        wait(session)
        view = memoryview(bytearray(4))
        assert (session.recv_into(view), bytes(view), session.has_pending) == (4, b"abcd", True)
        assert select.select([session.fileno()], [], [], 0)[0] == []
        assert (session.recv_into(view), bytes(view[:2]), session.has_pending) == (2, b"ef", False)
        with pytest.raises(BlockingIOError):
            session.recv_into(view)


def test_a_request_that_came_with_the_end_of_the_handshake_is_there(world: World) -> None:
    with sockets() as (here, there):
        session = opened(here, server(world))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        peer = client(world).context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            peer.do_handshake()
        there.sendall(outgoing.read())
        wait(session)
        assert not session.handshake()
        incoming.write(there.recv(65_536))
        peer.do_handshake()
        peer.write(b"request")
        there.sendall(outgoing.read())
        wait(session)
        assert session.handshake()
        assert receive(session, 7) == b"request"


def test_parts_and_files_go_out_in_order_with_a_slow_reader(world: World, tmp_path: Path) -> None:
    stored = os.urandom(3 * BYTES_PER_TURN_MAX + 17)
    (tmp_path / "segment").write_bytes(stored)
    with connected(server(world), client(world)) as (session, peer), (tmp_path / "segment").open("rb") as file:
        session._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        outbox = TlsOutbox(session, SCRATCH)
        whole = FileRange(file.fileno(), 5, len(stored) - 5, file)
        parts = [b"head", memoryview(b"more"), FileRange(-1, 0, 0, None), whole, bytearray(b"tail"), b""]
        expected = b"headmore" + stored[5:] + b"tail"
        turns = 0
        with ThreadPoolExecutor(1) as pool:
            is_done = outbox.send(parts)  # type: ignore[arg-type]
            reading = pool.submit(read_all, peer, len(expected))
            while not is_done:
                wait(session, writable=True)
                is_done = outbox.flush()
                turns += 1
            found = reading.result(WAIT_S)
        assert turns > 3
        assert found == expected


def read_all(peer: ssl.SSLSocket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        found += peer.recv(65_536)
    return bytes(found)


def test_a_file_that_became_shorter_ends_the_stream(world: World, tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(b"short")
    with connected(server(world), client(world)) as (session, _), (tmp_path / "segment").open("rb") as file:
        outbox = TlsOutbox(session, SCRATCH)
        with pytest.raises(OSError, match="shorter"):
            outbox.send([FileRange(file.fileno(), 0, 100, file)])


def test_a_socket_that_takes_nothing_more(world: World) -> None:
    with connected(server(world), client(world)) as (session, peer), ThreadPoolExecutor(1) as pool:
        sent, block = 0, b"x" * 100_000
        with contextlib.suppress(BlockingIOError):
            while sent < 1 << 30:
                sent += session.send(block)
        assert sent < 1 << 30
        reading = pool.submit(read_all, peer, sent + len(block))
        left = memoryview(block)
        while left:
            try:
                left = left[session.send(left) :]
            except BlockingIOError:
                wait(session, writable=True)
        assert len(reading.result(WAIT_S)) == sent + len(block)


def test_a_farewell_is_an_end_and_a_cut_is_not(world: World) -> None:
    view = memoryview(bytearray(100))
    with connected(server(world), client(world)) as (session, peer):
        peer.sendall(b"last")
        peer.setblocking(False)
        with pytest.raises(ssl.SSLWantReadError):
            peer.unwrap()
        wait(session)
        assert session.recv_into(view) == 4
        assert session.has_pending, "its end is here, and the socket will not say so"
        assert session.recv_into(view) == 0
        assert session.recv_into(view) == 0
    with connected(server(world), client(world)) as (session, peer):
        peer.sendall(b"last")
        with socket.socket(fileno=peer.detach()) as there:
            there.shutdown(socket.SHUT_WR)
            wait(session)
            assert session.recv_into(view) == 4
            wait(session)
            with pytest.raises(ConnectionError, match="close_notify"):
                session.recv_into(view)


def test_our_farewell_is_understood(world: World) -> None:
    with connected(server(world), client(world)) as (session, peer):
        session.send(b"bye")
        session.shutdown(socket.SHUT_WR)
        assert peer.recv(10) == b"bye"
        assert peer.recv(10) == b""
        session.close()
        session.close()


@pytest.mark.parametrize(("auth", "shows", "expected"), [
    ("none", True, None), ("requested", False, None), ("requested", True, "CN=alice"), ("required", True, "CN=alice"),
])  # fmt: skip
def test_whose_certificate_it_was(world: World, auth: str, shows: bool, expected: str | None) -> None:
    with connected(server(world, client_auth=auth), client(world, shows_certificate=shows)) as (session, _):
        assert session.distinguished_name() == expected


def test_a_session_that_is_resumed_has_the_same_owner(world: World) -> None:
    tls, other = server(world, client_auth="required"), client(world, shows_certificate=True)
    with connected(tls, other) as (session, peer):
        session.send(b"x")
        assert peer.recv(1) == b"x"  # and with it the ticket
        ticket = peer.session
    with sockets() as (here, there), ThreadPoolExecutor(1) as pool:
        session = opened(here, tls)

        def resume() -> ssl.SSLSocket:
            return other.context.wrap_socket(there, server_hostname="localhost", session=ticket)

        wrapping = pool.submit(resume)
        establish(session)
        with wrapping.result(WAIT_S) as peer:
            assert peer.session_reused
            assert session.distinguished_name() == "CN=alice"


def failure(world: World, sent: bytes, tls: LoadedTls | None = None) -> tuple[str, bytes]:
    """What our side says, and the alert that the other side gets."""
    with sockets() as (here, there):
        session = opened(here, tls or server(world))
        there.sendall(sent)
        with pytest.raises(HandshakeFailed) as failed:
            establish(session)
        session.close()
        with contextlib.suppress(ConnectionResetError):  # what it sent was not read to its end
            return str(failed.value), there.recv(100)
        return str(failed.value), b""


def hello(world: World, **others: Any) -> bytes:
    outgoing = ssl.MemoryBIO()
    peer = client(world, **others).context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        peer.do_handshake()
    return outgoing.read()


def test_a_client_without_tls_is_told_from_the_first_byte(world: World) -> None:
    said, alert = failure(world, bytes.fromhex("0000002400120003000000010000") + b"x" * 40)
    assert "security.protocol PLAINTEXT" in said
    assert alert[:1] in (b"\x15", b"")


def test_a_version_that_is_off(world: World) -> None:
    said, alert = failure(
        world, hello(world, enabled_protocols=("TLSv1.2",)), server(world, enabled_protocols=("TLSv1.3",))
    )
    assert said == "unsupported protocol"
    assert alert[:1] == b"\x15"


@pytest.mark.parametrize("name", [b"\x00" * 9, b"\xff\xfe" + b"x" * 7, b"../../etc", b"a..b.c..d"])
def test_garbage_as_the_name_of_the_server(world: World, name: bytes) -> None:
    """Whatever a client calls us: the handshake goes on or ends, and nothing else is raised."""
    sent = hello(world).replace(b"localhost", name)
    with sockets() as (here, there):
        session = opened(here, server(world))
        there.sendall(sent)
        wait(session)
        with contextlib.suppress(HandshakeFailed):
            assert not session.handshake()


def test_an_endless_handshake_ends(world: World) -> None:
    record = b"\x16\x03\x01\x40\x00" + b"\x01\x02\x00\x00" + bytes(16_380)
    with sockets() as (here, there), ThreadPoolExecutor(1) as pool:
        session = opened(here, server(world))
        sending = pool.submit(there.sendall, 20 * record)
        with pytest.raises(HandshakeFailed):
            establish(session)
        session.close()
        with contextlib.suppress(OSError):
            sending.result(WAIT_S)


def test_a_handshake_byte_by_byte(world: World) -> None:
    with sockets() as (here, there):
        session = opened(here, server(world))
        for byte in hello(world):
            there.send(bytes([byte]))
            wait(session)
            assert not session.handshake()
        assert there.recv(5)[0] == 0x16


def test_a_handshake_in_many_records(world: World) -> None:
    """A message may be spread over as many as a client likes."""
    sent = hello(world)
    size = 8
    pieces = [sent[at : at + size] for at in range(5, len(sent), size)]
    with sockets() as (here, there):
        session = opened(here, server(world))
        there.sendall(b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece for piece in pieces))
        wait(session)
        while select.select([there], [], [], 0)[0] == []:
            assert not session.handshake()
        assert there.recv(5)[0] == 0x16


def test_a_client_that_vanishes(world: World) -> None:
    with sockets() as (here, there):
        session = opened(here, server(world))
        there.sendall(hello(world)[:50])
        there.close()
        with pytest.raises(ConnectionError, match="in the middle of a TLS handshake"):
            establish(session)


def test_a_certificate_is_required_and_none_shown(world: World) -> None:
    with sockets() as (here, there), ThreadPoolExecutor(1) as pool:
        session = opened(here, server(world, client_auth="required"))
        wrapping = pool.submit(client(world).context.wrap_socket, there, server_hostname="localhost")
        with pytest.raises(HandshakeFailed, match="peer did not return a certificate"):
            establish(session)
        session.close()
        with wrapping.result(WAIT_S) as peer, pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
            peer.recv(1)


def test_a_suite_of_tls13_that_the_list_leaves_out(world: World) -> None:
    tls = server(world, cipher_suites=("TLS_AES_256_GCM_SHA384",))
    with connected(tls, client(world)) as (session, _):
        assert session.cipher_suite == "TLS_AES_256_GCM_SHA384"
    command = ["openssl", "s_client", "-ciphersuites", "TLS_AES_128_GCM_SHA256", "-connect"]
    with socket.create_server(("127.0.0.1", 0)) as listening, subprocess.Popen(
        [*command, f"127.0.0.1:{listening.getsockname()[1]}"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ):  # fmt: skip
        here, _ = listening.accept()
        with here:
            here.setblocking(False)
            session = opened(here, tls)
            with pytest.raises(HandshakeFailed, match="TLS_AES_128_GCM_SHA256 was negotiated"):
                establish(session)


def test_noise_after_the_handshake(world: World) -> None:
    with connected(server(world), client(world)) as (session, peer):
        raw = peer.detach()
        with socket.socket(fileno=raw) as there:
            there.sendall(b"\x17\x03\x03\x00\x20" + os.urandom(32))
            wait(session)
            with pytest.raises(ProtocolViolation, match=r"^TLS: "):
                session.recv_into(memoryview(bytearray(100)))


@pytest.mark.parametrize("name", ["a..b", "x" * 64, ".leading", ""])
def test_names_that_no_server_has(world: World, name: str) -> None:
    with sockets() as (here, _), pytest.raises(HandshakeFailed, match="can't be the name"):
        opened(here, client(world), server_hostname=name)


def test_both_halves_are_ours_and_the_work_is_done_in_a_thread(world: World) -> None:
    with sockets() as (here, there), ThreadPoolExecutor(2) as pool:
        there.setblocking(False)
        one = opened(here, server(world))
        other = opened(there, client(world), server_hostname="127.0.0.1")
        for done in [pool.submit(establish, each) for each in (one, other)]:
            done.result(WAIT_S)
        one.send(b"to you")
        assert receive(other, 6) == b"to you"


@pytest.mark.skipif(not apache_kafka.available(), reason="needs Java and Apache Kafka's jars")
@pytest.mark.parametrize(("protocol", "kind"), [("TLSv1.2", "PKCS12"), ("TLSv1.3", "PEM")])
def test_java_talks_with_the_stores_that_kafka_reads(world: World, tmp_path: Path, protocol: str, kind: str) -> None:
    (tmp_path / "alice.PKCS12").write_bytes(world.client.pkcs12("changeit"))
    (tmp_path / "alice.PEM").write_bytes(world.client.key_pem() + world.client.certificate_pem())
    (tmp_path / "ca.pem").write_bytes(world.authority.certificate_pem())
    tls = server(world, client_auth="required", enabled_protocols=(protocol,))
    keys = {
        "ssl.keystore.type": kind,
        "ssl.keystore.location": tmp_path / f"alice.{kind}",
        **({"ssl.keystore.password": "changeit"} if kind == "PKCS12" else {}),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": tmp_path / "ca.pem",
    }
    size = 1_000_000
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        listening.settimeout(WAIT_S)
        arguments = ["talk", "localhost", str(port), str(size), *(f"{key}={value}" for key, value in keys.items())]
        with subprocess.Popen([*judge.command(), *arguments], stdout=subprocess.PIPE, text=True) as java:
            here, _ = listening.accept()
            with here:
                here.setblocking(False)
                session = opened(here, tls)
                establish(session)
                assert session.distinguished_name() == "CN=alice"
                outbox = TlsOutbox(session, SCRATCH)
                is_sent = outbox.send([receive(session, size)])
                while not is_sent:
                    wait(session, writable=True)
                    is_sent = outbox.flush()
                said = java.communicate(timeout=WAIT_S)[0]
    assert said.splitlines() == ["own CN=alice", "same", "peer CN=localhost", f"protocol {protocol}"]

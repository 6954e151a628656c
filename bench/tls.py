"""What TLS costs: a stream beside plain sockets, one step of a handshake, and the memory of a connection.

    python -m bench.tls                      everything, with a stream of 1,024 MB (about a minute)
    python -m bench.tls --megabytes 128      a quick try

One end is measured, in CPU of its own process; the other is another process with Python's TLS. `session` is TlsOutbox
over TlsSession with ranges of a file, or TlsSession's recv_into; `sslsocket` is ssl.SSLSocket with the same pieces.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import select
import socket
import ssl
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from bench.stalls import say
from moldau.log.file_range import FileRange
from moldau.security.tls.contexts import LoadedTls, client_tls, server_tls
from moldau.security.tls.issuing import KEY_KINDS, P256, Identity, new_authority, new_client, new_key, new_server
from moldau.security.tls.outbox import PIECE_BYTES, TlsOutbox, new_scratch
from moldau.security.tls.session import RECEIVE_BYTES_MAX, TlsSession
from moldau.security.tls.settings import TlsSettings

MEGABYTE = 1 << 20
FILE_BYTES = 64 * MEGABYTE
SENT_BYTES = 64 << 10
HANDSHAKES = 40
CONNECTIONS = 200
TCP_ULP = 31
NOW = datetime.now(UTC)


def settings(authority: Identity, identity: Identity | None, **others: str) -> TlsSettings:
    given = {"truststore_type": "PEM", "truststore_certificates": authority.certificate_pem().decode(), **others}
    if identity is not None:
        given["keystore_type"] = "PEM"
        given["keystore_key"] = identity.key_pem().decode()
        given["keystore_certificate_chain"] = identity.certificate_pem().decode()
    return TlsSettings(**given)  # type: ignore[arg-type]


def halves(kind: str = P256, client_auth: str = "none") -> tuple[LoadedTls, LoadedTls]:
    authority = new_authority(name="Bench CA", now=NOW)
    server = new_server(authority, hosts=["localhost"], now=NOW, key=new_key(kind))
    client = new_client(authority, name="alice", now=NOW) if client_auth != "none" else None
    server_half = server_tls(settings(authority, server, client_auth=client_auth), now_s=NOW.timestamp())
    return server_half, client_tls(settings(authority, client), now_s=NOW.timestamp())


def wait(sock: socket.socket | TlsSession, *, writable: bool) -> None:
    ends = [sock.fileno()]
    select.select([] if writable else ends, ends if writable else [], [])


def establish(session: TlsSession) -> None:
    while not session.handshake():
        wait(session, writable=session.wants_write)


def other_end(address: tuple[str, int], tls: LoadedTls | None, size: int, *, sends: bool) -> int:
    """A process that reads so many bytes, or sends them; its id."""
    child = os.fork()
    if child == 0:
        sock = socket.create_connection(address)
        if tls is not None:
            sock = tls.context.wrap_socket(sock, server_hostname="localhost")
        buffer, count = bytearray(MEGABYTE), 0
        while count < size:
            count += sock.send(buffer[:SENT_BYTES]) if sends else sock.recv_into(buffer)
        if sends:
            with contextlib.suppress(OSError):
                sock.recv(1)  # until the other end has all of it: a session's ticket left unread would reset it
        os._exit(0)
    return child


def stream(
    name: str,
    talk: Callable[[socket.socket, int, int], None],
    tls: LoadedTls | None,
    size: int,
    *,
    receives: bool = False,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, tempfile.TemporaryFile() as file:
        file.write(os.urandom(FILE_BYTES))
        file.flush()
        child = other_end(listening.getsockname(), tls, size, sends=receives)
        here, _ = listening.accept()
        with here:
            here.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            here.setblocking(False)
            before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
            talk(here, file.fileno(), size)
            took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
        os.waitpid(child, 0)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    each = 1000 * MEGABYTE / size
    rate = size / MEGABYTE / took
    say(f"  {name:<22}{rate:8.0f} MB/s {(user + system) * each:8.3f} ms/MB ({user * each:.3f} + {system * each:.3f})")


def send_plain(sock: socket.socket, fd: int, size: int) -> None:
    sent = 0
    while sent < size:
        at = sent % FILE_BYTES
        try:
            sent += os.sendfile(sock.fileno(), fd, at, min(MEGABYTE, FILE_BYTES - at, size - sent))
        except BlockingIOError:
            wait(sock, writable=True)


def send_session(tls: LoadedTls) -> Callable[[socket.socket, int, int], None]:
    def send(sock: socket.socket, fd: int, size: int) -> None:
        scratch = new_scratch()
        session = TlsSession(sock, tls)
        establish(session)
        outbox = TlsOutbox(session, scratch)
        for at in range(0, size, MEGABYTE):
            is_sent = outbox.send([b"x" * 60, FileRange(fd, at % FILE_BYTES, MEGABYTE - 60, None)])
            while not is_sent:
                wait(session, writable=True)
                is_sent = outbox.flush()

    return send


def receive_session(tls: LoadedTls) -> Callable[[socket.socket, int, int], None]:
    def receive(sock: socket.socket, _: int, size: int) -> None:
        session = TlsSession(sock, tls)
        establish(session)
        view, count = memoryview(bytearray(RECEIVE_BYTES_MAX)), 0
        while count < size:
            try:
                count += session.recv_into(view)
            except BlockingIOError:
                wait(session, writable=False)

        session.close()

    return receive


def receive_sslsocket(tls: LoadedTls) -> Callable[[socket.socket, int, int], None]:
    def receive(sock: socket.socket, _: int, size: int) -> None:
        sock.setblocking(True)
        with tls.context.wrap_socket(sock, server_side=True) as secure:
            secure.setblocking(False)
            view, count = memoryview(bytearray(RECEIVE_BYTES_MAX)), 0
            while count < size:
                try:
                    count += secure.recv_into(view)
                except ssl.SSLWantReadError:
                    wait(secure, writable=False)

    return receive


def send_sslsocket(tls: LoadedTls) -> Callable[[socket.socket, int, int], None]:
    def send(sock: socket.socket, fd: int, size: int) -> None:
        sock.setblocking(True)
        secure = tls.context.wrap_socket(sock, server_side=True)
        secure.setblocking(False)
        piece, sent = memoryview(bytearray(PIECE_BYTES)), 0
        while sent < size:
            count, at = os.preadv(fd, [piece], sent % FILE_BYTES), 0
            while at < count:
                try:
                    at += secure.send(piece[at:count])
                except ssl.SSLWantWriteError:
                    wait(secure, writable=True)
            sent += count
        secure.close()

    return send


def handshakes(kind: str, client_auth: str) -> None:
    """The longest step of the server's half, on the thread that does all else and in a thread of its own."""
    here, there = halves(kind, client_auth)
    with ThreadPoolExecutor(1) as pool:
        steps: dict[str, list[float]] = {"step": [], "cpu": [], "hop": []}
        for index in range(HANDSHAKES):
            one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
            server = here.context.wrap_bio(one, other, server_side=True)
            client = there.context.wrap_bio(other, one, server_hostname="localhost")
            longest = cpu = 0.0
            for _ in range(2):
                _advance(client)
                began, used = time.perf_counter(), time.process_time()
                pool.submit(_advance, server).result() if index % 2 else _advance(server)
                longest, cpu = max(longest, time.perf_counter() - began), cpu + time.process_time() - used
            steps["hop" if index % 2 else "step"].append(longest * 1000)
            if index % 2 == 0:
                steps["cpu"].append(cpu * 1000)
    step, cpu, hop = (f"{statistics.median(values):.2f} ({min(values):.2f})" for values in steps.values())
    say(f"  {kind:<10}client auth {client_auth:<10}{step} on the loop, {hop} by a thread, {cpu} of CPU in all steps")


def _advance(half: ssl.SSLObject) -> None:
    try:
        half.do_handshake()
    except ssl.SSLWantReadError:
        return


def memory() -> None:
    """Of a server's half: fresh, after a large request, and after a large answer."""
    here, there = halves()
    scratch, sizes = new_scratch(), list[int]()
    sessions: list[tuple[TlsSession, ssl.SSLSocket]] = []
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        sizes.append(_resident_kb())
        for _ in range(CONNECTIONS):
            client = socket.create_connection(listening.getsockname())
            sock, _ = listening.accept()
            sock.setblocking(False)
            session = TlsSession(sock, here)
            wrapping = pool.submit(there.context.wrap_socket, client, server_hostname="localhost")
            establish(session)
            sessions.append((session, wrapping.result()))
        sizes.append(_resident_kb())
        for session, peer in sessions:
            peer.sendall(bytes(PIECE_BYTES))
            got, view = 0, memoryview(bytearray(PIECE_BYTES))
            while got < PIECE_BYTES:
                with contextlib.suppress(BlockingIOError):
                    got += session.recv_into(view)
        sizes.append(_resident_kb())
        for session, peer in sessions:
            outbox, got = TlsOutbox(session, scratch), 0
            assert outbox.send([bytes(PIECE_BYTES)])
            while got < PIECE_BYTES:
                got += len(peer.recv(PIECE_BYTES))
        sizes.append(_resident_kb())
    fresh, received, sent = ((after - before) / CONNECTIONS for before, after in pairwise(sizes))
    say(f"  {fresh:.0f} KB for both halves of a session")
    say(f"  {received:.0f} KB more once a large request was received, {sent:.0f} KB more once a large answer was sent")


def _resident_kb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


def kernel_tls() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
        except OSError as wrong:
            return f"not available: {wrong.strerror}"
    return "available"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1024)
    size = parser.parse_args().megabytes * MEGABYTE
    say(f"{ssl.OPENSSL_VERSION}; kernel TLS is {kernel_tls()}; load {os.getloadavg()[0]:.1f}")
    server, client = halves()
    say(f"stream of {size // MEGABYTE} MB, sender's CPU (user + system):")
    stream("plain, sendfile", send_plain, None, size)
    stream("session, TLS 1.3", send_session(server), client, size)
    stream("sslsocket, TLS 1.3", send_sslsocket(server), client, size)
    say("the same stream received, receiver's CPU:")
    stream("session, TLS 1.3", receive_session(server), client, size, receives=True)
    stream("sslsocket, TLS 1.3", receive_sslsocket(server), client, size, receives=True)
    say(f"longest step of a handshake, TLS 1.3, ms, medians of {HANDSHAKES // 2} (and the least):")
    for kind in KEY_KINDS:
        handshakes(kind, "none")
    handshakes(P256, "required")
    say(f"memory, {CONNECTIONS} connections:")
    memory()


if __name__ == "__main__":
    main()

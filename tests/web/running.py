"""A server of a test's own, in a thread, and sockets that speak to it byte by byte."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ssl import SSLContext

from starlette.types import ASGIApp

from moldau.web.limits import Limits
from moldau.web.listening import bind, parse_listeners
from moldau.web.serving import Server

WAIT_S_MAX = 30.0


@contextmanager
def serving(
    application: ASGIApp, *, limits: Limits | None = None, tls: SSLContext | None = None, scheme: str = "http"
) -> Iterator[Server]:
    ready = threading.Event()
    found: list[tuple[Server, asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        server = Server(application, bind(parse_listeners(f"{scheme}://127.0.0.1:0")), limits or Limits(), tls)
        found.append((server, asyncio.get_running_loop()))
        await server.serve(ready.set)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(WAIT_S_MAX)
        yield found[0][0]
    finally:
        if found:
            server, loop = found[0]
            with suppress(RuntimeError):  # it ended by itself
                loop.call_soon_threadsafe(server.end)
        thread.join(WAIT_S_MAX)
        assert not thread.is_alive()


def port_of(server: Server) -> int:
    return server.bound[0].listener.port


def url_of(server: Server, path: str = "") -> str:
    return server.bound[0].listener.url + path


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port_of(server)), WAIT_S_MAX)


def everything(connection: socket.socket) -> bytes:
    """Until the other end closes."""
    found = bytearray()
    try:
        while more := connection.recv(65_536):
            found += more
    except ConnectionResetError:
        pass
    return bytes(found)

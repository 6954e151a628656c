"""Asking a broker in the protocol itself, for what the client library has no call for.

One connection at a time to any broker of the cluster, which forwards what only the controller can answer. `connect` is
where a connection comes from, so that it may be another one than a plain socket.
"""

from __future__ import annotations

import socket
from argparse import Namespace
from collections.abc import Callable
from itertools import count
from types import TracebackType
from typing import Any, Self, TypeVar

from moldau.cli.connection import client_config, split_server
from moldau.cli.failures import CommandFailed, UsageError
from moldau.core.errors import ProtocolViolation
from moldau.wire.api import ApiKey
from moldau.wire.codec import decode, encode_parts, is_flexible
from moldau.wire.frame import SIZE_BYTES, RequestHeader, read_response_header, request_parts
from moldau.wire.messages import ApiVersionsRequest, ApiVersionsResponse
from moldau.wire.schema import Message

PLAINTEXT = "plaintext"
RESPONSE_BYTES_MAX = 100 << 20  # as much as clients take; something else than a broker may say any number

R = TypeVar("R", bound=Message)
Connect = Callable[[str, int, float], socket.socket]


def connect_plainly(host: str, port: int, timeout_s: float) -> socket.socket:
    return socket.create_connection((host, port), timeout_s)


class WireClient:
    """One client; the connection is made by the first question."""

    def __init__(self, options: Namespace, connect: Connect = connect_plainly) -> None:
        config = client_config(options)
        protocol = str(config.get("security.protocol", PLAINTEXT))
        if connect is connect_plainly and protocol.lower() != PLAINTEXT:
            raise UsageError(f"security.protocol={protocol}: this tool speaks only {PLAINTEXT} yet")
        self._servers = str(config["bootstrap.servers"])
        self._client_id = str(config["client.id"])
        self._timeout_s: float = options.timeout
        self._connect = connect
        self._socket: socket.socket | None = None
        self._versions: dict[int, tuple[int, int]] = {}
        self._ids = count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._socket is not None:
            self._socket.close()

    def ask(self, request: Message, response: type[R]) -> R:
        """The answer in the newest version that both ends know."""
        if self._socket is None:
            self._open()
        oldest, newest = self._versions.get(request.API_KEY, (0, -1))
        version = min(newest, request.VERSIONS[1])
        if version < max(oldest, request.VERSIONS[0]):
            raise CommandFailed(f"the broker at {self._servers} does not answer {ApiKey(request.API_KEY).name}")
        return self._exchange(request, response, version)

    def _open(self) -> None:
        for server in self._servers.split(","):
            host, port = split_server(server)
            try:
                self._socket = self._connect(host, port, self._timeout_s)
                break
            except OSError:
                continue
        else:
            raise CommandFailed(f"no broker answers at {self._servers}; start one with: moldau start")
        self._socket.settimeout(self._timeout_s)
        found = self._exchange(ApiVersionsRequest(), ApiVersionsResponse, 0)
        self._versions = {each.api_key: (each.min_version, each.max_version) for each in found.api_keys}

    def _exchange(self, request: Message, response: type[R], version: int) -> R:
        header = RequestHeader(request.API_KEY, version, next(self._ids), self._client_id)
        parts = request_parts(header, encode_parts(request, version), is_flexible=is_flexible(type(request), version))
        assert self._socket is not None, "it is opened first"
        try:
            self._socket.sendall(b"".join(parts))
            size = int.from_bytes(self._exactly(SIZE_BYTES), "big")
            if size > RESPONSE_BYTES_MAX:
                raise ProtocolViolation(f"an answer of {size} bytes")
            frame = memoryview(self._exactly(size))
            _, at = read_response_header(frame, response, version)
            return _decoded(response, version, frame, at)
        except TimeoutError:
            wait = f"{self._timeout_s:g} s"
            raise CommandFailed(
                f"something listens at {self._servers} but gave no answer in {wait}; is it a Kafka broker?"
            ) from None
        except (OSError, ProtocolViolation) as wrong:
            raise CommandFailed(f"the broker at {self._servers}: {wrong}; is it a Kafka broker?") from None

    def _exactly(self, size: int) -> bytes:
        assert self._socket is not None, "it is opened first"
        received = bytearray()
        while len(received) < size:
            more = self._socket.recv(min(size - len(received), 1 << 20))
            if not more:
                raise ConnectionError("it hung up")
            received += more
        return bytes(received)


def _decoded(response: type[R], version: int, frame: memoryview, at: int) -> R:
    decoded: Any = decode(response, version, frame, at)[0]
    found: R = decoded
    return found

"""Asking a broker in the protocol itself, for what the client library has no call for.

One connection at a time to any broker of the cluster, which forwards what only the controller can answer. TLS and
logins are by librdkafka's settings, as for every other tool.
"""

from __future__ import annotations

import socket
from argparse import Namespace
from collections.abc import Mapping
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from moldau.cli.connection import client_config, split_server
from moldau.cli.failures import CommandFailed, UsageError
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.wire.api import ApiKey
from moldau.wire.codec import decode, encode_parts, is_flexible
from moldau.wire.frame import SIZE_BYTES, RequestHeader, read_response_header, request_parts
from moldau.wire.messages import ApiVersionsRequest, ApiVersionsResponse
from moldau.wire.schema import Message

if TYPE_CHECKING:
    from moldau.spark.clients.security import ConnectionSecurity

PLAINTEXT = "plaintext"
RESPONSE_BYTES_MAX = 100 << 20  # as much as clients take; something else than a broker may say any number

R = TypeVar("R", bound=Message)


class WireClient:
    """One client; the connection is made by the first question."""

    def __init__(self, options: Namespace) -> None:
        config = client_config(options)
        self._security = _security(config)
        self._servers = str(config["bootstrap.servers"])
        self._client_id = str(config["client.id"])
        self._timeout_s: float = options.timeout
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
        host = self._connect()
        try:
            self._secure(host)
        except TimeoutError:
            raise CommandFailed(self._silence("does security.protocol fit it?")) from None
        except (OSError, ProtocolViolation) as wrong:
            raise CommandFailed(f"the broker at {self._servers}: {wrong}") from None
        found = self._exchange(ApiVersionsRequest(), ApiVersionsResponse, 0)
        self._versions = {each.api_key: (each.min_version, each.max_version) for each in found.api_keys}

    def _connect(self) -> str:
        """To the first of the servers that answers; which host that is."""
        for server in self._servers.split(","):
            host, port = split_server(server)
            try:
                self._socket = socket.create_connection((host, port), self._timeout_s)
            except OSError:
                continue
            self._socket.settimeout(self._timeout_s)
            return host
        raise CommandFailed(f"no broker answers at {self._servers}; start one with: moldau start")

    def _secure(self, host: str) -> None:
        if self._security is None:
            return
        assert self._socket is not None, "it is opened first"
        self._socket = self._security.secured(self._socket, host)
        # A tool is done long before the end of a session.
        self._security.logged_in(self._client_id, self._answer, host)

    def _silence(self, question: str) -> str:
        wait = f"{self._timeout_s:g} s"
        return f"something listens at {self._servers} but gave no answer in {wait}; {question}"

    def _exchange(self, request: Message, response: type[R], version: int) -> R:
        header = RequestHeader(request.API_KEY, version, next(self._ids), self._client_id)
        parts = request_parts(header, encode_parts(request, version), is_flexible=is_flexible(type(request), version))
        try:
            frame = self._answer(b"".join(parts))
            _, at = read_response_header(frame, response, version)
            return _decoded(response, version, frame, at)
        except TimeoutError:
            raise CommandFailed(self._silence("is it a Kafka broker?")) from None
        except (OSError, ProtocolViolation) as wrong:
            raise CommandFailed(f"the broker at {self._servers}: {wrong}; is it a Kafka broker?") from None

    def _answer(self, frame: bytes) -> memoryview:
        assert self._socket is not None, "it is opened first"
        self._socket.sendall(frame)
        size = int.from_bytes(self._exactly(SIZE_BYTES), "big")
        if size > RESPONSE_BYTES_MAX:
            raise ProtocolViolation(f"an answer of {size} bytes")
        return memoryview(self._exactly(size))

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


def _security(config: Mapping[str, Any]) -> ConnectionSecurity | None:
    """None for a plain connection."""
    protocol = str(config.get("security.protocol", PLAINTEXT))
    if protocol.lower() == PLAINTEXT:
        return None
    from moldau.spark.clients.security import MECHANISMS, PROTOCOLS, can_secure, security_of

    settings = {key: value for key, value in config.items() if isinstance(value, str)}
    if protocol.lower() not in PROTOCOLS:
        raise UsageError(f"security.protocol={protocol}: expected one of {', '.join(PROTOCOLS)}")
    if not can_secure(settings):
        raise UsageError(
            f"security.protocol={protocol}: this tool needs files that are there (ssl.ca.location and others), and for"
            f" SASL sasl.username, sasl.password and sasl.mechanism, one of {', '.join(MECHANISMS)};"
            " GSSAPI needs `pip install 'moldau[gssapi]'`, and tickets or a keytab instead of a user"
        )
    try:
        return security_of(tuple(sorted(settings.items())))
    except OSError as wrong:
        raise UsageError(f"client configuration: {wrong}") from None


def refusal(code: int, message: str | None) -> str:
    """A broker's own words, or those for its error code."""
    try:
        return message or ErrorCode(code).message
    except ValueError:
        return message or f"error {code}"

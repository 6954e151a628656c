"""A server that logs clients in and tells them that there are no topics: enough for real clients to judge."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

from moldau.core.clock import SystemClock
from moldau.core.errors import ProtocolViolation
from moldau.security.principals import Principal
from moldau.security.sasl.login import Login, LoginSettings, State, Step
from moldau.wire.api import ApiKey
from moldau.wire.codec import decode, encode_parts
from moldau.wire.frame import RequestHeader, has_flexible_header, response_parts
from moldau.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataResponse,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from moldau.wire.messages.api_versions import ApiVersion
from moldau.wire.messages.metadata import MetadataResponseBroker
from moldau.wire.request_header import read_request_header

SUPPORTED = {
    ApiKey.METADATA: (0, 12),
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.API_VERSIONS: (0, 3),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
}


class LoginServer:
    """Each connection has a thread. `principals` are those of the Metadata requests that came, in order."""

    def __init__(
        self,
        settings: LoginSettings | None,
        handshake_version: int = 1,
        *,
        context: ssl.SSLContext | None = None,
        cluster_id: str = "logins",
    ) -> None:
        """Without settings nobody has to log in; with a context it speaks TLS."""
        self._settings = settings
        self._context = context
        self._cluster_id = cluster_id
        supported = SUPPORTED | {ApiKey.SASL_HANDSHAKE: (0, handshake_version)}
        if handshake_version == 0:
            del supported[ApiKey.SASL_AUTHENTICATE]
        self._versions = [ApiVersion(key, *versions) for key, versions in supported.items()]
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._accepted = 0
        self.port: int = self._listening.getsockname()[1]
        self.principals: list[Principal] = []
        self.failures: list[str] = []
        self.raw_tokens = 0
        self.reauthenticated = threading.Event()
        self.is_silent = threading.Event()
        """Whether Metadata requests are left without an answer; `asked` is set when one came."""
        self.asked = threading.Event()

    @property
    def connections(self) -> int:
        """How many there were."""
        return self._accepted

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> LoginServer:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hang_up()
        self._listening.close()

    def hang_up(self) -> None:
        """As a process does that ends: nobody says goodbye."""
        for each in (self._listening, *self._connections):
            with suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._connections.append(connection)
                self._accepted += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        is_open = self._settings is None
        login: Login | None = Login(
            self._settings or LoginSettings({}), State.COMPLETE if is_open else State.INITIAL_REQUEST
        )
        with suppress(OSError, EOFError, ProtocolViolation), accepted, self._speaking(accepted) as connection:
            while login is not None:
                size = struct.unpack(">i", receive(connection, 4))[0]
                limit = login.receive_bytes_max
                if limit is not None and not 0 <= size <= limit:
                    return
                login = self._answer(connection, login, memoryview(receive(connection, size)))

    def _speaking(self, accepted: socket.socket) -> socket.socket:
        if self._context is None:
            return accepted
        connection = self._context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        self._connections.append(connection)
        try:
            connection.do_handshake()
        except ssl.SSLError:
            while socket.socket.recv(connection, 65_536):  # what is not read would cost the client the alert
                pass
            connection.close()
            raise
        return connection

    def _answer(self, connection: socket.socket, login: Login, frame: memoryview) -> Login | None:
        now_ms = SystemClock().now_ms()
        if login.takes_raw_tokens:
            self.raw_tokens += 1
            step = login.raw_token(frame, now_ms=now_ms, wall_ms=now_ms)
            if step.token is not None:
                connection.sendall(struct.pack(">i", len(step.token)) + step.token)
            return self._next(step)
        header, at = read_request_header(frame)
        refusal = login.refusal(header.api_key, now_ms)
        if refusal is not None:
            self.failures.append(refusal.reason)
            return None
        if header.api_key == ApiKey.API_VERSIONS:
            send(connection, header, ApiVersionsResponse(api_keys=self._versions))
            decode(ApiVersionsRequest, header.api_version, frame, at)
            return login.versions_told()
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            handshake, _ = decode(SaslHandshakeRequest, header.api_version, frame, at)
            step = login.handshake(handshake.mechanism, version=header.api_version, now_ms=now_ms)
        elif header.api_key == ApiKey.SASL_AUTHENTICATE:
            request, _ = decode(SaslAuthenticateRequest, header.api_version, frame, at)
            step = login.authenticate(request.auth_bytes, now_ms=now_ms, wall_ms=now_ms)
        else:
            self.principals.append(login.principal)
            if self.is_silent.is_set():
                self.asked.set()
                return login
            brokers = [MetadataResponseBroker(0, "127.0.0.1", self.port)]
            send(connection, header, MetadataResponse(brokers=brokers, controller_id=0, cluster_id=self._cluster_id))
            return login
        send(connection, header, step.response)
        return self._next(step)

    def _next(self, step: Step) -> Login | None:
        if step.login.is_complete and step.login.reauthenticated_ms is not None:
            self.reauthenticated.set()
        if step.failure is None:
            return step.login
        self.failures.append(step.failure)
        return None


def send(connection: socket.socket, header: RequestHeader, response: Any) -> None:
    is_flexible = has_flexible_header(type(response), header.api_version)
    parts = response_parts(header.correlation_id, encode_parts(response, header.api_version), is_flexible=is_flexible)
    connection.sendall(b"".join(parts))


def receive(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            raise EOFError
        found += more
    return bytes(found)

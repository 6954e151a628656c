"""TLS and SASL below a channel: between a socket that is connected and the first question, and before a session ends.

asyncio speaks TLS and decrypts into the buffer that a response stays in. A channel whose listener is PLAINTEXT has
nothing of this.
"""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from moldau.replication.channel_connection import AuthenticationFailed, ChannelError, Connection
from moldau.replication.slow_steps import SlowSteps
from moldau.security.sasl.client_login import (
    ANSWER_BYTES_MAX,
    Asking,
    Authenticated,
    ClientCredentials,
    LoginFailed,
    begin_login,
)
from moldau.security.tls.contexts import LoadedTls
from moldau.security.tls.settings import TlsConfigError

REAUTHENTICATE_S_MIN = 10.0  # for the questions before it to be answered; the rest of the session, if that is longer
GOODBYE_S_MAX = 1.0  # for the other end to say goodbye, which it need not
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL"})


class ChannelSecurity:
    """Of all channels of one broker. `tls` gives the context of the moment, `credentials` who this broker is."""

    def __init__(
        self,
        *,
        tls: Callable[[], LoadedTls] | None,
        credentials: Callable[[], ClientCredentials] | None,
        client_id: str,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._tls = tls
        self._credentials = credentials
        self._client_id = client_id
        self._chance = chance
        self._renewing: set[asyncio.Task[None]] = set()
        self._slow = SlowSteps()

    async def secure(self, plain: socket.socket, host: str, made: Callable[[], Connection]) -> Connection:
        connection = await self._speaking(plain, host, made)
        if self._credentials is None:
            return connection
        # Nobody is known at the other end yet, so nobody may have much of this process's memory.
        allowed, connection.response_bytes_max = connection.response_bytes_max, ANSWER_BYTES_MAX
        try:
            session = await self._log_in(connection, self._credentials, host)
        except BaseException:
            connection.fail(AuthenticationFailed("there was no login"))
            raise
        connection.response_bytes_max = allowed
        self._renew_later(connection, session, host)
        return connection

    async def _speaking(self, plain: socket.socket, host: str, made: Callable[[], Connection]) -> Connection:
        loop = asyncio.get_running_loop()
        if self._tls is None:
            return (await loop.create_connection(made, sock=plain))[1]
        try:
            tls = self._tls()
            transport, connection = await loop.create_connection(
                made, sock=plain, ssl=tls.context, server_hostname=host, ssl_shutdown_timeout=GOODBYE_S_MAX
            )
        except (ssl.SSLError, TlsConfigError, ValueError) as wrong:
            raise AuthenticationFailed(f"TLS: {_reason(wrong)}") from None
        except ConnectionError:
            raise ChannelError("it closed the connection in the middle of the TLS handshake") from None
        suite: Any = transport.get_extra_info("cipher")
        if tls.tls13_suites and suite[1] == "TLSv1.3" and suite[0] not in tls.tls13_suites:
            transport.abort()
            raise AuthenticationFailed(f"TLS: {suite[0]} was negotiated, which ssl.cipher.suites does not have")
        return connection

    async def _log_in(
        self, connection: Connection, current: Callable[[], ClientCredentials], host: str
    ) -> Authenticated:
        """With the credentials of the moment, which can be wrong themselves: the configuration may have changed."""
        try:
            credentials = current()
            asking: Asking | Authenticated = begin_login(credentials, client_id=self._client_id, host=host)
            while isinstance(asking, Asking):
                answer = await connection.send([asking.frame], asking.correlation_id)
                asking = (
                    await self._slow.run(partial(asking.answered, answer))
                    if credentials.is_slow
                    else asking.answered(answer)
                )
        except LoginFailed as wrong:
            raise AuthenticationFailed(str(wrong)) from None
        return asking

    def _renew_later(self, connection: Connection, session: Authenticated, host: str) -> None:
        after_ms = session.reauthenticate_after_ms(self._chance())
        if after_ms is None or session.session_lifetime_ms is None:
            return
        rest_s = (session.session_lifetime_ms - after_ms) / 1_000
        timer = asyncio.get_running_loop().call_later(after_ms / 1_000, self._begin_renewal, connection, rest_s, host)
        connection.is_lost.add_done_callback(lambda _: timer.cancel())

    def _begin_renewal(self, connection: Connection, rest_s: float, host: str) -> None:
        if connection.is_usable:
            task = asyncio.get_running_loop().create_task(
                self._renew(connection, rest_s, host), name="reauthentication"
            )
            self._renewing.add(task)
            task.add_done_callback(self._renewing.discard)

    async def _renew(self, connection: Connection, rest_s: float, host: str) -> None:
        """On the same connection, behind the questions that are under way (KIP-368)."""
        assert self._credentials is not None, "there was a first login"
        connection.hold()
        try:
            async with asyncio.timeout(max(rest_s, REAUTHENTICATE_S_MIN)):
                session = await self._log_in(connection, self._credentials, host)
        except TimeoutError:
            connection.fail(AuthenticationFailed("re-authentication took longer than the session"))
        except ChannelError as wrong:
            connection.fail(wrong)
        else:
            self._renew_later(connection, session, host)
        finally:
            connection.release()


def _reason(wrong: Exception) -> str:
    if isinstance(wrong, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {wrong.verify_message.rstrip('.')}"
    if isinstance(wrong, ssl.SSLError):
        if wrong.reason in _NO_TLS:
            return "what came is no TLS; is its listener PLAINTEXT or SASL_PLAINTEXT?"
        return wrong.reason.replace("_", " ").lower() if wrong.reason else "the handshake failed"
    return str(wrong)

"""One TLS session over a non-blocking socket, with the calls that a connection makes of a socket.

OpenSSL reads and writes the socket itself, a record at a time, and lets go of its buffers in between: a session that
waits keeps none. A reader must look at `has_pending`: the rest of a record that is decrypted already wakes nobody. A
write that would block has encrypted its record, and must be tried again with the same bytes, or those and more.

    handshake   `handshake` until it is True; its work may be done in any thread while the loop leaves the socket alone
    then        recv_into, send, shutdown, close
"""

from __future__ import annotations

import contextlib
import errno
import socket
import ssl
from struct import Struct
from typing import Final

from moldau.core.errors import ProtocolViolation
from moldau.core.limits import KIB
from moldau.security.tls.certificates import read_certificate
from moldau.security.tls.contexts import LoadedTls
from moldau.security.tls.der import InvalidDer

RECEIVE_BYTES_MAX: Final = 256 * KIB  # in one call: a quarter of a millisecond of decryption
HANDSHAKE_BYTES_MAX: Final = 256 * KIB  # OpenSSL takes 100 KiB of certificates at most, and one hello of 128
_TCP_INFO_BYTES = 136
_BYTES_RECEIVED = Struct("=Q")
_BYTES_RECEIVED_AT = 128  # in Linux's struct tcp_info
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL"})


class HandshakeFailed(ProtocolViolation):
    """There is no session. The other end was sent an alert that says why, if the socket took it."""


class TlsSession:
    __slots__ = ("_is_ended", "_is_shut", "_tls", "_tls13_suites", "has_pending", "is_established", "wants_write")

    def __init__(self, sock: socket.socket, tls: LoadedTls, *, server_hostname: str | None = None) -> None:
        """Takes the socket over. A client's half if it has the server's name; HandshakeFailed if that is none."""
        self.has_pending = False
        """Whether `recv_into` has something without the socket being readable."""
        self.is_established = False
        self.wants_write = False
        """Whether the handshake waits until the socket can be written, and not for the other end."""
        self._tls13_suites = tls.tls13_suites
        self._is_ended = False
        self._is_shut = False
        if server_hostname is not None:
            _check_name(server_hostname, tls.context)
        self._tls = tls.context.wrap_socket(
            sock,
            server_side=server_hostname is None,
            server_hostname=server_hostname,
            do_handshake_on_connect=False,
            suppress_ragged_eofs=False,
        )

    def fileno(self) -> int:
        return self._tls.fileno()

    def handshake(self) -> bool:
        """Go on with what has arrived: milliseconds with an RSA key, without the GIL. True when it is complete.

        False while it waits for the socket, to be writable if `wants_write`. Raises HandshakeFailed, or ConnectionError
        if nobody is there. How long it may take is the caller's business.
        """
        self.wants_write = False
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            if self._received_bytes() > HANDSHAKE_BYTES_MAX:
                raise HandshakeFailed(f"a TLS handshake of more than {HANDSHAKE_BYTES_MAX} bytes") from None
            return False
        except ssl.SSLWantWriteError:
            self.wants_write = True
            return False
        except (ssl.SSLEOFError, ssl.SSLSyscallError, ssl.SSLZeroReturnError):
            raise ConnectionResetError(errno.ECONNRESET, "closed in the middle of a TLS handshake") from None
        except ssl.SSLError as wrong:
            raise HandshakeFailed(_reason(wrong)) from None
        suite = self.cipher_suite
        if self._tls13_suites and self.protocol == "TLSv1.3" and suite not in self._tls13_suites:
            raise HandshakeFailed(f"{suite} was negotiated, which ssl.cipher.suites does not have")
        self.is_established = True
        return True

    def distinguished_name(self) -> str | None:
        """Of the other end's certificate as Java prints it; None if it showed none."""
        shown = self._tls.getpeercert(binary_form=True)
        if shown is None:
            return None
        try:
            return read_certificate(shown).subject
        except InvalidDer as wrong:
            raise HandshakeFailed(f"the certificate's name can't be read: {wrong}") from None

    @property
    def protocol(self) -> str | None:
        return self._tls.version()

    @property
    def cipher_suite(self) -> str | None:
        negotiated = self._tls.cipher()
        return None if negotiated is None else negotiated[0]

    def recv_into(self, view: memoryview) -> int:
        """As a socket's: 0 when the other end said that it sends no more, BlockingIOError while nothing is here.

        An end without those words is a ConnectionError.
        """
        count, end = 0, min(len(view), RECEIVE_BYTES_MAX)
        try:
            while count < end and not self._is_ended:
                size = self._tls.recv_into(view[count:end])
                count += size
                self._is_ended = size == 0
        except ssl.SSLWantReadError:
            if count == 0:
                self.has_pending = False
                raise BlockingIOError(errno.EAGAIN, "no whole record of TLS is here") from None
        except (ssl.SSLEOFError, ssl.SSLSyscallError):
            if count == 0:  # else it is met again
                raise ConnectionResetError(errno.ECONNRESET, "closed without a close_notify of TLS") from None
        except ssl.SSLError as wrong:
            raise ProtocolViolation(f"TLS: {_reason(wrong)}") from None
        # An end is told by the next call, which the socket may give no reason for.
        self.has_pending = self._is_ended or self._tls.pending() > 0
        return count

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """As a socket's, one record at a time. After BlockingIOError the same bytes come first again."""
        try:
            return self._tls.send(data)
        except ssl.SSLWantWriteError:
            raise BlockingIOError(errno.EAGAIN, "a record of TLS waits for the socket") from None
        except (ssl.SSLEOFError, ssl.SSLSyscallError, ssl.SSLZeroReturnError):
            raise BrokenPipeError(errno.EPIPE, "the other end of a TLS session is gone") from None
        except ssl.SSLError as wrong:  # to read before it can write: only a renegotiation could ask for that
            raise ProtocolViolation(f"TLS: {_reason(wrong)}") from None

    def shutdown(self, how: int) -> None:
        """Say that nothing more is sent, to the other end's TLS and to its TCP."""
        self._say_goodbye()
        socket.socket.shutdown(self._tls, how)  # SSLSocket's own forgets the session, and would read ciphertext

    def close(self) -> None:
        self._say_goodbye()
        self._tls.close()

    def _say_goodbye(self) -> None:
        if self.is_established and not self._is_shut:
            self._is_shut = True
            with contextlib.suppress(OSError, ValueError):  # it also wants to read the other end's farewell
                self._tls.unwrap()

    def _received_bytes(self) -> int:
        """By TCP's own count; other kinds of socket, which only tests have, do not count."""
        try:
            info = self._tls.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        except OSError:
            return 0
        received: int = _BYTES_RECEIVED.unpack_from(info, _BYTES_RECEIVED_AT)[0] if len(info) == _TCP_INFO_BYTES else 0
        return received


def _check_name(name: str, context: ssl.SSLContext) -> None:
    """Before the socket is taken over, for a failure then would leave it to nobody."""
    try:
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=name)
    except ValueError as wrong:  # an empty label, say, or one of 64 characters
        raise HandshakeFailed(f"{name!r} can't be the name of a TLS server: {wrong}") from None


def _reason(wrong: ssl.SSLError) -> str:
    if wrong.reason in _NO_TLS:
        return "what came is no TLS; is the client's security.protocol PLAINTEXT or SASL_PLAINTEXT?"
    if isinstance(wrong, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {wrong.verify_message}"
    return wrong.reason.replace("_", " ").lower() if wrong.reason else str(wrong)

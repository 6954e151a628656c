"""One TLS session over a non-blocking socket, with the calls that a connection makes of a socket.

OpenSSL never sees the socket. Given one, it reads on while records come that hold no data, such as key updates, and a
client that sends these fast keeps the caller for seconds. So it is fed a few whole records at a time, each call has
its limit, and whoever sends nothing but records without data is hung up on.

A reader must look at `has_pending`: records that were received already wake nobody. A writer must look at `flush`: what
was encrypted may still wait for the socket.

    handshake   `handshake` until it is True; its work may be done in any thread while the loop leaves the socket alone
    then        recv_into, send, flush, shutdown, close
"""

from __future__ import annotations

import contextlib
import errno
import socket
import ssl
from typing import Final

from moldau.core.errors import ProtocolViolation
from moldau.core.limits import KIB
from moldau.security.tls.certificates import read_certificate
from moldau.security.tls.contexts import LoadedTls
from moldau.security.tls.der import InvalidDer
from moldau.security.tls.hellos import REFUSAL, HelloGate, RefusedHello
from moldau.security.tls.records import run_of_records

RECEIVE_BYTES_MAX: Final = 256 * KIB  # in one call: a quarter of a millisecond of decryption
RECEIVE_BYTES: Final = 64 * KIB  # by one call of the system
IDLE_RECORDS_MAX: Final = 16  # in a row without data; peers of ours send two session tickets, or one key update
RECORDS_FED_MAX: Final = 8  # at a time, which OpenSSL may work through before it says anything
BYTES_FED_MAX: Final = 16 * KIB  # at a time, if these are several: OpenSSL keeps a buffer as large as the largest feed
RECORDS_PER_CALL_MAX: Final = IDLE_RECORDS_MAX + 2 * RECORDS_FED_MAX  # so many key updates take 0.7 ms
STRANGERS_RECORDS_PER_CALL: Final = 4  # these 0.1 ms, and a message of an honest login is one record
HANDSHAKE_RECORDS_MAX: Final = 256  # a message may be cut into records of one byte, each of which OpenSSL looks at
HANDSHAKE_BYTES_MAX: Final = 256 * KIB  # OpenSSL takes 100 KiB of certificates at most, and one hello of 128
SEND_BYTES_MAX: Final = 32 * KIB  # by one call of the system; OpenSSL keeps a buffer of that size
UNSENT_BYTES_MAX: Final = 64 * KIB  # these, and alerts that reading gave rise to
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL"})


class HandshakeFailed(ProtocolViolation):
    """There is no session. The other end was sent an alert that says why, if the socket took it."""


class TlsSession:
    __slots__ = (
        "_at",
        "_gate",
        "_handshake_bytes",
        "_handshake_records",
        "_idle_records",
        "_incoming",
        "_is_ended",
        "_is_shut",
        "_outgoing",
        "_received",
        "_socket",
        "_tls",
        "_tls13_suites",
        "_unsent",
        "has_pending",
        "is_established",
        "records_per_call",
        "wants_write",
    )

    def __init__(self, sock: socket.socket, tls: LoadedTls, *, server_hostname: str | None = None) -> None:
        """Takes the socket over. A client's half if it has the server's name; HandshakeFailed if that is none."""
        self.has_pending = False
        """Whether `recv_into` has something without the socket being readable."""
        self.is_established = False
        self.wants_write = False
        """Whether the handshake waits until the socket can be written, and not for the other end."""
        self.records_per_call = RECORDS_PER_CALL_MAX
        """How many `recv_into` works through before it returns, whatever they hold."""
        self._socket = sock
        self._tls13_suites = tls.tls13_suites
        self._is_ended = False
        self._is_shut = False
        self._handshake_bytes = 0
        self._handshake_records = 0
        self._idle_records = 0
        self._received = b""  # from `_at`: records that OpenSSL was not given yet, the last of them perhaps not whole
        self._at = 0
        self._unsent = b""  # encrypted, while the socket takes nothing more
        self._gate = HelloGate() if server_hostname is None else None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = tls.context.wrap_bio(
                self._incoming, self._outgoing, server_side=server_hostname is None, server_hostname=server_hostname
            )
        except ValueError as wrong:  # an empty label, say, or one of 64 characters
            raise HandshakeFailed(f"{server_hostname!r} can't be the name of a TLS server: {wrong}") from None

    def fileno(self) -> int:
        return self._socket.fileno()

    def getsockopt(self, level: int, name: int) -> int:
        return self._socket.getsockopt(level, name)

    def handshake(self) -> bool:
        """Go on with what has arrived: milliseconds with an RSA key, without the GIL. True when it is complete.

        False while it waits for the socket, to be writable if `wants_write`. Raises HandshakeFailed, or ConnectionError
        if nobody is there. How long it may take is the caller's business.
        """
        try:
            is_complete = self._advance()
            while not is_complete and not self._unsent and self._feed_handshake():
                is_complete = self._advance()
        except RefusedHello as wrong:
            self._send_now(REFUSAL)
            raise HandshakeFailed(str(wrong)) from None
        self.wants_write = bool(self._unsent)
        if self.wants_write or not is_complete:
            return False
        suite = self.cipher_suite
        if self._tls13_suites and self.protocol == "TLSv1.3" and suite not in self._tls13_suites:
            raise HandshakeFailed(f"{suite} was negotiated, which ssl.cipher.suites does not have")
        self.is_established, self._idle_records, self._gate = True, 0, None
        self.has_pending = self._has_records()
        return True

    def _advance(self) -> bool:
        """One step of the handshake, with what OpenSSL was fed."""
        if not self.flush():
            return False
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as wrong:
            raise HandshakeFailed(_reason(wrong)) from None
        finally:
            self._send_encrypted()  # the alert, too, if it failed
        return True

    def _feed_handshake(self) -> bool:
        """Feed records of the handshake; False while no whole one is here."""
        while not (fed := self._feed()):
            if self._handshake_bytes > HANDSHAKE_BYTES_MAX:
                raise HandshakeFailed(f"a TLS handshake of more than {HANDSHAKE_BYTES_MAX} bytes")
            try:
                count = self._receive()
            except BlockingIOError:
                return False
            if count == 0:
                raise ConnectionResetError(errno.ECONNRESET, "closed in the middle of a TLS handshake")
            self._handshake_bytes += count
        self._handshake_records += fed
        if self._handshake_records > HANDSHAKE_RECORDS_MAX:
            raise HandshakeFailed(f"a TLS handshake of more than {HANDSHAKE_RECORDS_MAX} records")
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
        incoming, tls = self._incoming, self._tls
        count, end = 0, min(len(view), RECEIVE_BYTES_MAX)
        records, may_receive = 0, True
        while count < end and not self._is_ended:
            if not incoming.pending and not tls.pending():
                fed = self._feed(min(self.records_per_call - records, RECORDS_FED_MAX))
                if fed:
                    records += fed
                elif may_receive and not self._has_records():
                    # A part of what was asked for is all that is here, and the socket tells of more.
                    may_receive = self._receive_if_any(count) == RECEIVE_BYTES
                    continue
                else:
                    break
            count += self._decrypt(view[count:end])
        # An end is told by the next call, which the socket may give no reason for.
        self.has_pending = self._is_ended or self._has_records()
        if not count and not self._is_ended:
            raise BlockingIOError(errno.EAGAIN, "no record of TLS with data is here")
        return count

    def _decrypt(self, view: memoryview) -> int:
        """From records that OpenSSL has; 0 if they hold no data, or if the last words are among them."""
        try:
            size: int = self._tls.read(len(view), view)  # type: ignore[assignment]
        except ssl.SSLWantReadError:
            self._idle_records += 1  # so that a call ends, even if OpenSSL should leave what it was fed
            if self._idle_records > IDLE_RECORDS_MAX:
                raise ProtocolViolation(f"TLS: more than {IDLE_RECORDS_MAX} records in a row without data") from None
            return 0
        except ssl.SSLError as wrong:
            raise ProtocolViolation(f"TLS: {_reason(wrong)}") from None
        finally:
            if self._outgoing.pending:  # an alert, because of an error or of a renegotiation, which is refused
                self._send_encrypted()
        if len(self._unsent) > UNSENT_BYTES_MAX:
            raise ProtocolViolation("TLS: it asks for alerts, and reads none")
        self._is_ended = not size
        self._idle_records = 0
        return size

    def _feed(self, records_max: int = RECORDS_FED_MAX) -> int:
        """Give OpenSSL some of the records that are here; how many."""
        at, received = self._at, self._received
        if at == len(received):
            return 0
        count, self._at = run_of_records(received, at, records_max=records_max, bytes_max=BYTES_FED_MAX)
        if count:
            self._idle_records += count
            records = memoryview(received)[at : self._at]
            self._incoming.write(records if self._gate is None else self._gate.passed(records))
        return count

    def _has_records(self) -> bool:
        at, received = self._at, self._received
        if at == len(received):  # the usual case, and then nothing is kept
            self._received, self._at = b"", 0
        elif run_of_records(received, at, records_max=1, bytes_max=BYTES_FED_MAX)[0]:
            return True
        elif at:
            self._received, self._at = received[at:], 0
        return self._incoming.pending > 0 or self._tls.pending() > 0

    def _receive_if_any(self, count: int) -> int:
        """How many bytes came; 0 if nothing is here, or if the stream ends behind `count` bytes, which is met again."""
        try:
            size = self._receive()
        except BlockingIOError:
            return 0
        if size == 0 and count == 0:
            raise ConnectionResetError(errno.ECONNRESET, "closed without a close_notify of TLS")
        return size

    def _receive(self) -> int:
        came = self._socket.recv(RECEIVE_BYTES)
        self._received, self._at = self._received[self._at :] + came, 0
        return len(came)

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """As a socket's, a record or some. BlockingIOError while earlier ones wait for the socket; see `flush`."""
        if self._unsent and not self.flush():
            raise BlockingIOError(errno.EAGAIN, "records of TLS wait for the socket")
        try:
            taken = self._tls.write(memoryview(data)[:SEND_BYTES_MAX])
        except ssl.SSLError as wrong:  # to read before it can write: only a renegotiation could ask for that
            raise ProtocolViolation(f"TLS: {_reason(wrong)}") from None
        self._send_now(self._outgoing.read())
        return taken

    @property
    def has_unsent(self) -> bool:
        """Whether records wait for the socket, which took less than it was given."""
        return bool(self._unsent)

    def flush(self) -> bool:
        """Send what is encrypted; True when the socket has taken all of it."""
        if self._unsent:
            self._send_now(self._unsent)
        return not self._unsent

    def _send_encrypted(self) -> None:
        self._send_now(self._unsent + self._outgoing.read())

    def _send_now(self, encrypted: bytes) -> None:
        try:
            sent = self._socket.send(encrypted) if encrypted else 0
        except BlockingIOError:
            sent = 0
        self._unsent = encrypted[sent:]

    def shutdown(self, how: int) -> None:
        """Say that nothing more is sent, to the other end's TLS and to its TCP."""
        self._say_goodbye()
        self._socket.shutdown(how)

    def close(self) -> None:
        self._say_goodbye()
        self._socket.close()

    def _say_goodbye(self) -> None:
        if self.is_established and not self._is_shut:
            self._is_shut = True
            with contextlib.suppress(OSError, ValueError):  # it also wants to read the other end's farewell
                self._tls.unwrap()
            with contextlib.suppress(OSError):
                self._send_encrypted()


def _reason(wrong: ssl.SSLError) -> str:
    if wrong.reason in _NO_TLS:
        return "what came is no TLS; is the client's security.protocol PLAINTEXT or SASL_PLAINTEXT?"
    if isinstance(wrong, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {wrong.verify_message}"
    return wrong.reason.replace("_", " ").lower() if wrong.reason else str(wrong)

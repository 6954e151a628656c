"""A client's hello, looked at before OpenSSL computes with what is in it.

OpenSSL agrees on keys over finite fields of up to 8,192 bits as well, for which a server computes 90 ms and whoever
asks for it nothing at all (CVE-2002-20001), and Python has no way to say that a context is to have elliptic curves
alone. All clients have those, and send shares of a finite field only where they were told to.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error
from typing import Final

from moldau.core.errors import ProtocolViolation
from moldau.core.limits import KIB
from moldau.security.tls.records import HEADER_BYTES, RECORD_TYPES, run_of_records

REFUSAL: Final = bytes.fromhex("15 0303 0002 0228")  # an alert: fatal, handshake_failure
HELLO_BYTES_MAX: Final = (
    16 * KIB
)  # those of today have 2 KiB; with the records around it, and what is behind it in them
_HANDSHAKE = 22  # the content type of a record
_CLIENT_HELLO = 1
_MESSAGE_HEADER_BYTES = 4
_FIXED_BYTES = 34  # version and random
_SUPPORTED_GROUPS, _KEY_SHARE = 10, 51
_FINITE_FIELDS = range(0x0100, 0x0200)
_CURVES = frozenset({23, 24, 25, 29, 30})  # P-256, P-384, P-521, X25519, X448
_U16, _PAIR = Struct(">H"), Struct(">HH")


class RefusedHello(ProtocolViolation):
    """It asks for what takes too long, or is none that could be read."""


class HelloGate:
    """Holds records back until the hello in them is whole, and lets everything pass behind it.

    The hello that a client sends when it was asked for another share needs no look: that was asked for by the order of
    OpenSSL's groups, of which finite fields are last, and another share ends the handshake.
    """

    __slots__ = ("_held", "_is_open", "_message")

    def __init__(self) -> None:
        self._held = bytearray()
        self._message = bytearray()
        self._is_open = False

    def passed(self, records: memoryview) -> bytes | memoryview:
        """What OpenSSL may have now that these whole records came; RefusedHello if nothing, and nothing more."""
        if self._is_open:
            return records
        self._held += records
        if len(self._held) > HELLO_BYTES_MAX:
            raise RefusedHello(f"a TLS hello of more than {HELLO_BYTES_MAX} bytes")
        if not self._is_decided(records):
            return b""
        held, self._held, self._message = bytes(self._held), bytearray(), bytearray()
        self._is_open = True
        return held

    def _is_decided(self, records: memoryview) -> bool:
        message, at = self._message, 0
        while at < len(records):
            count, end = run_of_records(records, at, records_max=1, bytes_max=len(records))
            if count == 0 or records[at] not in RECORD_TYPES:  # no TLS: OpenSSL says what is wrong with it
                return True
            if records[at] == _HANDSHAKE:
                message += records[at + HEADER_BYTES : end]
            at = end
        if message and message[0] != _CLIENT_HELLO:
            raise RefusedHello("the first message of a TLS handshake is no client's hello")
        end = _MESSAGE_HEADER_BYTES + int.from_bytes(message[1:_MESSAGE_HEADER_BYTES], "big")
        if len(message) < end:
            return False
        check_hello(memoryview(message)[_MESSAGE_HEADER_BYTES:end])
        return True


def check_hello(hello: memoryview) -> None:
    """RefusedHello if it may lead to a key over a finite field."""
    try:
        found = dict(_extensions(hello))
        groups = [group for (group,) in _U16.iter_unpack(found.get(_SUPPORTED_GROUPS, b"")[2:])]
        shares = [group for group, _ in _fields(found.get(_KEY_SHARE, b"")[2:])]
    except (error, IndexError):
        raise RefusedHello("a TLS hello that can't be read") from None
    finite = [group for group in shares if group in _FINITE_FIELDS]
    if not finite and not _CURVES.intersection(groups):
        finite = [group for group in groups if group in _FINITE_FIELDS]
    if finite:
        raise RefusedHello(
            f"TLS: a key over a finite field is wanted (group {finite[0]:#06x}), which takes long to compute;"
            " give the client an elliptic curve, such as X25519 or P-256"
        )


def _extensions(hello: memoryview) -> Iterator[tuple[int, memoryview]]:
    at = _FIXED_BYTES
    at += 1 + hello[at]  # the session's id
    at += 2 + _U16.unpack_from(hello, at)[0]  # cipher suites
    at += 1 + hello[at]  # compression
    yield from _fields(hello[at + 2 :])


def _fields(view: memoryview | bytes) -> Iterator[tuple[int, memoryview]]:
    """Numbers with bytes behind them, whose length stands between."""
    view, at = memoryview(view), 0
    while at < len(view):
        number, size = _PAIR.unpack_from(view, at)
        at += _PAIR.size
        if at + size > len(view):
            raise IndexError
        yield number, view[at : at + size]
        at += size

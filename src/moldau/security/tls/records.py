"""Where the records of a TLS stream end, by their headers, which are never encrypted."""

from __future__ import annotations

from struct import Struct
from typing import Final

from moldau.core.limits import KIB

HEADER_BYTES: Final = 5
RECORD_TYPES: Final = range(20, 25)  # change_cipher_spec, alert, handshake, application_data, heartbeat
_BODY_BYTES_MAX: Final = 18 * KIB  # of TLS 1.2, whose ciphers may add most
_HEADER = Struct(">BBBH")  # content type, version, and how many bytes follow
_MAJOR_VERSION = 3


def run_of_records(received: bytes | memoryview, at: int, *, records_max: int, bytes_max: int) -> tuple[int, int]:
    """How many whole records begin there, as far as the limits allow, and where the last of them ends.

    What is no record of TLS counts as one that goes to the end: it is for OpenSSL to say what is wrong with it.
    """
    count, end, have = 0, at, len(received)
    while count < records_max and end + HEADER_BYTES <= have:
        kind, major, _, size = _HEADER.unpack_from(received, end)
        if kind not in RECORD_TYPES or major != _MAJOR_VERSION or size > _BODY_BYTES_MAX:
            return count + 1, have
        after = end + HEADER_BYTES + size
        if after > have or (count and after - at > bytes_max):
            break
        count, end = count + 1, after
        if end - at >= bytes_max:
            break
    return count, end

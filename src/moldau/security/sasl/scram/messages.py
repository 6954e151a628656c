"""The four messages of a SCRAM exchange (RFC 5802, section 7). Whatever does not follow the grammar is a SaslError.

Each is kept as it came as well: both sides sign the bytes that went over the wire, not what was understood of them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.security.sasl.mechanism import SaslError
from moldau.security.sasl.saslname import from_saslname, read_gs2_authzid

TOKEN_AUTH = "tokenauth"  # Kafka's extension: the name is that of a delegation token
# Whoever sends a message is nobody yet, and the loop reads it: half a megabyte of fields would hold it for long. A name
# has some dozen characters, a salt a thousand bytes at most; one extension is known.
MESSAGE_BYTES_MAX = 8_192
FIELDS_MAX = 32

_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_EXTENSION = re.compile(r"([A-Za-z]+)=([^\0]+)", re.DOTALL)
_ITERATIONS = re.compile(r"[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class ClientFirst:
    gs2_header: str
    bare: str
    authzid: str
    user: str
    nonce: str
    extensions: Mapping[str, str]

    @property
    def is_by_token(self) -> bool:
        return self.extensions.get(TOKEN_AUTH, "").lower() == "true"


@dataclass(frozen=True, slots=True)
class ServerFirst:
    nonce: str
    salt: bytes
    iterations: int


@dataclass(frozen=True, slots=True)
class ClientFinal:
    without_proof: str
    channel_binding: bytes
    nonce: str
    proof: bytes


def read_client_first(message: bytes) -> ClientFirst:
    what = "client first message"
    fields = _fields(message, what, at_least=4)
    flag, authzid, name, nonce = fields[:4]
    # Nothing is bound to the channel below: a client that insists (p=) is refused, one that could (y) is served.
    if flag not in ("n", "y"):
        raise SaslError(f"SCRAM {what}: only channel binding flags n and y are supported")
    return ClientFirst(
        gs2_header=f"{flag},{authzid},",
        bare=",".join(fields[2:]),
        authzid=read_gs2_authzid(authzid),
        user=from_saslname(_value(name, "n", what)),
        nonce=_nonce(nonce, what),
        extensions=_extensions(fields[4:], what),
    )


def read_server_first(message: bytes) -> ServerFirst:
    what = "server first message"
    fields = _fields(message, what, at_least=3)
    iterations = _value(fields[2], "i", what)
    if _ITERATIONS.fullmatch(iterations) is None:
        raise SaslError(f"SCRAM {what}: invalid iterations")
    _extensions(fields[3:], what)
    return ServerFirst(_nonce(fields[0], what), _base64(fields[1], "s", what), int(iterations))


def read_client_final(message: bytes) -> ClientFinal:
    what = "client final message"
    fields = _fields(message, what, at_least=3)
    _extensions(fields[2:-1], what)
    return ClientFinal(
        without_proof=",".join(fields[:-1]),
        channel_binding=_base64(fields[0], "c", what),
        nonce=_nonce(fields[1], what),
        proof=_base64(fields[-1], "p", what),
    )


def read_server_final(message: bytes) -> bytes:
    """The server's signature; a SaslError with the server's own words if it refuses."""
    what = "server final message"
    fields = _fields(message, what, at_least=1)
    if fields[0].startswith("e="):
        raise SaslError(f"the server answered with the error {fields[0][2:]!r}")
    _extensions(fields[1:], what)
    return _base64(fields[0], "v", what)


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _fields(message: bytes, what: str, *, at_least: int) -> list[str]:
    if len(message) > MESSAGE_BYTES_MAX:
        raise SaslError(f"SCRAM {what}: {len(message)} bytes; at most {MESSAGE_BYTES_MAX} are allowed")
    try:
        fields = message.decode().split(",", FIELDS_MAX)
    except UnicodeDecodeError:
        raise SaslError(f"SCRAM {what}: not UTF-8") from None
    if not at_least <= len(fields) <= FIELDS_MAX:
        count = f"more than {FIELDS_MAX}" if len(fields) > FIELDS_MAX else len(fields)
        raise SaslError(f"SCRAM {what}: {count} fields; {at_least} to {FIELDS_MAX} are allowed")
    return fields


def _value(field: str, name: str, what: str) -> str:
    # A mandatory extension (m=) stands where another field is expected, and is refused here: none is supported.
    if not field.startswith(f"{name}="):
        raise SaslError(f"SCRAM {what}: field {name} is missing")
    return field[2:]


def _nonce(field: str, what: str) -> str:
    nonce = _value(field, "r", what)
    if _NONCE.fullmatch(nonce) is None:
        raise SaslError(f"SCRAM {what}: invalid nonce")
    return nonce


def _base64(field: str, name: str, what: str) -> bytes:
    try:
        return binascii.a2b_base64(_value(field, name, what), strict_mode=True)
    except ValueError:
        raise SaslError(f"SCRAM {what}: field {name} is not base64") from None


def _extensions(fields: list[str], what: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for field in fields:
        match = _EXTENSION.fullmatch(field)
        if match is None or match[1] in found:
            raise SaslError(f"SCRAM {what}: an extension that is malformed or given twice")
        found[match[1]] = match[2]
    return found

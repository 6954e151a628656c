"""OAUTHBEARER's messages (RFC 7628, section 3): the client's first, which carries a token, and the server's refusal."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.security.sasl.mechanism import SaslError
from moldau.security.sasl.saslname import read_gs2_authzid, to_saslname

SEPARATOR = "\x01"
AUTH = "auth"
MESSAGE_BYTES_MAX = 65_536  # from whoever connects; twice the longest token
PAIRS_MAX = 32  # the token and extensions, of which clients send a few
ACKNOWLEDGED = b"\x01"  # a client's answer to a refusal, after which the server ends the exchange

_NAME = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_BEARER = re.compile(r"(\w+) +([A-Za-z0-9._~+/-]+=*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClientInitialResponse:
    token: str = field(repr=False)
    authzid: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)


def read_client_initial_response(message: bytes) -> ClientInitialResponse:
    """SaslError unless it is one, with exactly one token."""
    what = "Invalid OAUTHBEARER client first message"
    if len(message) > MESSAGE_BYTES_MAX:
        raise SaslError(f"{what}: {len(message)} bytes; at most {MESSAGE_BYTES_MAX} are allowed")
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise SaslError(f"{what}: not UTF-8") from None
    header, *pairs = text.split(SEPARATOR, PAIRS_MAX + 3)
    if len(pairs) > PAIRS_MAX + 2:
        raise SaslError(f"{what}: more than {PAIRS_MAX} pairs")
    flag, *rest = header.split(",", 3)
    # Each pair ends with a separator, and so does the message: two empty texts after the last pair.
    if flag != "n" or len(rest) != 2 or rest[1] or len(pairs) < 2 or pairs[-2:] != ["", ""]:
        raise SaslError(what)
    values = _values(pairs[:-2], what)
    auth = values.pop(AUTH, None)
    if auth is None:
        raise SaslError(f"{what}: 'auth' not specified")
    bearer = _BEARER.fullmatch(auth)
    if bearer is None:
        raise SaslError(f"{what}: invalid 'auth' format")
    if bearer[1].lower() != "bearer":
        raise SaslError(f"{what}: the scheme is not Bearer")
    return ClientInitialResponse(bearer[2], read_gs2_authzid(rest[0]), values)


def write_client_initial_response(response: ClientInitialResponse) -> bytes:
    """SaslError if an extension can't be told, or would stand for the token."""
    authzid = f"a={to_saslname(response.authzid)}" if response.authzid else ""
    if AUTH in response.extensions:
        raise SaslError("Extension name auth is invalid")
    pairs = [f"{AUTH}=Bearer {response.token}", *(f"{name}={value}" for name, value in response.extensions.items())]
    _values(pairs, "Invalid OAUTHBEARER extensions")
    return SEPARATOR.join([f"n,{authzid},", *pairs, "", ""]).encode()


def _values(pairs: list[str], what: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise SaslError(f"{what}: a key or a value has characters that are not allowed")
        if name in values:
            raise SaslError(f"{what}: '{name}' is given twice")
        values[name] = value
    return values


def write_error(status: str, *, scope: str | None = None) -> bytes:
    """The refusal as JSON, in Kafka's layout."""
    error = {"status": status} if scope is None else {"status": status, "scope": scope}
    return json.dumps(error, separators=(", ", ":")).encode()

"""SaslAuthenticate (36): one token of a login, and the server's answer to it.

1 tells how long the session lasts, which is how a client knows that it may log in again; 2 is flexible.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Bytes, Int16, Int64, since


class SaslAuthenticateRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.SASL_AUTHENTICATE
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    auth_bytes: Bytes = b""


class SaslAuthenticateResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.SASL_AUTHENTICATE
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 2

    error_code: Int16 = 0
    error_message: str | None = ""
    auth_bytes: Bytes = b""
    session_lifetime_ms: Annotated[Int64, since(1), IGNORABLE] = 0

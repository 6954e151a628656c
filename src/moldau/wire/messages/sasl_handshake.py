"""SaslHandshake (17): the mechanism of a login.

0 is followed by bare tokens, each a frame of its own, 1 by SaslAuthenticate. It has no flexible version, because
clients up to 2.4 take the highest that a broker has.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import NEVER, Int16


class SaslHandshakeRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.SASL_HANDSHAKE
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    mechanism: str = ""


class SaslHandshakeResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.SASL_HANDSHAKE
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = NEVER

    error_code: Int16 = 0
    mechanisms: list[str] = []

"""Envelope (58): a client's request, as its broker got it, on the way to the controller; every version is flexible."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Bytes, Int16


class EnvelopeRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ENVELOPE
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    request_data: Bytes = b""
    request_principal: Bytes | None = b""
    client_host_address: Bytes = b""


class EnvelopeResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ENVELOPE
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    response_data: Bytes | None = None
    error_code: Int16 = 0

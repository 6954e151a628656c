"""SaslHandshake, v0 and v1, where nobody logs in: a listener with SASL answers it before requests come here."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@api(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest, versions=(0, 1))
def sasl_handshake(_request: SaslHandshakeRequest, _context: Context) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)

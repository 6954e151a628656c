"""SaslAuthenticate, v0 to v2, where nobody logs in: a listener with SASL answers it before requests come here."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

REFUSED = "SaslAuthenticate request received after successful authentication"


@api(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest, versions=(0, 2))
def sasl_authenticate(_request: SaslAuthenticateRequest, _context: Context) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=REFUSED)

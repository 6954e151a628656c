"""ExpireDelegationToken, v1 and v2: an earlier end for a token, or its end at once."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.token_requests import ERROR_TIMESTAMP, are_tokens_allowed, controllers_answer
from moldau.controller.settings.delegation_tokens import decide_expire_token
from moldau.core.errors import ApiError, ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


@api(ApiKey.EXPIRE_DELEGATION_TOKEN, ExpireDelegationTokenRequest, versions=(1, 2), forwarded=True, splits=True)
async def expire_delegation_token(
    request: ExpireDelegationTokenRequest, context: Context
) -> ExpireDelegationTokenResponse:
    if not are_tokens_allowed(context):
        return ExpireDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, ERROR_TIMESTAMP)
    answer = await controllers_answer(request, ExpireDelegationTokenResponse, context)
    if answer is not None:
        return answer
    services = context.services
    if services.delegation_tokens is None:
        return ExpireDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    token_id, now_ms = services.delegation_tokens.id_of(bytes(request.hmac)), services.clock.now_ms()
    try:
        expired = await services.controller.write(
            lambda image: decide_expire_token(
                image,
                token_id,
                requester=context.principal,
                period_ms=request.expiry_time_period_ms,
                now_ms=now_ms,
            )
        )
    except ApiError as wrong:
        return ExpireDelegationTokenResponse(wrong.code)
    return ExpireDelegationTokenResponse(expired.error, expired.expires_ms)

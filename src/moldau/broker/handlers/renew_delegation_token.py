"""RenewDelegationToken, v1 and v2: a later end for a token, asked for by its owner or one of its renewers."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.token_requests import ERROR_TIMESTAMP, are_tokens_allowed, controllers_answer, token_lifetimes
from moldau.controller.settings.delegation_tokens import decide_renew_token
from moldau.core.errors import ApiError, ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


@api(ApiKey.RENEW_DELEGATION_TOKEN, RenewDelegationTokenRequest, versions=(1, 2), forwarded=True, splits=True)
async def renew_delegation_token(
    request: RenewDelegationTokenRequest, context: Context
) -> RenewDelegationTokenResponse:
    if not are_tokens_allowed(context):
        return RenewDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, ERROR_TIMESTAMP)
    answer = await controllers_answer(request, RenewDelegationTokenResponse, context)
    if answer is not None:
        return answer
    services = context.services
    if services.delegation_tokens is None:
        return RenewDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    token_id = services.delegation_tokens.id_of(bytes(request.hmac))
    lifetimes, now_ms = token_lifetimes(context), services.clock.now_ms()
    try:
        renewed = await services.controller.write(
            lambda image: decide_renew_token(
                image,
                token_id,
                requester=context.principal,
                period_ms=request.renew_period_ms,
                lifetimes=lifetimes,
                now_ms=now_ms,
            )
        )
    except ApiError as wrong:
        return RenewDelegationTokenResponse(wrong.code)
    return RenewDelegationTokenResponse(renewed.error, renewed.expires_ms)

"""CreateDelegationToken, v1 to v3: a token that logs in for whoever asks, or since v3 for another owner."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.rights import CREATE_TOKENS, USER
from moldau.broker.token_requests import ERROR_TIMESTAMP, are_tokens_allowed, controllers_answer, token_lifetimes
from moldau.controller.settings.delegation_tokens import decide_create_token
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import format_uuid, random_uuid
from moldau.core.limits import DELEGATION_TOKEN_RENEWERS_MAX
from moldau.security.principals import USER_TYPE, Principal
from moldau.wire.api import ApiKey
from moldau.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse

REQUESTER_SINCE = 3


@api(ApiKey.CREATE_DELEGATION_TOKEN, CreateDelegationTokenRequest, versions=(1, 3), forwarded=True, splits=True)
async def create_delegation_token(
    request: CreateDelegationTokenRequest, context: Context
) -> CreateDelegationTokenResponse:
    owner = context.principal
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    refusal = _refusal(request, owner, context)
    if refusal is not None:
        return _response(refusal, owner, context, timestamp_ms=ERROR_TIMESTAMP)
    answer = await controllers_answer(request, CreateDelegationTokenResponse, context)
    return await _create(request, owner, context) if answer is None else answer


def _refusal(request: CreateDelegationTokenRequest, owner: Principal, context: Context) -> ErrorCode | None:
    if not are_tokens_allowed(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != context.principal and not context.may(CREATE_TOKENS, USER, str(owner)):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if len(request.renewers) > DELEGATION_TOKEN_RENEWERS_MAX:
        return ErrorCode.INVALID_REQUEST
    is_owner_typed = not request.owner_principal_name or request.owner_principal_type is not None
    if not is_owner_typed or any(each.principal_type != USER_TYPE for each in request.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return None


async def _create(
    request: CreateDelegationTokenRequest, owner: Principal, context: Context
) -> CreateDelegationTokenResponse:
    services = context.services
    tokens = services.delegation_tokens
    if tokens is None:
        return _response(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, owner, context)
    decision = decide_create_token(
        token_id=format_uuid(random_uuid()),
        owner=owner,
        requester=context.principal,
        renewers=[Principal(each.principal_type, each.principal_name) for each in request.renewers],
        max_lifetime_ms=request.max_lifetime_ms,
        lifetimes=token_lifetimes(context),
        now_ms=services.clock.now_ms(),
    )
    try:
        token = await services.controller.write(lambda _: decision)
    except ApiError as wrong:
        return _response(wrong.code, owner, context)
    response = _response(ErrorCode.NONE, owner, context)
    response.issue_timestamp_ms, response.expiry_timestamp_ms = token.issued_ms, token.expires_ms
    response.max_timestamp_ms = token.max_ms
    response.token_id, response.hmac = token.id, tokens.hmac(token.id)
    return response


def _response(
    error: ErrorCode, owner: Principal, context: Context, *, timestamp_ms: int = 0
) -> CreateDelegationTokenResponse:
    requester = context.principal if context.version >= REQUESTER_SINCE else Principal("", "")
    return CreateDelegationTokenResponse(
        error_code=error,
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=timestamp_ms,
        expiry_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
    )

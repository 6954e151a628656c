"""DescribeDelegationToken, v1 to v3: the tokens of some principals, or all, as far as the asker may see them.

Since v3 with who asked for a token.
"""

from __future__ import annotations

from asyncio import Future
from typing import TYPE_CHECKING, Any

from moldau.broker.api import Answer, api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, in_thread, in_turn
from moldau.broker.rights import DELEGATION_TOKEN, DESCRIBE, DESCRIBE_TOKENS, USER
from moldau.broker.token_requests import are_tokens_allowed
from moldau.coordinator.long_work import chunks
from moldau.core.errors import ErrorCode
from moldau.security.delegation_tokens import DelegationToken
from moldau.security.principals import Principal
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from moldau.broker.delegation_tokens import DelegationTokens

REQUESTER_SINCE = 3
PART = 100  # tokens that are looked at between two looks at the time


@api(ApiKey.DESCRIBE_DELEGATION_TOKEN, DescribeDelegationTokenRequest, versions=(1, 3))
def describe_delegation_token(request: DescribeDelegationTokenRequest, context: Context) -> Answer:
    if not are_tokens_allowed(context):
        return DescribeDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    tokens = context.services.delegation_tokens
    if tokens is None:
        return DescribeDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if request.owners is None:
        return _describe(None, tokens, context)
    if len(request.owners) > ROWS_MAX:
        return _describe_of_many(request.owners, tokens, context)
    return _describe(_principals(request.owners), tokens, context)


async def _describe_of_many(
    owners: list[DescribeDelegationTokenOwner], tokens: DelegationTokens, context: Context
) -> Any:
    principals = await in_thread(lambda: _principals(owners), context)
    answer = _describe(principals, tokens, context)
    return await answer if isinstance(answer, Future) else answer


def _principals(owners: list[DescribeDelegationTokenOwner]) -> set[Principal]:
    return {Principal(each.principal_type, each.principal_name) for each in owners}


def _describe(owners: set[Principal] | None, tokens: DelegationTokens, context: Context) -> Answer:
    """Of these owners, or of all."""

    def describe(part: list[DelegationToken]) -> list[DescribedDelegationToken]:
        found = [each for each in part if owners is None or _is_about(each, owners)]
        return [_described(each, tokens, context.version) for each in found if _is_shown(each, context)]

    def shape(found: list[list[DescribedDelegationToken]]) -> DescribeDelegationTokenResponse:
        return DescribeDelegationTokenResponse(tokens=[each for part in found for each in part])

    there = context.services.controller.image.delegation_tokens.values()
    return in_turn(chunks(there, PART), describe, shape, context, rows=lambda found: sum(map(len, found)))


def _is_about(token: DelegationToken, principals: set[Principal]) -> bool:
    return not principals.isdisjoint((token.owner, token.requester, *token.renewers))


def _is_shown(token: DelegationToken, context: Context) -> bool:
    return (
        token.concerns(context.principal)
        or context.may(DESCRIBE_TOKENS, USER, str(token.owner), is_audited=False)
        or context.may(DESCRIBE, DELEGATION_TOKEN, token.id)
    )


def _described(token: DelegationToken, tokens: DelegationTokens, version: int) -> DescribedDelegationToken:
    requester = token.requester if version >= REQUESTER_SINCE else Principal("", "")
    return DescribedDelegationToken(
        principal_type=token.owner.kind,
        principal_name=token.owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.id,
        hmac=tokens.hmac(token.id),
        renewers=[DescribedDelegationTokenRenewer(each.kind, each.name) for each in token.renewers],
    )

"""Delegation tokens are created, renewed and expired. Rules, their order and their errors are Kafka's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from moldau.controller.image import ClusterImage, Draft
from moldau.controller.records import DelegationTokenRemoved, DelegationTokenSet
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.limits import DELEGATION_TOKENS_PER_SWEEP_MAX
from moldau.security.delegation_tokens import DelegationToken
from moldau.security.principals import Principal

FOREVER_MS = 2**63 - 1  # the latest time that the protocol has a number for


class TokenLifetimes(NamedTuple):
    max_ms: int
    """`delegation.token.max.lifetime.ms`: beyond it nothing renews a token."""
    renewal_ms: int
    """`delegation.token.expiry.time.ms`: how long a token lasts without being renewed."""


class TokenExpiry(NamedTuple):
    """What a renewal, or an expiry, came to."""

    error: ErrorCode = ErrorCode.NONE
    expires_ms: int = 0


def decide_create_token(
    *,
    token_id: str,
    owner: Principal,
    requester: Principal,
    renewers: Sequence[Principal],
    max_lifetime_ms: int,
    lifetimes: TokenLifetimes,
    now_ms: int,
) -> Decision[DelegationToken]:
    """`token_id` is random and new. A lifetime that is not positive stands for the longest that is allowed."""
    lifetime_ms = min(lifetimes.max_ms, max_lifetime_ms) if max_lifetime_ms > 0 else lifetimes.max_ms
    max_ms = _later(now_ms, lifetime_ms)
    token = DelegationToken(
        id=token_id,
        owner=owner,
        requester=requester,
        renewers=tuple(renewers),
        issued_ms=now_ms,
        max_ms=max_ms,
        expires_ms=min(max_ms, _later(now_ms, lifetimes.renewal_ms)),
    )
    return Decision(records=(DelegationTokenSet(token),), reply=token)


def decide_renew_token(
    image: ClusterImage,
    token_id: str | None,
    *,
    requester: Principal,
    period_ms: int,
    lifetimes: TokenLifetimes,
    now_ms: int,
) -> Decision[TokenExpiry]:
    """`token_id` is None if no token has the HMAC that was sent. A period that is not positive is the longest."""
    token = None if token_id is None else image.delegation_tokens.get(token_id)
    if token is None:
        return _refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    if token.is_expired(now_ms):
        return _refused(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    if not token.may_be_renewed_by(requester):
        return _refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    renewal_ms = min(lifetimes.renewal_ms, period_ms) if period_ms > 0 else lifetimes.renewal_ms
    return _expiring(token, _later(now_ms, renewal_ms))


def decide_expire_token(
    image: ClusterImage, token_id: str | None, *, requester: Principal, period_ms: int, now_ms: int
) -> Decision[TokenExpiry]:
    """A negative period ends the token at once, also one that has expired and is still there."""
    token = None if token_id is None else image.delegation_tokens.get(token_id)
    if token is None:
        return _refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    if not token.may_be_renewed_by(requester):
        return _refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    if period_ms < 0:
        return Decision(records=(DelegationTokenRemoved(token.id),), reply=TokenExpiry(expires_ms=now_ms))
    if token.is_expired(now_ms):
        return _refused(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return _expiring(token, _later(now_ms, period_ms))


def decide_remove_expired_tokens(image: ClusterImage, now_ms: int) -> Decision[list[DelegationToken]]:
    """Those that are removed; as many as one entry of the log should hold, and the others are found the next time."""
    expired = [token for token in image.delegation_tokens.values() if token.is_expired(now_ms)]
    removed = expired[:DELEGATION_TOKENS_PER_SWEEP_MAX]
    return Decision(records=tuple(DelegationTokenRemoved(token.id) for token in removed), reply=removed)


def _refused(error: ErrorCode) -> Decision[TokenExpiry]:
    return Decision.reply_only(TokenExpiry(error))


def _expiring(token: DelegationToken, expires_ms: int) -> Decision[TokenExpiry]:
    expires_ms = min(token.max_ms, expires_ms)
    record = DelegationTokenSet(replace(token, expires_ms=expires_ms))
    return Decision(records=(record,), reply=TokenExpiry(expires_ms=expires_ms))


def _later(now_ms: int, period_ms: int) -> int:
    return min(FOREVER_MS, now_ms + period_ms)


def apply_delegation_token_set(draft: Draft, record: DelegationTokenSet) -> None:
    draft.delegation_tokens()[record.token.id] = record.token


def apply_delegation_token_removed(draft: Draft, record: DelegationTokenRemoved) -> None:
    del draft.delegation_tokens()[record.token_id]


def delegation_token_records(image: ClusterImage) -> Iterator[DelegationTokenSet]:
    return map(DelegationTokenSet, image.delegation_tokens.values())

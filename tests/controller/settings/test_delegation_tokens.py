"""Delegation tokens in the metadata: what each decision says, and for whom."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from moldau.controller.image import ClusterImage
from moldau.controller.machine import apply, snapshot_records
from moldau.controller.records import (
    DelegationTokenRemoved,
    DelegationTokenSet,
    Record,
    decode_records,
    encode_records,
)
from moldau.controller.settings.delegation_tokens import (
    FOREVER_MS,
    TokenExpiry,
    TokenLifetimes,
    decide_create_token,
    decide_expire_token,
    decide_remove_expired_tokens,
    decide_renew_token,
)
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.security.delegation_tokens import DelegationToken
from moldau.security.principals import Principal
from tests.controller.clusters import cluster

ALICE, BOB, CAROL, ERIN = (Principal("User", name) for name in ("alice", "bob", "carol", "erin"))
LIFETIMES = TokenLifetimes(max_ms=10_000, renewal_ms=1_000)
NOW_MS = 1_000_000
TOKEN = DelegationToken("t1", ALICE, CAROL, (BOB,), NOW_MS, NOW_MS + 10_000, NOW_MS + 1_000)


def with_tokens(*tokens: DelegationToken) -> ClusterImage:
    return apply(cluster(), map(DelegationTokenSet, tokens))


def create(max_lifetime_ms: int = -1, lifetimes: TokenLifetimes = LIFETIMES) -> Decision[DelegationToken]:
    return decide_create_token(
        token_id="t1",
        owner=ALICE,
        requester=CAROL,
        renewers=[BOB],
        max_lifetime_ms=max_lifetime_ms,
        lifetimes=lifetimes,
        now_ms=NOW_MS,
    )


def renew(
    image: ClusterImage,
    token_id: str | None = "t1",
    *,
    requester: Principal = ALICE,
    period_ms: int = -1,
    lifetimes: TokenLifetimes = LIFETIMES,
    now_ms: int = NOW_MS,
) -> Decision[TokenExpiry]:
    return decide_renew_token(
        image, token_id, requester=requester, period_ms=period_ms, lifetimes=lifetimes, now_ms=now_ms
    )


def expire(
    image: ClusterImage,
    token_id: str | None = "t1",
    *,
    requester: Principal = ALICE,
    period_ms: int = -1,
    now_ms: int = NOW_MS,
) -> Decision[TokenExpiry]:
    return decide_expire_token(image, token_id, requester=requester, period_ms=period_ms, now_ms=now_ms)


def until(expires_ms: int, token: DelegationToken = TOKEN) -> Decision[TokenExpiry]:
    return Decision((DelegationTokenSet(replace(token, expires_ms=expires_ms)),), TokenExpiry(expires_ms=expires_ms))


def refused(error: ErrorCode) -> Decision[TokenExpiry]:
    return Decision.reply_only(TokenExpiry(error))


def test_a_token_is_what_was_asked_for() -> None:
    assert create() == Decision((DelegationTokenSet(TOKEN),), TOKEN)


@pytest.mark.parametrize(
    ("asked_ms", "lifetime_ms", "expires_ms"),
    [(-1, 10_000, 1_000), (0, 10_000, 1_000), (5_000, 5_000, 1_000), (20_000, 10_000, 1_000), (300, 300, 300)],
)
def test_no_token_lives_longer_than_is_allowed(asked_ms: int, lifetime_ms: int, expires_ms: int) -> None:
    token = replace(TOKEN, max_ms=NOW_MS + lifetime_ms, expires_ms=NOW_MS + expires_ms)
    assert create(asked_ms) == Decision((DelegationTokenSet(token),), token)


def test_time_ends_where_its_numbers_do() -> None:
    forever = TokenLifetimes(FOREVER_MS, FOREVER_MS)
    token = replace(TOKEN, max_ms=FOREVER_MS, expires_ms=FOREVER_MS)
    assert create(lifetimes=forever).reply == token
    assert renew(with_tokens(token), lifetimes=forever) == until(FOREVER_MS, token)
    assert expire(with_tokens(token), period_ms=FOREVER_MS) == until(FOREVER_MS, token)


@pytest.mark.parametrize(
    ("period_ms", "expires_ms"), [(-1, 1_500), (0, 1_500), (700, 1_200), (2_000, 1_500), (FOREVER_MS, 1_500)]
)
def test_a_renewal_lasts_as_long_as_is_allowed(period_ms: int, expires_ms: int) -> None:
    renewed = renew(with_tokens(TOKEN), period_ms=period_ms, now_ms=NOW_MS + 500)
    assert renewed == until(NOW_MS + expires_ms)


def test_a_renewal_does_not_pass_the_maximum() -> None:
    late = replace(TOKEN, expires_ms=NOW_MS + 9_900)
    assert renew(with_tokens(late), now_ms=NOW_MS + 9_800) == until(TOKEN.max_ms)


def test_owner_and_renewers_may_renew_and_expire() -> None:
    image = with_tokens(TOKEN)
    for requester in (ALICE, BOB):
        assert renew(image, requester=requester) == until(NOW_MS + 1_000)
        assert expire(image, requester=requester, period_ms=5) == until(NOW_MS + 5)
    for requester in (CAROL, ERIN, Principal("Group", "alice")):
        assert renew(image, requester=requester) == refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        assert expire(image, requester=requester) == refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


@pytest.mark.parametrize("token_id", [None, "t2"])
def test_a_token_that_is_not_there(token_id: str | None) -> None:
    image = with_tokens(TOKEN)
    assert renew(image, token_id) == refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    assert expire(image, token_id) == refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)


def test_what_has_expired_stays_so() -> None:
    image, late_ms = with_tokens(TOKEN), TOKEN.expires_ms + 1
    for requester in (ALICE, ERIN):  # whoever asks
        assert renew(image, requester=requester, now_ms=late_ms) == refused(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    assert expire(image, period_ms=5, now_ms=late_ms) == refused(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    mismatch = refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    assert expire(image, requester=ERIN, period_ms=5, now_ms=late_ms) == mismatch
    assert renew(image, now_ms=TOKEN.expires_ms) == until(TOKEN.expires_ms + 1_000)  # the last moment


def test_a_token_is_ended_at_once() -> None:
    image, late_ms = with_tokens(TOKEN), TOKEN.expires_ms + 1
    for now_ms in (NOW_MS, late_ms):
        ended = Decision((DelegationTokenRemoved("t1"),), TokenExpiry(expires_ms=now_ms))
        assert expire(image, period_ms=-1, now_ms=now_ms) == ended
    assert apply(image, [DelegationTokenRemoved("t1")]).delegation_tokens == {}


def test_an_expiry_may_be_later_up_to_the_maximum() -> None:
    image = with_tokens(TOKEN)
    assert expire(image, period_ms=0) == until(NOW_MS)
    assert expire(image, period_ms=5_000) == until(NOW_MS + 5_000)
    assert expire(image, period_ms=50_000) == until(TOKEN.max_ms)


def test_tokens_that_have_expired_are_removed() -> None:
    later = replace(TOKEN, id="t2", expires_ms=NOW_MS + 5_000)
    image = with_tokens(TOKEN, later)
    assert decide_remove_expired_tokens(image, TOKEN.expires_ms) == Decision((), [])
    now_ms = TOKEN.expires_ms + 1
    assert decide_remove_expired_tokens(image, now_ms) == Decision((DelegationTokenRemoved("t1"),), [TOKEN])


def test_many_tokens_are_removed_in_turns() -> None:
    image = with_tokens(*(replace(TOKEN, id=f"t{number}") for number in range(1_500)))
    for left in (500, 0, 0):
        image = apply(image, decide_remove_expired_tokens(image, FOREVER_MS).records)
        assert len(image.delegation_tokens) == left


def test_whom_a_token_concerns() -> None:
    everybody = (ALICE, BOB, CAROL, ERIN)
    assert [principal for principal in everybody if TOKEN.concerns(principal)] == [ALICE, BOB, CAROL]


def test_records_go_through_bytes_and_snapshots() -> None:
    records: list[Record] = [
        DelegationTokenSet(TOKEN),
        DelegationTokenSet(replace(TOKEN, id="t2", renewers=())),
        DelegationTokenRemoved("t1"),
    ]
    assert decode_records(encode_records(records)) == records
    image = apply(cluster(), records)
    assert list(image.delegation_tokens) == ["t2"]
    assert apply(ClusterImage(), snapshot_records(image)).delegation_tokens == image.delegation_tokens

"""A delegation token (KIP-48): who it logs in, who may renew it, and until when. Its HMAC is the password.

The HMAC is of the token's id, with a secret that every broker is configured with: the cluster's metadata holds nothing
to log in with.
"""

from __future__ import annotations

import msgspec

from moldau.security.principals import Principal


class DelegationToken(msgspec.Struct, frozen=True, array_like=True):
    id: str
    owner: Principal
    requester: Principal
    """Who asked for it; another than the owner needs a right for that."""
    renewers: tuple[Principal, ...]
    issued_ms: int
    max_ms: int
    """Until when it can be renewed."""
    expires_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def may_be_renewed_by(self, principal: Principal) -> bool:
        """Or expired: whoever may do one may do the other, and the requester neither."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: Principal) -> bool:
        """Whether it is described to this principal without a further right, and when this one is asked about."""
        return principal == self.requester or self.may_be_renewed_by(principal)

"""What is known of an access token that was found valid, and the rules for its claims: RFC 7519 and Kafka's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MS = 1_000
SECONDS_MAX = 2**53 // MS  # beyond it a double has no milliseconds, and no date has so many


class InvalidToken(Exception):
    """A token that this broker does not take; the text says why, without the token."""


@dataclass(frozen=True, slots=True)
class BearerToken:
    principal: str
    scope: frozenset[str]
    expires_ms: int
    issued_ms: int


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """The keys sasl.oauthbearer.* that say which claims a token must have."""

    audiences: frozenset[str] = frozenset()
    issuer: str | None = None
    clock_skew_ms: int = 30 * MS
    scope_claim: str = "scope"
    sub_claim: str = "sub"

    def check(self, claims: Mapping[str, Any], now_ms: int) -> BearerToken:
        expires_ms, issued_ms = self._check_times(claims, now_ms)
        self._check_issuer(claims.get("iss"))
        self._check_audience(claims.get("aud"))
        return BearerToken(
            principal=_text(self.sub_claim, claims.get(self.sub_claim)),
            scope=_scope(self.scope_claim, claims.get(self.scope_claim)),
            expires_ms=expires_ms,
            issued_ms=issued_ms,
        )

    def _check_times(self, claims: Mapping[str, Any], now_ms: int) -> tuple[int, int]:
        expires_ms = _time_ms("exp", claims.get("exp"))
        issued_ms = _time_ms("iat", claims.get("iat"))
        if now_ms - self.clock_skew_ms >= expires_ms:
            raise InvalidToken("the token expired")
        if issued_ms > now_ms + self.clock_skew_ms:
            raise InvalidToken("the token was issued in the future")
        if issued_ms > expires_ms:
            raise InvalidToken("the token expires before it was issued")
        if claims.get("nbf") is not None:
            not_before_ms = _time_ms("nbf", claims["nbf"])
            if not_before_ms > now_ms + self.clock_skew_ms:
                raise InvalidToken("the token is not valid yet")
            if not_before_ms > expires_ms:
                raise InvalidToken("the token expires before it becomes valid")
        return expires_ms, issued_ms

    def _check_issuer(self, issuer: object) -> None:
        if self.issuer is not None and issuer != self.issuer:
            raise InvalidToken("the issuer is not the expected one")

    def _check_audience(self, audience: object) -> None:
        if audience is None and not self.audiences:
            return
        named = audience if isinstance(audience, list) else [audience]
        # A token for somebody else is refused where no audience is expected too, as RFC 7519 and Kafka have it.
        if not any(isinstance(each, str) and each in self.audiences for each in named):
            raise InvalidToken("the audience is missing or not an expected one")


def _time_ms(claim: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidToken(f"{claim} is missing or no number")
    if not 0 <= value <= SECONDS_MAX:  # which no NaN is
        raise InvalidToken(f"{claim} is no time")
    return int(value * MS)


def _text(claim: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidToken(f"{claim} is missing, empty or no text")
    return value.strip()


def _scope(claim: str, value: object) -> frozenset[str]:
    """A text is one scope, as in Kafka; anything but texts and lists of them counts as none."""
    scopes: Iterable[object] = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    texts = [_text(claim, each) for each in scopes]
    if len(set(texts)) < len(texts):
        raise InvalidToken(f"{claim} has duplicates")
    return frozenset(texts)

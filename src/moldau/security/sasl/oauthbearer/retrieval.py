"""A client's tokens: from a file that others keep fresh, or from an issuer by client credentials (RFC 6749, 4.4)."""

from __future__ import annotations

import base64
import errno
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from time import monotonic
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from urllib.request import url2pathname

from moldau.core.limits import MIB
from moldau.core.text import cut
from moldau.security.sasl.oauthbearer import issuer

TOKEN_BYTES_MAX: Final = MIB  # no server takes half of it
ENDPOINTS_MAX: Final = 8  # of one process, which rarely has more than one
ANSWER_S_MAX: Final = 10.0
LASTS_S_MAX: Final = 400 * 86_400.0
USED_FOR: Final = 0.8  # of a token's time, so that a login with it has some of that left
TOLD_BYTES_MAX: Final = 200


class NoToken(OSError):
    """The token can't be had. The text says why, and holds no secret."""


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Where tokens are, and for whom."""

    url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    authorities: str | None = None
    """Certificates of those who are trusted for an https: URL, the system's if None."""

    @property
    def is_file(self) -> bool:
        parts = urlsplit(self.url)
        return parts.scheme == "file" and bool(parts.path) and not parts.netloc

    @property
    def is_usable(self) -> bool:
        """Whether it is a file, or has all that an issuer asks for."""
        parts = urlsplit(self.url)
        is_named = parts.scheme == "https" and bool(parts.hostname)
        return self.is_file or (is_named and bool(self.client_id and self.client_secret))


class TokenRetriever:
    """Called for each login, from any thread: a file is read each time, an issuer asked when its token grows old."""

    def __init__(self, endpoint: TokenEndpoint, clock: Callable[[], float] = monotonic) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._good_until_s = clock()

    def __call__(self) -> str:
        """OSError if there is none."""
        if self._endpoint.is_file:
            with open(url2pathname(urlsplit(self._endpoint.url).path), encoding="utf-8", errors="replace") as file:
                return file.read(TOKEN_BYTES_MAX).strip()
        with self._lock:
            if self._clock() >= self._good_until_s:
                began_s = self._clock()
                self._token, lasts_s = _issued(self._endpoint)
                self._good_until_s = began_s + USED_FOR * lasts_s
            return self._token


@lru_cache(maxsize=ENDPOINTS_MAX)
def retriever_of(endpoint: TokenEndpoint) -> TokenRetriever:
    """The same for all connections of a process, so that they share a token."""
    return TokenRetriever(endpoint)


def _issued(endpoint: TokenEndpoint) -> tuple[str, float]:
    """A token, and for how many seconds it is good."""
    pair = base64.b64encode(f"{endpoint.client_id}:{endpoint.client_secret}".encode()).decode()
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {pair}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    wanted = {"grant_type": "client_credentials"} | ({"scope": endpoint.scope} if endpoint.scope else {})
    try:
        status, content = issuer.ask(
            endpoint.url,
            seconds=ANSWER_S_MAX,
            bytes_max=TOKEN_BYTES_MAX,
            body=urlencode(wanted).encode(),
            headers=headers,
            authorities=endpoint.authorities,
        )
    except issuer.FAILURES as wrong:
        raise _no_token(endpoint, issuer.reason(wrong)) from None
    answer = _read(content)
    if status != 200:
        why = answer.get("error_description") or answer.get("error") or ""
        raise _no_token(endpoint, f"it answers {status} {cut(str(why), TOLD_BYTES_MAX)}".rstrip())
    token = answer.get("access_token")
    if not isinstance(token, str) or not token:
        raise _no_token(endpoint, "there is no access_token in its answer")
    return token, _seconds(answer.get("expires_in"))


def _seconds(found: Any) -> float:
    """None at all for what is no number, or not one that a token lasts: it is used once then."""
    try:
        seconds = float(found)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return seconds if 0 < seconds <= LASTS_S_MAX else 0.0


def _read(content: bytes) -> dict[str, Any]:
    """Nothing if it is something else, such as a page for people."""
    try:
        found = json.loads(content) if len(content) <= TOKEN_BYTES_MAX else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _no_token(endpoint: TokenEndpoint, why: str) -> NoToken:
    return NoToken(errno.EACCES, f"{endpoint.url}: {why}")

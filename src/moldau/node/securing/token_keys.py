"""The keys that OAUTHBEARER's tokens are signed with: from the URL of the configuration, and no other place.

They are fetched again by the configured interval, and earlier, but not often, when a token names a key that is not
among them: issuers replace keys. Each fetch has a thread of its own: an issuer that does not answer keeps no handshake
and no login waiting, and no broker from stopping.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from functools import partial
from time import monotonic
from urllib.parse import urlsplit
from urllib.request import url2pathname

from moldau.core.host_names import is_certain_name
from moldau.core.limits import MIB
from moldau.security.sasl.oauthbearer import issuer
from moldau.security.sasl.oauthbearer.jwks import InvalidJwks, JwtValidator, read_jwks
from moldau.security.sasl.oauthbearer.token import BearerToken, ClaimRules, InvalidToken

LOGGER = logging.getLogger(__name__)

FETCH_S_MAX = 10.0
JWKS_BYTES_MAX = MIB  # a hundred keys are some hundred kilobytes
REFRESH_S_MIN = 1.0  # each fetch reads the system's authorities anew, which takes a core some hundredths of a second
RETRY_S_MIN = 0.1  # Kafka's default: its 0 means not to wait, which would take a core while an issuer is down
EARLIER_S_MIN = 60.0  # between two fetches that tokens ask for: anybody can name a key that is nowhere


class NoKeys(Exception):
    """The keys can't be had; the text says why."""


def is_url(url: str) -> bool:
    """Of a file, or of a host that there could be: whether it answers is known later."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # half an IPv6 address, or a port that is no number
        return False
    if parts.scheme == "file":
        return bool(parts.path)
    is_clean = url.isprintable() and " " not in url
    return parts.scheme == "https" and port != 0 and is_clean and (":" in host or is_certain_name(host))


def fetch(url: str) -> bytes:
    """Of an https: or file: URL, without redirections: where keys are is the configuration's to say."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            with open(url2pathname(parts.path), "rb") as file:
                content = file.read(JWKS_BYTES_MAX + 1)
        else:
            status, content = issuer.ask(url, seconds=FETCH_S_MAX, bytes_max=JWKS_BYTES_MAX)
            if status != 200:
                raise NoKeys(f"{url} answers {status}")
    except issuer.FAILURES as wrong:
        raise NoKeys(f"{url}: {issuer.reason(wrong)}") from None
    if len(content) > JWKS_BYTES_MAX:
        raise NoKeys(f"{url} has more than {JWKS_BYTES_MAX} bytes")
    return content


def fetch_validator(url: str, rules: ClaimRules) -> JwtValidator:
    try:
        return JwtValidator(read_jwks(fetch(url)), rules)
    except InvalidJwks as wrong:
        raise NoKeys(f"{url}: {wrong}") from None


class TokenKeys:
    """The validator of one listener's tokens, with the keys of the moment."""

    def __init__(
        self,
        url: str,
        rules: ClaimRules,
        *,
        refresh_s: float,
        backoff_s: tuple[float, float],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`backoff_s` is how soon a failed fetch is tried again, at first and at most."""
        self._url = url
        self._rules = rules
        self._refresh_s = refresh_s
        self._backoff_s = backoff_s
        self._clock = clock
        self._validator: JwtValidator | None = None
        self._fetched_s = 0.0
        self._is_wanted = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def validate(self, token: str, now_ms: int) -> BearerToken:
        """In a thread of logins."""
        validator = self._validator
        if validator is None:
            raise InvalidToken("the keys that tokens are signed with have not been fetched yet")
        try:
            return validator.validate(token, now_ms)
        except InvalidToken:
            if self._clock() - self._fetched_s >= EARLIER_S_MIN:
                self._loop.call_soon_threadsafe(self._is_wanted.set)
            raise

    async def run(self) -> None:
        failures = 0
        while True:
            try:
                self._validator = await self._fetched()
            except NoKeys as wrong:
                failures += 1
                if failures == 1:
                    LOGGER.warning("the keys of OAUTHBEARER's tokens can't be fetched: %s", wrong)
                first, longest = self._backoff_s
                wait_s = min(longest, first * 2 ** min(failures - 1, 20))
            else:
                if failures:
                    LOGGER.info("the keys of OAUTHBEARER's tokens were fetched again from %s", self._url)
                failures, wait_s = 0, self._refresh_s
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_wanted.wait(), wait_s)

    async def _fetched(self) -> JwtValidator:
        self._is_wanted.clear()
        self._fetched_s = self._clock()
        try:
            async with asyncio.timeout(2 * FETCH_S_MAX):  # the head of an answer may drip, too
                return await _in_a_thread_of_its_own(partial(fetch_validator, self._url, self._rules))
        except TimeoutError:
            raise NoKeys(f"{self._url}: no whole answer within {2 * FETCH_S_MAX:g} s") from None


async def _in_a_thread_of_its_own(work: Callable[[], JwtValidator]) -> JwtValidator:
    loop = asyncio.get_running_loop()
    found: asyncio.Future[JwtValidator] = loop.create_future()

    def settle(result: JwtValidator | None, wrong: Exception | None) -> None:
        if found.done():  # nobody waits any more
            return
        if result is not None:
            found.set_result(result)
        else:
            found.set_exception(wrong or NoKeys("nothing was found"))

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except Exception as wrong:
            failure = wrong
        with contextlib.suppress(RuntimeError):  # the loop is closed: the broker stopped
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="moldau-token-keys", daemon=True).start()
    return await found

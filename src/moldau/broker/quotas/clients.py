"""All client quotas of a broker: what a client did is recorded, and how long it has to pause for it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from moldau.broker.quotas.precedence import Limits, SharedBy
from moldau.broker.quotas.rates import SampledRate, TokenBucket, Windows
from moldau.controller.image import QuotaEntity
from moldau.controller.settings.quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from moldau.core.limits import QUOTA_CLIENTS_MAX

INACTIVE_MS_MAX = 3_600_000  # after which a client's rate is forgotten, as in Kafka
_PERCENT_OF_NS = 100 / 1_000_000_000

S = TypeVar("S", SampledRate, TokenBucket)
Quotas = Mapping[QuotaEntity, Mapping[str, float]]


class Client(NamedTuple):
    """Who asks. A client without an id has an empty one."""

    user: str
    client_id: str


class Remembered(Generic[S]):
    """What each client did of late. So many clients are known as there is room for: the one idle longest goes first.

    A client that takes a new id for each request makes others be forgotten, who then begin anew with an empty rate; the
    memory that it takes stays the same.
    """

    __slots__ = ("_by_client", "_clients_max", "_make")

    def __init__(self, make: Callable[[], S], clients_max: int) -> None:
        self._by_client: dict[SharedBy, tuple[S, int]] = {}
        self._make: Callable[[], S] = make
        self._clients_max = clients_max

    def __len__(self) -> int:
        return len(self._by_client)

    def of(self, client: SharedBy, now_ms: int) -> S:
        known = self._by_client
        found = known.pop(client, None)
        sensor = self._make() if found is None else found[0]
        known[client] = sensor, now_ms
        if found is None:
            self._forget_some(now_ms)
        return sensor

    def _forget_some(self, now_ms: int) -> None:
        """Only when one was added, so that there are never more than that."""
        known = self._by_client
        while known:
            oldest = next(iter(known))
            if len(known) <= self._clients_max and now_ms - known[oldest][1] < INACTIVE_MS_MAX:
                return
            del known[oldest]


class ClientQuotas:
    """The limits of an image and the rates of clients, which stay when limits change."""

    __slots__ = (
        "_clock",
        "_fetch",
        "_mutation",
        "_mutation_windows",
        "_mutations",
        "_produce",
        "_rates",
        "_request",
        "_windows",
    )

    def __init__(
        self,
        elapsed_ms: Callable[[], int],
        *,
        windows: Windows,
        mutation_windows: Windows,
        clients_max: int = QUOTA_CLIENTS_MAX,
    ) -> None:
        self._clock = elapsed_ms
        self._windows, self._mutation_windows = windows, mutation_windows
        self._rates = {
            key: Remembered(SampledRate, clients_max)
            for key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE)
        }
        self._mutations = Remembered(TokenBucket, clients_max)
        self.limit({})

    def limit(self, quotas: Quotas) -> None:
        self._produce = Limits(PRODUCER_BYTE_RATE, quotas)
        self._fetch = Limits(CONSUMER_BYTE_RATE, quotas)
        self._request = Limits(REQUEST_PERCENTAGE, quotas)
        self._mutation = Limits(CONTROLLER_MUTATION_RATE, quotas)

    @property
    def clients(self) -> int:
        """How many rates are remembered."""
        return sum(map(len, self._rates.values())) + len(self._mutations)

    @property
    def counts_time(self) -> bool:
        return not self._request.is_empty

    def produced(self, client: Client, size_bytes: int) -> int:
        """The milliseconds that the client has to pause after a request of this size."""
        return self._recorded(PRODUCER_BYTE_RATE, self._produce, client, size_bytes)

    def took(self, client: Client, spent_ns: int) -> int:
        """The same after a request that took the loop so long; at most one window, as in Kafka."""
        throttle_ms = self._recorded(REQUEST_PERCENTAGE, self._request, client, spent_ns * _PERCENT_OF_NS)
        return min(throttle_ms, self._windows.size_ms)

    def _recorded(self, key: str, limits: Limits, client: Client, amount: float) -> int:
        limit = limits.of(*client)
        if limit is None:
            return 0
        now_ms = self._clock()
        rate = self._rates[key].of(limit.shared_by, now_ms)
        rate.record(amount, self._windows, now_ms)
        return rate.throttle_ms(limit.value, self._windows, now_ms)

    def fetch_bytes_max(self, client: Client) -> int | None:
        """The most that one answer may have without being above the limit for sure; None where there is no limit."""
        limit = self._fetch.of(*client)
        return None if limit is None else int(limit.value * max(self._windows.whole_s, self._windows.size_ms / 1_000))

    def fetched(self, client: Client, size_bytes: int) -> int:
        """Like `produced`, but where the client has to pause it gets nothing, so that nothing is recorded.

        A batch that is larger than what all windows allow is let through when nothing else was of late: Kafka, which
        does not, never gets past it.
        """
        limit = self._fetch.of(*client)
        if limit is None:
            return 0
        now_ms, windows = self._clock(), self._windows
        rate = self._rates[CONSUMER_BYTE_RATE].of(limit.shared_by, now_ms)
        is_first = rate.total(windows, now_ms) <= 0
        rate.record(size_bytes, windows, now_ms)
        throttle_ms = rate.throttle_ms(limit.value, windows, now_ms)
        if throttle_ms == 0 or is_first:
            return 0
        rate.record(-size_bytes, windows, now_ms)
        return throttle_ms

    def mutating(self, client: Client, *, strict: bool) -> MutationQuota | None:
        """For one request that changes the metadata; None where there is no limit."""
        limit = self._mutation.of(*client)
        if limit is None:
            return None
        bucket = self._mutations.of(limit.shared_by, self._clock())
        return MutationQuota(bucket, limit.value, self._mutation_windows, self._clock, strict=strict)


class MutationQuota:
    """Of one request. A strict one refuses what comes when nothing is left; another lets it pass, and throttles."""

    __slots__ = ("_bucket", "_clock", "_limit", "_strict", "_throttle_ms", "_throttled_at_ms", "_windows")

    def __init__(
        self, bucket: TokenBucket, limit: float, windows: Windows, elapsed_ms: Callable[[], int], *, strict: bool
    ) -> None:
        self._bucket, self._limit, self._windows, self._clock = bucket, limit, windows, elapsed_ms
        self._strict = strict
        self._throttle_ms = 0
        self._throttled_at_ms = 0

    def admit(self, partitions: int) -> bool:
        now_ms = self._clock()
        if self._strict and (left_ms := self._bucket.throttle_ms(self._limit, self._windows, now_ms)) > 0:
            self._throttle(left_ms, now_ms)
            return False
        self._bucket.take(partitions, self._limit, self._windows, now_ms)
        if not self._strict:
            self._throttle(self._bucket.throttle_ms(self._limit, self._windows, now_ms), now_ms)
        return True

    @property
    def throttle_ms(self) -> int:
        """What is left of it: the answer may come long after."""
        return max(0, self._throttle_ms - (self._clock() - self._throttled_at_ms))

    def _throttle(self, throttle_ms: int, now_ms: int) -> None:
        self._throttle_ms, self._throttled_at_ms = throttle_ms, now_ms

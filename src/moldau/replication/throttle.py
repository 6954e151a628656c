"""A limit on the bytes per second that catching up may take, for the replicas that a topic's configuration names.

`leader.replication.throttled.rate` limits what a broker sends to followers that are not in sync, and
`follower.replication.throttled.rate` what it fetches for replicas that are not; both only for the replicas of
`leader.` and `follower.replication.throttled.replicas`. The rate is an average over some seconds, as in Apache Kafka
(`ReplicationQuotaManager`): one answer may exceed it, and those after it wait until the average is low enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from moldau.replication.partition import Partition

UNLIMITED = 2**63 - 1
SAMPLES = 11  # the defaults of replication.quota.window.num and .size.seconds
SAMPLE_MS = 1_000

IsThrottled = Callable[[Partition], bool]


class Throttle:
    """What a broker sends, or what it receives. `rate` is read anew each time, so that a change takes effect.

    All times are of a clock that nobody sets.
    """

    __slots__ = ("_recorded", "_sample_ms", "_samples", "_total", "is_throttled", "rate")

    def __init__(
        self,
        rate: Callable[[], int],
        is_throttled: IsThrottled,
        *,
        samples: int = SAMPLES,
        sample_ms: int = SAMPLE_MS,
    ) -> None:
        self.rate = rate
        self.is_throttled = is_throttled
        self._samples = samples
        self._sample_ms = sample_ms
        self._recorded: deque[list[int]] = deque()  # when a sample began, and its bytes
        self._total = 0

    def record(self, size_bytes: int, now_ms: int) -> None:
        if not size_bytes:
            return
        self._forget(now_ms)
        recorded = self._recorded
        if not recorded or now_ms - recorded[-1][0] >= self._sample_ms:
            recorded.append([now_ms, 0])
        recorded[-1][1] += size_bytes
        self._total += size_bytes

    def is_exceeded(self, now_ms: int) -> bool:
        rate = self.rate()
        if rate == UNLIMITED:
            return False
        self._forget(now_ms)
        if not self._recorded:
            return False
        # As if the time before the first sample had been idle for less than one sample: a burst counts as such.
        elapsed_ms = max(now_ms - self._recorded[0][0], self._sample_ms)
        return self._total * 1_000 > rate * elapsed_ms

    def _forget(self, now_ms: int) -> None:
        recorded = self._recorded
        while recorded and now_ms - recorded[0][0] >= self._samples * self._sample_ms:
            self._total -= recorded.popleft()[1]


def is_replica_throttled(entries: tuple[str, ...], index: int, broker_id: int) -> bool:
    """Whether a topic's `*.replication.throttled.replicas`, `*` or `partition:broker` each, name this replica."""
    return "*" in entries or f"{index}:{broker_id}" in entries

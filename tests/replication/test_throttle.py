"""Catching up takes no more than its share, on an average over the window."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.broker.fetching.fetch_sessions import Wanted
from moldau.broker.fetching.replica_reading import ReplicaFetch, read_for_replica
from moldau.replication.assignment import Assignment
from moldau.replication.throttle import UNLIMITED, Throttle, is_replica_throttled
from moldau.wire.messages.fetch import FetchPartition
from tests.log.samples import NOW_MS, batch
from tests.replication.exchanges import replica


def throttle(rate: int, **window: int) -> Throttle:
    return Throttle(lambda: rate, lambda _: True, **window)


def test_nothing_is_exceeded_before_anything_was_sent() -> None:
    assert not throttle(1).is_exceeded(NOW_MS)


def test_a_burst_is_paid_for_by_waiting() -> None:
    limited = throttle(1_000)
    limited.record(5_000, NOW_MS)
    assert [limited.is_exceeded(NOW_MS + ms) for ms in (0, 1_000, 4_999, 5_000)] == [True, True, True, False]


def test_a_steady_stream_at_the_rate_goes_on() -> None:
    limited = throttle(1_000)
    for second in range(60):
        now_ms = NOW_MS + second * 1_000
        assert not limited.is_exceeded(now_ms), second
        limited.record(900, now_ms)


def test_what_is_older_than_the_window_is_forgotten() -> None:
    limited = throttle(10, samples=3, sample_ms=1_000)
    limited.record(1_000_000, NOW_MS)
    assert limited.is_exceeded(NOW_MS + 2_999)
    assert not limited.is_exceeded(NOW_MS + 3_000)


def test_a_fetch_that_began_earlier_makes_nothing_forgotten() -> None:
    """A fetch that waited looks again with the time at which it came; others were answered since then."""
    limited = throttle(1_000)
    limited.record(5_000, NOW_MS)
    limited.is_exceeded(NOW_MS - 500)
    limited.record(1, NOW_MS - 500)
    assert limited.is_exceeded(NOW_MS)


def test_no_rate_is_no_limit() -> None:
    unlimited = throttle(UNLIMITED)
    unlimited.record(1 << 50, NOW_MS)
    assert not unlimited.is_exceeded(NOW_MS)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [(("*",), True), (("0:1", "3:2"), True), (("3:1", "0:2"), False), ((), False), (("13:2",), False)],
)
def test_which_replicas_are_throttled(entries: tuple[str, ...], expected: bool) -> None:
    assert is_replica_throttled(entries, 3, 2) == expected


def test_a_leader_holds_back_only_those_that_are_not_in_sync(tmp_path: Path) -> None:
    limited = throttle(1)
    leader = replica(tmp_path, 1, leader=1, assignment=Assignment((1, 2, 3), frozenset({1, 2})))
    for _ in range(5):
        leader.append(batch([b"v" * 100]), now_ms=NOW_MS)
    limited.record(1_000_000, NOW_MS)

    def sent(broker_id: int, now_ms: int) -> int:
        wanted = Wanted("orders", FetchPartition(current_leader_epoch=0, partition_max_bytes=1 << 20))
        fetching = ReplicaFetch(broker_id, 1, now_ms, False, lambda _partition, _change: None, limited)
        return len(read_for_replica(wanted, leader, fetching, bytes_max=1 << 20, one_batch=True).records or b"")

    assert sent(3, NOW_MS) == 0
    assert sent(2, NOW_MS) > 0
    assert sent(3, NOW_MS + 60_000) > 0
    assert sent(3, NOW_MS + 60_000) == 0, "what was sent counts"

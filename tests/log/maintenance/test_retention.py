"""Which segments go, by log start, size and time, and which never do."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from moldau.core.config.topic import TopicConfig
from moldau.core.ids import Offset
from moldau.log.maintenance.retention import Expired, expired
from tests.log.samples import NOW_MS, append, config, contents, create

HOUR_MS = 3_600_000


class Seen(NamedTuple):
    base_offset: int
    size: int
    timestamp: int = NOW_MS

    def largest_timestamp(self) -> int:
        return self.timestamp


class Unread(NamedTuple):
    """A segment whose timestamp nobody may ask for."""

    base_offset: int
    size: int

    def largest_timestamp(self) -> int:
        raise AssertionError("read for nothing")


THREE = [Seen(0, 100), Seen(10, 100), Seen(20, 100)]


def judge(
    segments: list[Seen] | list[Unread],
    used: TopicConfig,
    *,
    log_start: int = 0,
    high_watermark: int = 30,
    now_ms: int = NOW_MS,
) -> Expired:
    return expired(
        segments, config=used, now_ms=now_ms, log_start_offset=log_start, high_watermark=high_watermark, end_offset=30
    )


def test_nothing_goes_without_a_reason() -> None:
    assert judge(THREE, config()) == Expired()


def test_by_time_from_the_oldest_on_and_not_past_a_younger_one() -> None:
    old = NOW_MS - 2 * HOUR_MS
    segments = [Seen(0, 100, old), Seen(10, 100, NOW_MS), Seen(20, 100, old)]
    assert judge(segments, config(retention_ms=HOUR_MS)) == Expired(beyond_time=1)


def test_exactly_as_old_as_allowed_stays() -> None:
    assert judge([Seen(0, 1, NOW_MS - HOUR_MS)], config(retention_ms=HOUR_MS)) == Expired()
    assert judge([Seen(0, 1, NOW_MS - HOUR_MS - 1)], config(retention_ms=HOUR_MS)) == Expired(beyond_time=1)


def test_an_expired_active_segment_goes_too_unless_it_is_empty() -> None:
    old = NOW_MS - 2 * HOUR_MS
    assert judge([Seen(0, 9, old), Seen(20, 9, old)], config(retention_ms=HOUR_MS)).total == 2
    assert judge([Seen(0, 9, old), Seen(30, 0, old)], config(retention_ms=HOUR_MS)).total == 1


@pytest.mark.parametrize(("retention_bytes", "gone"), [(300, 0), (201, 0), (200, 1), (199, 1), (100, 2), (0, 3)])
def test_by_size_only_what_is_wholly_in_excess(retention_bytes: int, gone: int) -> None:
    assert judge(THREE, config(retention_bytes=retention_bytes)) == Expired(beyond_size=gone)


def test_no_limit_asks_for_no_timestamp() -> None:
    segments = [Unread(0, 100), Unread(10, 100), Unread(20, 100)]
    assert judge(segments, config(retention_ms=-1, retention_bytes=-1)) == Expired()


def test_before_the_log_start_whatever_the_policy() -> None:
    used = config(cleanup_policy="compact", retention_ms=0, retention_bytes=0)
    assert judge(THREE, used, log_start=25) == Expired(before_log_start=2)
    assert judge(THREE, used, log_start=20) == Expired(before_log_start=2)
    assert judge(THREE, used, log_start=19) == Expired(before_log_start=1)
    assert judge(THREE, used, log_start=30) == Expired(before_log_start=2)


def test_never_beyond_the_high_watermark() -> None:
    used = config(retention_bytes=0, retention_ms=0)
    later = NOW_MS + 1
    assert judge(THREE, used, high_watermark=9, now_ms=later).total == 0
    assert judge(THREE, used, high_watermark=10, now_ms=later).total == 1
    assert judge(THREE, used, high_watermark=29, now_ms=later).total == 2
    assert judge(THREE, used, high_watermark=30, now_ms=later).total == 3


def test_the_reasons_add_up() -> None:
    old = NOW_MS - 2 * HOUR_MS
    segments = [Seen(0, 100), Seen(10, 100), Seen(20, 100, old), Seen(25, 100)]
    used = config(retention_bytes=200, retention_ms=HOUR_MS)
    assert judge(segments, used, log_start=12) == Expired(before_log_start=1, beyond_size=1, beyond_time=1)


def test_a_log_of_expired_records_ends_up_empty_and_goes_on(tmp_path: Path) -> None:
    log = create(tmp_path, config(retention_ms=HOUR_MS, segment_bytes=200))
    for value in (b"a" * 100, b"b" * 100, b"c" * 100):
        append(log, value)
    assert len(log.segments) == 3
    assert log.delete_old_segments(NOW_MS + HOUR_MS, Offset(3)) == 0
    assert log.delete_old_segments(NOW_MS + HOUR_MS + 1, Offset(2)) == 2
    assert log.delete_old_segments(NOW_MS + HOUR_MS + 1, Offset(3)) == 1
    assert (log.log_start_offset, log.end_offset) == (3, 3)
    append(log, b"d")
    assert contents(log) == [(3, b"d")]

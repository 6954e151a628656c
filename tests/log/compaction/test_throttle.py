from __future__ import annotations

import asyncio
import time
from pathlib import Path

from moldau.log.compaction.cleaning import clean_log
from moldau.log.compaction.throttle import Throttle
from tests.log.compaction.test_compaction import MEMORY, dirt_of, dirty_log
from tests.log.samples import NOW_MS


class Hands:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.at_s = 100.0

    def now_s(self) -> float:
        return self.at_s


def test_bytes_cost_time() -> None:
    hands = Hands()
    throttle = Throttle(lambda: 1000.0, now_s=hands.now_s)
    assert throttle.pause_s(1000) == 1.0
    hands.at_s += 1.0
    assert throttle.pause_s(500) == 0.5
    hands.at_s += 10.0
    assert throttle.pause_s(500) == 0.5, "time that passed without work is not saved up"


def test_small_debts_are_collected() -> None:
    throttle = Throttle(lambda: 1000.0, now_s=Hands().now_s)
    pauses = [throttle.pause_s(3) for _ in range(4)]
    assert pauses[:3] == [0.0, 0.0, 0.0]
    assert round(pauses[3], 6) == 0.012


def test_without_a_limit_nobody_pauses() -> None:
    assert Throttle().pause_s(1 << 60) == 0.0


def test_another_rate_counts_from_the_next_byte_on() -> None:
    rates = iter((1000.0, 10.0))
    throttle = Throttle(lambda: next(rates), now_s=Hands().now_s)
    assert round(throttle.pause_s(100), 6) == 0.1
    assert round(throttle.pause_s(100), 6) == 10.1


def test_compaction_keeps_to_its_rate(tmp_path: Path) -> None:
    log = dirty_log(tmp_path)
    read_bytes = sum(each.size for each in log.segments[:-1])
    throttle = Throttle(lambda: read_bytes / 0.25)
    begun_s = time.monotonic()
    assert asyncio.run(clean_log(log, dirt_of(log), now_ms=NOW_MS, memory_bytes=MEMORY, throttle=throttle)) is not None
    assert time.monotonic() - begun_s > 0.45, "it reads everything twice, at a quarter of a second each"

"""Replication at work: what it does for thousands of partitions leaves others their turn."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

from moldau.broker.replicating import SHRUNK_AT_ONCE, Replicating
from moldau.coordinator.long_work import LongWork
from moldau.core.config.broker import BrokerConfig
from tests.coordinator.loops import on_a_loop

LOOK_S = 0.0001


class Led:
    """A partition with followers, none of them late; to see that takes a while."""

    replicas = object()
    is_looked_at = False

    def shrink_isr(self, _: int) -> None:
        time.sleep(LOOK_S)
        self.is_looked_at = True


def replicating(led: list[Led]) -> Replicating:
    of = SimpleNamespace(
        broker_id=1,
        broker_epoch=lambda: 1,
        clock=SimpleNamespace(elapsed_ms=lambda: 0),
        config=BrokerConfig,
        partitions=SimpleNamespace(all=lambda: iter(led)),
        long_work=LongWork(),
    )
    return Replicating(cast(Any, of))


@on_a_loop
async def test_the_isr_of_many_partitions_is_looked_at_in_slices() -> None:
    led = [Led() for _ in range(20 * SHRUNK_AT_ONCE)]
    work, turns = replicating(led), 0
    work._shrink()
    while not all(each.is_looked_at for each in led):
        turns += 1
        await asyncio.sleep(0)
    assert turns > 5, "a slice is a few milliseconds long"
    await work.stop()


@on_a_loop
async def test_nothing_is_looked_at_any_more_after_the_end() -> None:
    led = [Led() for _ in range(20 * SHRUNK_AT_ONCE)]
    work = replicating(led)
    work._shrink()
    await work.stop()
    looked_at = sum(each.is_looked_at for each in led)
    for _ in range(10):
        await asyncio.sleep(0)
    assert sum(each.is_looked_at for each in led) == looked_at < len(led)

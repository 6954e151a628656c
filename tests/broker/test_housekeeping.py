"""What housekeeping remembers from one time to the next."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from moldau.broker.context import Services
from moldau.broker.housekeeping import Housekeeping
from moldau.broker.producing.flushing import Flusher
from moldau.coordinator.long_work import LongWork
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from tests.broker.topics.test_reconciliation import NOW_MS, append, image, node, run


def test_a_deleted_log_is_forgotten(tmp_path: Path) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            with ThreadPoolExecutor(1) as executor:
                world = SimpleNamespace(
                    config=BrokerConfig(),
                    partitions=broker.partitions,
                    flusher=Flusher(executor),
                    long_work=LongWork(),
                )
                housekeeping = Housekeeping(cast("Services", world), executor)
                await broker.follow(image(orders=1, other=1))
                for name in ("orders", "other"):
                    partition = broker.partitions.get(name, 0)
                    append(partition)
                    assert partition is not None
                    partition.log.update_config(partition.log.config.override({"flush.ms": "3600000"}))
                await housekeeping.flush_due(NOW_MS)
                assert len(housekeeping._unflushed_since_ms) == 2
                await broker.follow(image(other=1, changed={"orders"}))
                await housekeeping.flush_due(NOW_MS)
                assert [str(log.partition) for log in housekeeping._unflushed_since_ms] == ["other-0"]

    run(test)


def test_an_interval_of_nothing_is_no_reason_to_hold_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise asyncio.CancelledError

    async def test() -> None:
        with ThreadPoolExecutor(1) as executor:
            world = SimpleNamespace(clock=SystemClock(), config=BrokerConfig())
            housekeeping = Housekeeping(cast("Services", world), executor)
            intervals = iter((0, -1, 5_000))
            with pytest.raises(asyncio.CancelledError):
                await housekeeping._repeat(lambda: next(intervals), lambda _now_ms: None)

    monkeypatch.setattr("moldau.broker.housekeeping.asyncio.sleep", sleep)
    asyncio.run(test())
    assert waits == [1, 1, 5]

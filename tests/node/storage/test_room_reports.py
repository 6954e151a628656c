"""What the cluster is told of log directories without room, and of those that have it again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest

from moldau.controller.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from moldau.controller.machine import apply
from moldau.controller.records import BrokerRegistered, TopicCreated
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicPartition, format_uuid
from moldau.node.storage import lost_replicas
from moldau.node.storage.lost_replicas import RoomReports
from tests.controller.clusters import ENDPOINTS, topic_id

R = TypeVar("R")

FOLDER = Path("/data")
DIRECTORY = format_uuid(b"directory of one")


class Broker:
    """Broker 1, which follows in all partitions of a topic, and is the controller; the disk is full, or is not."""

    def __init__(self, partitions: int) -> None:
        brokers = [BrokerImage(1, ENDPOINTS, directories={DIRECTORY: str(FOLDER)}), BrokerImage(2, ENDPOINTS)]
        topic = TopicImage("orders", topic_id(1), (PartitionImage((2, 1), (2, 1), 2),) * partitions)
        self.image = apply(ClusterImage(), [*map(BrokerRegistered, brokers), TopicCreated(topic)])
        self.full: list[Path] = []
        self.usable_paths = [FOLDER]
        self.is_active = True
        self.writes_until_failure: int | None = None
        itself = cast(Any, self)
        services = SimpleNamespace(controller=itself, directories=itself, broker_id=1, config=BrokerConfig())
        self.reports = RoomReports(cast(Any, services), cast(Any, None))

    @property
    def offline(self) -> int:
        """How many of its replicas the cluster does without."""
        return sum(1 in state.offline for state in self.image.topics["orders"].partitions)

    def directory_id(self, _: Path) -> str:
        return DIRECTORY

    def partitions_in(self, _: Path) -> list[TopicPartition]:
        return [TopicPartition("orders", index) for index in range(len(self.image.topics["orders"].partitions))]

    async def write(self, decide: Callable[[ClusterImage], Decision[R]]) -> R:
        if self.writes_until_failure is not None:
            self.writes_until_failure -= 1
            if self.writes_until_failure < 0:
                self.writes_until_failure = None
                raise ApiError(ErrorCode.NOT_CONTROLLER)
        decision = decide(self.image)
        self.image = apply(self.image, decision.records)
        return decision.reply

    async def told(self, *, full: bool) -> None:
        self.full = [FOLDER] if full else []
        self.reports.report()
        task = self.reports._task
        assert task is not None
        await task


def test_all_replicas_are_back_although_the_controller_changed_half_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_replicas, "RETRY_S", 0)

    async def test() -> None:
        broker = Broker(2 * lost_replicas.REPLICAS_MAX)
        await broker.told(full=True)
        assert broker.offline == 2 * lost_replicas.REPLICAS_MAX
        broker.writes_until_failure = 1
        await broker.told(full=False)
        assert broker.offline == 0

    asyncio.run(test())


def test_twenty_thousand_replicas_are_told_of_in_no_time() -> None:
    async def test() -> None:
        broker = Broker(20_000)
        await broker.told(full=True)
        begun_s = time.process_time()
        await broker.told(full=False)
        assert time.process_time() - begun_s < 5, "seconds of the loop; it takes a fraction of one"
        assert broker.offline == 0

    asyncio.run(test())

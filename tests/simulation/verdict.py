"""What must be true at the end of every history, when there is calm and all time is up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.simulation.pipelines import ALONE, COMMITTERS, SHARED, SUBSCRIBERS, Pipeline

if TYPE_CHECKING:
    from tests.simulation.world import World


class Verdict:
    def __init__(self, world: World) -> None:
        self._world = world

    def check_shared_out(self) -> None:
        """In the calm everybody has come to what is theirs."""
        holders = self._world.claims.holders
        for group_id in (COMMITTERS, SUBSCRIBERS):
            for index in range(SHARED.source_count):
                if (group_id, index) not in holders:
                    self._world.violate(f"nobody of {group_id} has {index}, only these are held: {holders}")

    def check_end(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        for partition, known in self._world.history.partitions.items():
            if known.open:
                self._world.violate(f"{partition} has transactions that nobody ends: {known.open}")
        for transaction in self._world.history.transactions.values():
            if transaction.is_prepared or transaction.deadline_ms is not None:
                self._world.violate(f"{transaction} never ended")
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                self._world.violate(f"a client failed: {task.exception()!r}")
        self._check_output(SHARED)
        self._check_output(ALONE)
        self._check_offsets()

    def _check_output(self, pipeline: Pipeline) -> None:
        seen = [
            value
            for where, values in self._world.reader.seen.items()
            if where.topic == pipeline.target
            for value in values
        ]
        expected = [pipeline.value(p, at) for p in range(pipeline.source_count) for at in range(pipeline.records)]
        if sorted(value.split()[0] for value in seen) != sorted(expected):
            self._world.violate(f"the output of {pipeline.group_id} is not its input once: {sorted(seen)}")
        for attempted in self._world.attempted:
            parts = [value for value in attempted.values if value in seen]
            if parts and (parts != attempted.values or not attempted.asks_for_commit):
                self._world.violate(f"of {attempted} only {parts} is seen")

    def _check_offsets(self) -> None:
        node = self._world.node
        shards = None if node is None else node.services.groups.shards()
        if not isinstance(shards, list):
            self._world.violate(f"the coordinator does not come back: {shards}")
            return
        kept = {
            (group_id, topic, index): committed.offset
            for shard in shards
            for group_id, topics in shard.offsets.items()
            for topic, partitions in topics.items()
            for index, committed in partitions.items()
        }
        written = {place: each.offset for place, each in self._world.history.offsets.items()}
        if kept != written:
            self._world.violate(f"the coordinator has {kept}, the log {written}")
        for place, offset in kept.items():
            if place[0] in (COMMITTERS, SUBSCRIBERS):
                self._world.commits.check(place, offset, self._world.commits.now())
        if any(shard.pending for shard in shards):
            self._world.violate("offsets are pending without a transaction")

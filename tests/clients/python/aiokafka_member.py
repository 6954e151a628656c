"""A member of a group on aiokafka; tests/rebalance/members.py describes its lines."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from aiokafka.errors import KafkaError

from tests.clients.python.member_events import Partition, tell, tell_committed, tell_partitions, tell_read

POLL_MS = 50


def priority_assignor(priority: int) -> type[Any]:
    """An assignor that no library has: the member that names the highest number gets everything."""

    class PriorityAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
        name = "priority"
        version = 0

        @classmethod
        def assign(cls, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
            best = max(members, key=lambda member_id: int(members[member_id].user_data))
            topics = sorted({topic for each in members.values() for topic in each.subscription})
            everything = [(topic, sorted(cluster.partitions_for_topic(topic) or ())) for topic in topics]
            return {
                member_id: ConsumerProtocolMemberAssignment(cls.version, everything if member_id == best else [], b"")
                for member_id in members
            }

        @classmethod
        def metadata(cls, topics: Iterable[str]) -> Any:
            return ConsumerProtocolMemberMetadata(cls.version, list(topics), str(priority).encode())

        @classmethod
        def on_assignment(cls, assignment: Any) -> None:
            pass

    return PriorityAssignor


class Member(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, options: dict[str, Any]) -> None:
        known = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
            "priority": priority_assignor(options["priority"]),
        }
        self.owned: set[Partition] = set()
        # The library calls back from a task of its own; what was read is committed first.
        self.is_committing = asyncio.Lock()
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=options["bootstrap"],
            group_id=options["group"],
            client_id=options["name"],
            group_instance_id=options["instance"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=options["session_timeout_ms"],
            heartbeat_interval_ms=options["heartbeat_ms"],
            metadata_max_age_ms=options["metadata_age_ms"],
            partition_assignment_strategy=[known[name] for name in options["assignors"]],
        )
        if options["pattern"]:
            self.consumer.subscribe(pattern=f"^{options['pattern']}", listener=self)
        else:
            self.consumer.subscribe(topics=options["topics"], listener=self)

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        async with self.is_committing:
            self.give_up()

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.owned = {(each.topic, each.partition) for each in assigned}
        tell_partitions("assigned", self.owned)

    def give_up(self) -> None:
        owned, self.owned = self.owned, set()
        if owned:
            tell_partitions("revoked", owned)

    async def run(self, stopped: asyncio.Event) -> None:
        await self.consumer.start()
        while not stopped.is_set():
            await self.read_and_commit()
        self.give_up()  # the library leaves without a word to its listener
        await self.consumer.stop()

    async def read_and_commit(self) -> None:
        batches = await self.consumer.getmany(timeout_ms=POLL_MS)
        spans = {
            (each.topic, each.partition): (records[0].offset, records[-1].offset)
            for each, records in batches.items()
            if records and (each.topic, each.partition) in self.owned  # else taken from us while we were woken
        }
        if spans:
            async with self.is_committing:
                await self.commit(spans)

    async def commit(self, spans: dict[Partition, tuple[int, int]]) -> None:
        tell_read(spans)
        offsets = {key: last + 1 for key, (_, last) in spans.items()}
        try:
            await self.consumer.commit({TopicPartition(*key): offset for key, offset in offsets.items()})
            tell_committed(offsets)
        except KafkaError as error:
            tell("failed", what="commit", message=repr(error))


async def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    stopped = asyncio.Event()

    async def wait_for_end() -> None:
        await asyncio.to_thread(sys.stdin.read)
        stopped.set()

    member = Member(json.loads(sys.argv[1]))
    waiting = asyncio.create_task(wait_for_end())
    await member.run(stopped)
    await waiting


if __name__ == "__main__":
    asyncio.run(main())

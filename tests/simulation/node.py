"""One life of the simulated broker: the real coordinators and handlers over its logs, from its start to its crash."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Coroutine
from contextvars import Context as Surroundings
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any, Protocol, cast

from moldau.broker.api import Api
from moldau.broker.context import Context, Peer, Services
from moldau.broker.fetching.cold_reads import ColdReads
from moldau.broker.fetching.fetch_sessions import FetchSessions
from moldau.broker.producing.marker_appends import MarkerAppends
from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.coordinator.long_work import LongWork
from moldau.core.config.broker import BrokerConfig
from moldau.core.ids import ProducerId, TopicPartition
from moldau.core.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from moldau.groups.coordinator import GroupCoordinator
from moldau.groups.limits import ConsumerGroupConfig, GroupLimits
from moldau.log.compaction.cleaner import Cleaner
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.transactions.coordinator import TransactionCoordinator
from moldau.transactions.limits import TransactionLimits
from moldau.transactions.markers_due import MarkersDue
from moldau.wire.frame import RequestHeader
from tests.coordinator.partitions import flush_at_once
from tests.simulation.disk import Crash, CrashingLog, Disk, Fate, OnAppended
from tests.simulation.loop import STAGE, elapsed_ms

BROKER_ID = 0
CLEANER_BYTES = 100_000
PEER = Peer("PLAINTEXT", "127.0.0.1", 1)
CONFIG = BrokerConfig()


class Around(Protocol):
    """The world, as far as a node has to do with it."""

    disk: Disk
    group_limits: GroupLimits
    consumer_config: ConsumerGroupConfig
    transaction_limits: TransactionLimits

    def now_ms(self) -> int: ...

    def dies_now(self) -> bool:
        """Asked between any two steps."""
        ...

    def fate_of_write(self) -> Fate: ...

    def on_appended(self) -> OnAppended: ...

    def has_died(self, node: Node) -> None: ...

    async def next_producer_id(self) -> ProducerId: ...


class LocalPartitions:
    """The partitions of this broker, found as handlers find them."""

    def __init__(self, partitions: dict[TopicPartition, Partition]) -> None:
        self._partitions = partitions
        self._by_id = {(each.topic_id, each.index): each for each in partitions.values()}

    def get(self, topic: str, index: int) -> Partition | None:
        return self._partitions.get(TopicPartition(topic, index))

    def get_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        return self._by_id.get((topic_id, index))


class Node:
    def __init__(self, around: Around, leader_epoch: int) -> None:
        self.is_dead = False
        self.answers: dict[int, asyncio.Future[Any]] = {}
        self._around = around
        self._tasks: list[asyncio.Task[Any]] = []
        self._context: Surroundings = copy_context()
        self._context.run(STAGE.set, self)
        self._number = 0
        self.partitions: dict[TopicPartition, Partition] = {}
        self._leader_epoch = leader_epoch
        self.services: Services = cast(Services, None)

    def start(self) -> None:
        with contextlib.suppress(Crash):  # it may die while it loads
            self._context.run(self._start)

    def _start(self) -> None:
        around, now_ms = self._around, self._around.now_ms()
        leadership = LeaderAndEpoch(BROKER_ID, self._leader_epoch)
        for each in around.disk.partitions:
            log = CrashingLog(around.disk.open(each, now_ms), self, around.on_appended())
            topic_id = around.disk.topic_id(each.topic)
            self.partitions[each] = Partition(
                each.topic,
                each.partition,
                topic_id=topic_id,
                log=cast(Any, log),
                broker_id=BROKER_ID,
                leadership=leadership,
            )
        around.disk.clean_to.clear()
        self.services = self._make_services()
        self.services.groups.follow_topics(self.services.controller.image)
        self.services.groups.resume()
        self.services.transactions.resume()

    def _make_services(self) -> Services:
        around = self._around
        clock = cast(Any, SimpleNamespace(now_ms=around.now_ms, elapsed_ms=elapsed_ms))
        partitions = cast(Any, LocalPartitions(self.partitions))
        counts = dict.fromkeys(around.disk.topics, 0)
        for each in around.disk.partitions:
            counts[each.topic] += 1
        groups = GroupCoordinator(
            partition_of=lambda index: partitions.get(GROUP_METADATA_TOPIC, index),
            partition_count=lambda: counts[GROUP_METADATA_TOPIC],
            limits=around.group_limits,
            clock=clock,
            flush=flush_at_once,
            config_of=lambda _: around.consumer_config,
        )
        markers = MarkerAppends(partitions, groups, clock, flush_at_once)

        def write_marker(where: TopicPartition, due: MarkersDue, coordinator_epoch: int) -> Any:
            return markers.write(where, due, coordinator_epoch)

        transactions = TransactionCoordinator(
            partition_of=lambda index: partitions.get(TRANSACTION_STATE_TOPIC, index),
            partition_count=lambda: counts[TRANSACTION_STATE_TOPIC],
            limits=around.transaction_limits,
            clock=clock,
            flush=flush_at_once,
            next_producer_id=around.next_producer_id,
            write_marker=write_marker,
        )
        return Services(
            broker_id=BROKER_ID,
            api_versions=[],
            config=CONFIG,
            clock=clock,
            controller=cast(Any, SimpleNamespace(image=_image(around.disk, counts))),
            partitions=partitions,
            replication=cast(Any, None),
            reconciliation=cast(Any, None),
            directories=cast(Any, None),
            producer_ids=cast(Any, SimpleNamespace(next=around.next_producer_id)),
            fetch_sessions=FetchSessions(sessions_max=10, eviction_ms_min=0, seed=0),
            flusher=cast(Any, None),
            long_work=LongWork(),
            cold_reads=ColdReads(),
            executor=cast(Any, None),
            computing=cast(Any, None),
            groups=groups,
            transactions=transactions,
            markers=markers,
        )

    def step(self, callback: Callable[..., Any], *args: Any) -> None:
        """Run a callback of this process, unless it dies first; what is then unwound can't do any harm any more."""
        if not self.is_dead and self._around.dies_now():
            self.die()
        callback(*args)

    def tick(self, callback: Callable[..., Any], *args: Any) -> None:
        if not self.is_dead:
            self.step(callback, *args)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        if len(self._tasks) > 200:
            self._tasks = [each for each in self._tasks if not each.done()]
        self._tasks.append(task)

    def fate_of_write(self) -> Fate:
        return Fate.BEFORE if self.is_dead else self._around.fate_of_write()

    def die(self) -> None:
        if self.is_dead:
            return
        self.is_dead = True
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self._around.has_died(self)

    def compact(self) -> None:
        """Begin to compact what is worth it, beside everything else."""
        self._context.run(self._spawn, self._compact(), "cleaner")

    async def _compact(self) -> None:
        logs = [(cast(Any, each.log).inner, each.last_stable_offset) for each in self.partitions.values()]
        cleaner = Cleaner(memory_bytes=CLEANER_BYTES)
        while await cleaner.clean_dirtiest(logs, self._around.now_ms()):
            pass

    def stop(self) -> None:
        """Begin to stop as an operator stops a broker."""
        self._context.run(self._spawn, self._stop(), "stop")

    async def _stop(self) -> None:
        await self.services.transactions.stop()
        await self.services.groups.stop()
        for where, partition in self.partitions.items():
            partition.log.close()
            self._around.disk.clean_to[where] = partition.log.end_offset
        self.die()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        asyncio.get_running_loop().create_task(work, name=name)

    def bury(self) -> None:
        """Give back the files of a dead process."""
        for partition in self.partitions.values():
            partition.log.rest()

    def receive(self, serve: Callable[[Services], Any], answer: asyncio.Future[Any]) -> None:
        """Serve a request, and answer it if the process lives that long."""
        self._number += 1
        self.answers[self._number] = answer
        self._context.run(self._spawn, self._serve(serve, self._number), "request")

    async def _serve(self, serve: Callable[[Services], Any], number: int) -> None:
        reply = serve(self.services)
        if inspect.isawaitable(reply):
            reply = await reply
        answer = self.answers.pop(number, None)
        if answer is not None and not answer.done() and not self.is_dead:
            answer.set_result(reply)


def handled(api: Api, request: Any, version: int, client_id: str = "client") -> Callable[[Services], Any]:
    """A request on its way through the real handler."""
    header = RequestHeader(api.key, version, 0, client_id)
    return lambda services: api.call(request, Context(services, header, PEER))


def _image(disk: Disk, counts: dict[str, int]) -> ClusterImage:
    state = PartitionImage((BROKER_ID,), (BROKER_ID,), BROKER_ID)
    topics = {name: TopicImage(name, disk.topic_id(name), (state,) * count) for name, count in counts.items()}
    return ClusterImage(topics=topics, topic_ids={topic.id: name for name, topic in topics.items()})

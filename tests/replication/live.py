"""Real brokers in one process, with sockets, logs and handlers, whose cluster's metadata a test decides by hand.

The controller is an object that all of them share: it applies real decisions to an image and publishes it to each
broker on a later turn of the loop. Who leads, and who lives, is for the test to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from moldau.broker.api import api
from moldau.broker.context import Context, Services
from moldau.broker.handlers import TABLE
from moldau.broker.handlers.api_versions import announced
from moldau.broker.network.connection_quotas import ConnectionQuotas, quota_limits
from moldau.broker.network.frame_budget import FrameBudget
from moldau.broker.network.listener import ConnectionLimits, Listener, descriptors_for_connections
from moldau.broker.peers import Peers
from moldau.broker.producing.flushing import Flusher
from moldau.broker.requests.dispatch import Dispatch
from moldau.broker.topics.partitions import Partitions
from moldau.controller.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from moldau.controller.machine import apply
from moldau.controller.producer_ids import ProducerIds
from moldau.controller.records import BrokerRegistered, PartitionsChanged, Record, TopicCreated
from moldau.controller.runtime import Controller
from moldau.coordinator.long_work import LongWork
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, TopicPartition, random_uuid
from moldau.log.directories.log_directories import LogDirectories
from moldau.node import listening, server
from moldau.node.cluster.replication import replicate, replication, terms_of
from moldau.node.coordinators import coordinate, coordinators
from moldau.node.storage import opening
from moldau.replication.partition import Partition
from moldau.wire.api import ApiKey
from moldau.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)

CLUSTER_ID = "abcdefghijklmnopqrstuA"
WAIT_S = 30.0


class Metadata:
    """The cluster's image, and everybody who follows it."""

    def __init__(self) -> None:
        self.image = ClusterImage(cluster_id=CLUSTER_ID, controller_id=1)
        self.views: list[View] = []
        self.unanswered: list[AlterPartitionRequest] | None = None

    def write(self, records: Iterable[Record]) -> None:
        self.image = apply(self.image, records)
        for view in self.views:
            view.tell(self.image)

    def change(self, topic: str, index: int, **changes: Any) -> None:
        """A partition as the controller would change it; epochs grow as they do there."""
        known = self.image.topics[topic]
        state = known.partitions[index]
        changed = replace(state, partition_epoch=state.partition_epoch + 1, **changes)
        if changed.leader != state.leader or set(changed.isr) < set(state.isr):
            changed = replace(changed, leader_epoch=state.leader_epoch + 1)
        self.write([PartitionsChanged(known.id, {index: changed})])

    def without(self, broker_id: int) -> None:
        """A broker is gone: it is in no ISR, unless alone, and leads nothing."""
        self.write([BrokerRegistered(replace(self.image.brokers[broker_id], fenced=True))])
        for topic in self.image.topics.values():
            for index, state in enumerate(topic.partitions):
                isr = tuple(each for each in state.isr if each != broker_id) or state.isr
                leader = state.leader
                if leader == broker_id:
                    leader = next((each for each in isr if each != broker_id), NO_LEADER)
                if (leader, isr) != (state.leader, state.isr):
                    self.change(topic.name, index, leader=leader, isr=isr)

    def create(self, name: str, *replicas: tuple[int, ...], **configs: str) -> None:
        states = tuple(PartitionImage(each, each, each[0]) for each in replicas)
        texts = {key.replace("_", "."): value for key, value in configs.items()}
        self.write([TopicCreated(TopicImage(name, random_uuid(), states, texts))])

    def fall_silent(self) -> list[AlterPartitionRequest]:
        """The controller answers no more, as a process that was stopped; gives what it is asked."""
        self.unanswered = []
        return self.unanswered

    def control_by(self, broker_id: int) -> None:
        """Another broker is elected, and answers."""
        self.unanswered = None
        self.image = with_changes(self.image, controller_id=broker_id, changed_topics=frozenset())
        for view in self.views:
            view.tell(self.image)

    def answer(self, request: AlterPartitionRequest) -> AlterPartitionResponse | asyncio.Future[AlterPartitionResponse]:
        if self.unanswered is None:
            return self.alter(request)
        self.unanswered.append(request)
        return asyncio.get_running_loop().create_future()

    def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        broker = self.image.brokers[request.broker_id]
        if broker.epoch != request.broker_epoch:
            return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        results = []
        for topic in request.topics:
            rows = [self._alter(request.broker_id, topic.topic_id, each) for each in topic.partitions]
            results.append(TopicData(topic_id=topic.topic_id, partitions=rows))
        return AlterPartitionResponse(topics=results)

    def _alter(self, broker_id: int, topic_id: bytes, asked: Any) -> PartitionData:
        topic = self.image.topic_by_id(topic_id)
        if topic is None:
            return PartitionData(asked.partition_index, ErrorCode.UNKNOWN_TOPIC_ID)
        state = topic.partitions[asked.partition_index]
        if (state.leader, state.leader_epoch) != (broker_id, asked.leader_epoch):
            return PartitionData(asked.partition_index, ErrorCode.FENCED_LEADER_EPOCH)
        if state.partition_epoch != asked.partition_epoch:
            return PartitionData(asked.partition_index, ErrorCode.INVALID_UPDATE_VERSION)
        for member in asked.new_isr_with_epochs:
            known = self.image.brokers[member.broker_id]
            if known.fenced or member.broker_epoch not in (-1, known.epoch):
                return PartitionData(asked.partition_index, ErrorCode.INELIGIBLE_REPLICA)
        isr = tuple(each.broker_id for each in asked.new_isr_with_epochs)
        changed = replace(state, isr=isr, partition_epoch=state.partition_epoch + 1)
        self.write([PartitionsChanged(topic.id, {asked.partition_index: changed})])
        return PartitionData(
            partition_index=asked.partition_index, leader_id=broker_id, leader_epoch=state.leader_epoch,
            isr=list(isr), partition_epoch=state.partition_epoch + 1,
        )  # fmt: skip


class View:
    """What one broker sees of it, a turn of the loop later: as much of a `Controller` as brokers use."""

    def __init__(self, metadata: Metadata, broker_id: int) -> None:
        self.metadata = metadata
        self.image = with_changes(metadata.image, changed_topics=frozenset())
        self.epoch = self.position = 1
        self.is_active = broker_id == 1
        self._listeners: list[Callable[[ClusterImage, ClusterImage], None]] = []
        metadata.views.append(self)

    def subscribe(self, listener: Callable[[ClusterImage, ClusterImage], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell(self, image: ClusterImage) -> None:
        asyncio.get_running_loop().call_soon(self._follow, image)

    def _follow(self, image: ClusterImage) -> None:
        old, self.image = self.image, image
        for listener in tuple(self._listeners):
            listener(old, image)

    async def write(self, decide: Callable[[ClusterImage], Decision[Any]]) -> Any:
        decision = decide(self.metadata.image)
        self.metadata.write(decision.records)
        while self.image is not self.metadata.image:  # noqa: ASYNC110 - it is a turn or two
            await asyncio.sleep(0)
        return decision.reply

    async def settled(self) -> None:
        await asyncio.sleep(0)

    def close(self) -> None:
        self.metadata.views.remove(self)


class LiveBroker:
    def __init__(self, metadata: Metadata, broker_id: int, folder: Path, **overrides: str) -> None:
        self.metadata = metadata
        self.id = broker_id
        self.folder = folder
        texts = {key.replace("_", "."): value for key, value in overrides.items()}
        self.config = BrokerConfig.of(
            {
                "node.id": str(broker_id),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dirs": str(folder),
                "replica.fetch.backoff.ms": "100",
                "offsets.topic.num.partitions": "1",
                "transaction.state.log.num.partitions": "1",
                "group.initial.rebalance.delay.ms": "0",
                **texts,
            }
        )
        self._stack: AsyncExitStack | None = None
        self.services: Services
        self.port = 0

    async def start(self) -> None:
        config = self.config
        running = self._stack = AsyncExitStack()
        listeners = listening.bind(config, running)
        self.port = listeners[0].port
        directories = LogDirectories.open([self.folder], node_id=self.id, cluster_id=CLUSTER_ID)
        running.callback(directories.end)
        self._register(listeners, directories)
        view = View(self.metadata, self.id)
        running.callback(view.close)
        controller = cast(Controller, view)
        self.services = services = self._services(controller, directories, running)
        directories.on_offline = lambda _path, gone: services.partitions.go_offline(gone)
        await opening.open_partitions(services, config, asyncio.Event())
        replicate(services, running)
        coordinate(services, running)
        server.keep_house(services, running)
        await self._answer(services, listeners, running)

    def _register(self, listeners: list[Listener], directories: LogDirectories) -> None:
        before = self.metadata.image.brokers.get(self.id)
        image: BrokerImage = listening.broker_image(self.config, listeners, directories)
        self.metadata.write([BrokerRegistered(replace(image, epoch=1 if before is None else before.epoch + 1))])

    def _services(self, controller: Controller, directories: LogDirectories, running: AsyncExitStack) -> Services:
        config, partitions = self.config, Partitions()
        peers = Peers(self.id, lambda: controller.image, listener_name="PLAINTEXT")
        running.push_async_callback(peers.close)
        pools = server.threads(running)
        producer_ids, long_work, flusher = ProducerIds(controller), LongWork(), Flusher(pools.executor)
        replicating = replication(
            config,
            controller,
            partitions,
            peers,
            current=lambda: self.services.config,
            flush=flusher.flush,
            long_work=long_work,
        )
        terms = terms_of(config, replicating)
        made = coordinators(
            config, controller, partitions, producer_ids=producer_ids, flush=flusher.flush, long_work=long_work
        )
        return Services(
            broker_id=self.id,
            api_versions=announced(TABLE),
            config=config,
            clock=SystemClock(),
            controller=controller,
            partitions=partitions,
            replication=replicating,
            reconciliation=opening.reconcile(
                controller, partitions, directories, running, broker_id=self.id, long_work=long_work, terms=terms
            ),
            directories=directories,
            producer_ids=producer_ids,
            fetch_sessions=server.fetch_sessions(config),
            flusher=flusher,
            long_work=long_work,
            cold_reads=server.cold_reads(running),
            **pools._asdict(),
            **made._asdict(),
        )

    async def _answer(self, services: Services, listeners: list[Listener], running: AsyncExitStack) -> None:
        metadata = self.metadata

        @api(ApiKey.ALTER_PARTITION, AlterPartitionRequest, versions=(2, 3))
        def alter_partition(request: AlterPartitionRequest, _: Context) -> Any:
            return metadata.answer(request)

        rows = [each for each in TABLE if each.key != ApiKey.ALTER_PARTITION]
        dispatch = Dispatch((*rows, alter_partition), services)
        names = [each.name for each in listeners]
        quotas = ConnectionQuotas(await quota_limits(services.config, names, descriptors=descriptors_for_connections()))
        allowed = ConnectionLimits(idle_ms_max=600_000, frame_bytes_max=100 << 20, send_buffer_bytes=102_400)
        for listener in listeners:
            running.callback(listener.close)
            listener.start(dispatch, allowed, FrameBudget(-1), quotas)

    async def stop(self) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            await stack.aclose()

    def partition(self, topic: str, index: int = 0) -> Partition | None:
        return self.services.partitions.get(topic, index)

    def led(self, topic: str, index: int = 0) -> Partition:
        found = self.partition(topic, index)
        assert found is not None
        return found

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@asynccontextmanager
async def live_cluster(
    folder: Path, *ids: int, **overrides: str
) -> AsyncIterator[tuple[Metadata, dict[int, LiveBroker]]]:
    metadata = Metadata()
    brokers = {each: LiveBroker(metadata, each, folder / f"broker-{each}", **overrides) for each in ids}
    try:
        for broker in brokers.values():
            await broker.start()
        yield metadata, brokers
    finally:
        for broker in brokers.values():
            with suppress(OSError):
                await broker.stop()


async def until(is_so: Callable[[], bool], what: str) -> None:
    async with asyncio.timeout(WAIT_S):
        while not is_so():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
    assert is_so(), what


PARTITION = TopicPartition("orders", 0)

"""Telling the cluster of replicas whose log directory failed or is full: others lead, and are in sync, without them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from moldau.broker.context import Services
from moldau.broker.requests.forwarding import Forwarding
from moldau.controller.members.failed_directories import FULL, LOST, ReplicaInDirectory, decide_assign_replicas_to_dirs
from moldau.controller.partitions.leaders import partition_of
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicId, TopicPartition, parse_uuid
from moldau.wire.messages.assign_replicas_to_dirs import (
    AssignedDirectory,
    AssignedPartition,
    AssignedTopic,
    AssignReplicasToDirsRequest,
)

LOGGER = logging.getLogger(__name__)

VERSION = 0
REPLICAS_MAX = 2_250  # of one request, as many as a broker of Kafka tells of
ANSWER_MS_MAX = 30_000
RETRY_S = 1.0
NO_EPOCH = -1


async def report_lost(services: Services, forwarding: Forwarding, partitions: Sequence[TopicPartition]) -> None:
    """Until the controller knows of all of them, however long that takes: nobody else can say it."""
    for start in range(0, len(partitions), REPLICAS_MAX):
        some = partitions[start : start + REPLICAS_MAX]
        while (
            error := await _told(services, forwarding, (_replica(services, each, LOST) for each in some))
        ) is not ErrorCode.NONE:
            LOGGER.warning("%d replicas are lost, and the controller could not be told: %s", len(some), error.name)
            await asyncio.sleep(RETRY_S)


class RoomReports:
    """Tells the cluster which log directories have no room, and which have it again."""

    __slots__ = ("_forwarding", "_full", "_is_due", "_services", "_task")

    def __init__(self, services: Services, forwarding: Forwarding) -> None:
        self._services = services
        self._forwarding = forwarding
        self._full: set[TopicPartition] = set()  # what the controller was told of
        self._is_due = False
        self._task: asyncio.Task[None] | None = None

    def report(self) -> None:
        """Whatever changed; may be called as often as one likes."""
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._is_due:
            self._is_due = False
            error = await self._tell()
            if error is not ErrorCode.NONE:
                LOGGER.warning("the controller could not be told of room in log directories: %s", error.name)
                self._is_due = True
                await asyncio.sleep(RETRY_S)

    async def _tell(self) -> ErrorCode:
        directories = self._services.directories
        full = {partition for path in directories.full for partition in directories.partitions_in(path)}
        awaited = self._full - full
        has_room = {
            partition: parse_uuid(directories.directory_id(path))
            for path in directories.usable_paths
            for partition in directories.partitions_in(path)
            if partition in awaited
        }
        self._full &= full | has_room.keys()  # the others were deleted
        told = sorted(filter(self._can_be_done_without, full)) + sorted(has_room)
        for start in range(0, len(told), REPLICAS_MAX):
            some = told[start : start + REPLICAS_MAX]
            replicas = (_replica(self._services, each, has_room.get(each, FULL)) for each in some)
            error = await _told(self._services, self._forwarding, replicas)
            if error is not ErrorCode.NONE:
                return error
            self._full = {*self._full, *some} - (has_room.keys() & set(some))
        return ErrorCode.NONE

    def _can_be_done_without(self, partition: TopicPartition) -> bool:
        """What the image says; the controller looks itself, and leaves the last in-sync replica as it is."""
        broker_id = self._services.broker_id
        state = partition_of(self._services.controller.image, *partition)
        return state is not None and broker_id not in state.offline and any(each != broker_id for each in state.isr)


async def _told(services: Services, forwarding: Forwarding, replicas: Iterable[ReplicaInDirectory | None]) -> ErrorCode:
    """`None` is a replica whose topic was deleted meanwhile."""
    controller, broker_id = services.controller, services.broker_id
    registered = controller.image.brokers.get(broker_id)
    epoch = NO_EPOCH if registered is None else registered.epoch
    told = [each for each in replicas if each is not None]
    if not controller.is_active:
        request = _request(broker_id, epoch, told)
        response = await forwarding.ask(request, VERSION, timeout_ms=ANSWER_MS_MAX)
        return ErrorCode.NOT_CONTROLLER if response is None else ErrorCode(response.error_code)
    try:
        replies = await controller.write(
            lambda image: decide_assign_replicas_to_dirs(image, broker_id, epoch, told, config=services.config)
        )
    except ApiError as wrong:
        return wrong.code
    return replies if isinstance(replies, ErrorCode) else ErrorCode.NONE


def _replica(services: Services, partition: TopicPartition, directory_id: bytes) -> ReplicaInDirectory | None:
    topic = services.controller.image.topics.get(partition.topic)
    return None if topic is None else ReplicaInDirectory(directory_id, topic.id, partition.partition)


def _request(broker_id: int, epoch: int, replicas: Sequence[ReplicaInDirectory]) -> AssignReplicasToDirsRequest:
    directories: dict[bytes, dict[TopicId, list[AssignedPartition]]] = {}
    for each in replicas:
        topics = directories.setdefault(each.directory_id, {})
        topics.setdefault(each.topic_id, []).append(AssignedPartition(each.partition))
    assigned = [
        AssignedDirectory(TopicId(directory_id), [AssignedTopic(topic_id, of) for topic_id, of in topics.items()])
        for directory_id, topics in directories.items()
    ]
    return AssignReplicasToDirsRequest(broker_id, epoch, assigned)

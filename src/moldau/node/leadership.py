"""What this broker leads after a start, and what it no longer can when a log directory fails."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.broker.context import Services
from moldau.controller.partitions.leaders import decide_lead_again, decide_leaderless
from moldau.core.errors import ApiError
from moldau.core.ids import TopicPartition
from moldau.log.failure import NotUndone
from moldau.store.sqlite import SqliteStore
from moldau.store.store import MetadataStore, StoreError

if TYPE_CHECKING:
    from moldau.node.storage.lost_replicas import RoomReports

LOGGER = logging.getLogger(__name__)


class Halt:
    """A reason to end the broker, the first one given, and the event that ends it."""

    __slots__ = ("reason", "stop")

    def __init__(self, stop: asyncio.Event) -> None:
        self.stop = stop
        self.reason: str | None = None

    def __call__(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
            self.stop.set()


async def lead_again(services: Services) -> None:
    """Begin a new leader epoch where the last stop was not clean: the log may go on differently from what was read."""
    unclean = services.directories.unclean()
    elected = await services.controller.write(lambda image: decide_lead_again(image, services.broker_id, unclean))
    if elected:
        LOGGER.info("leading %d partitions with a new leader epoch, after a stop that was not clean", len(elected))


def _when_room_changes(services: Services) -> Callable[[], None]:
    reports: list[RoomReports] = []

    def changed() -> None:
        if services.forwarding is None:
            return
        if not reports:
            from moldau.node.storage.lost_replicas import RoomReports

            reports.append(RoomReports(services, services.forwarding))
        reports[0].report()

    return changed


def watch_directories(services: Services, store: MetadataStore, halt: Halt) -> None:
    """Follow log directories that fail: their partitions get no leader, and without any directory there is no broker.

    The metadata may be in one of them, and nothing can be changed without it; Apache Kafka ends for both reasons, too.
    """
    directories = services.directories
    beside = store.path.resolve().parent if isinstance(store, SqliteStore) else None
    home = next((path for path in directories.paths if path.resolve() == beside), None)
    tasks: set[asyncio.Task[None]] = set()
    directories.on_room = _when_room_changes(services)

    def offline(path: str, partitions: list[TopicPartition]) -> None:
        services.partitions.go_offline(partitions)
        reason = directories.failures[Path(path)]
        if len(directories.failures) == len(directories.paths):
            halt(f"all log directories have failed, the last one is {path}: {reason}")
        elif Path(path) == home:
            halt(f"the log directory with the metadata, {path}, has failed: {reason}")
        else:
            task = asyncio.get_running_loop().create_task(_give_up_leading(services, partitions))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    def failed(wrong: StoreError) -> None:
        if home is None:  # several brokers share it, in a folder of its own
            halt(f"the metadata has failed: {wrong}")
        else:
            directories.fail(home, NotUndone(errno.EIO, f"{os.strerror(errno.EIO)}: {wrong}"))

    directories.on_offline = offline
    if isinstance(store, SqliteStore):
        store.on_failure = failed


async def _give_up_leading(services: Services, partitions: list[TopicPartition]) -> None:
    if services.forwarding is not None:
        # Imported here because a broker that is alone has nobody to lead in its place.
        from moldau.node.storage.kept_logs import note_failure
        from moldau.node.storage.lost_replicas import report_lost

        note_failure(services.directories)
        await report_lost(services, services.forwarding, partitions)
        return
    try:
        await services.controller.write(lambda image: decide_leaderless(image, services.broker_id, partitions))
    except ApiError as refused:
        LOGGER.error("the cluster could not be told of %d partitions without a leader: %s", len(partitions), refused)

"""Opening all partitions of a broker at its start, several at a time, with progress for whoever waits for it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from moldau.broker.topics.building import build, prepare
from moldau.broker.topics.partitions import HostedTopic
from moldau.controller.image import ClusterImage
from moldau.core.clock import Clock
from moldau.core.config.topic import TopicConfig
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.meta_properties import NoPlace
from moldau.log.directories.opening import LogJob
from moldau.replication.assignment import ReplicationTerms
from moldau.replication.partition import DEFAULT_TERMS, Partition

LOGGER = logging.getLogger(__name__)

LOGS_PER_TURN = 64
PROGRESS_S = 5.0


class GivenUp(Exception):
    """The broker is to end before all logs are open."""


@dataclass(slots=True)
class _Progress:
    total: int
    tried: int = 0
    opened: int = 0
    scanned_bytes: int = 0
    cut_bytes: int = 0
    begun_s: float = 0.0
    told_s: float = 0.0

    def note(self, job: LogJob) -> None:
        self.tried += 1
        self.opened += job.log is not None
        self.scanned_bytes += job.scanned_bytes
        self.cut_bytes += job.cut_bytes

    def tell(self) -> None:
        if monotonic() - self.told_s >= PROGRESS_S:
            self.told_s = monotonic()
            LOGGER.info("recovered %d of %d logs", self.tried, self.total)

    def sum_up(self) -> None:
        if self.total:
            count = f"{self.opened}" if self.opened == self.total else f"{self.opened} of {self.total}"
            LOGGER.info(
                "opened %s logs in %.2f s: %d bytes scanned, %d bytes cut",
                count, monotonic() - self.begun_s, self.scanned_bytes, self.cut_bytes,
            )  # fmt: skip


async def open_topics(
    image: ClusterImage,
    *,
    broker_id: int,
    directories: LogDirectories,
    defaults: TopicConfig,
    threads_per_directory: int,
    clock: Clock,
    stop: asyncio.Event | None = None,
    terms: ReplicationTerms = DEFAULT_TERMS,
) -> list[HostedTopic]:
    """Every topic of the image with its partitions on this broker, opened, recovered or created.

    Records that can't be read are a reason to stop, `UnusableDirectory`; a missing place for new ones is not. Who asks
    to `stop` waits for the logs that are being opened, not for all the others: `GivenUp`.
    """
    topics = [HostedTopic(topic, defaults.override(topic.configs)) for topic in image.topics.values()]
    turns: list[tuple[HostedTopic, list[LogJob]]] = []
    for hosted in topics:
        indexes = hosted.missing(broker_id, count_max=len(hosted.image.partitions))
        jobs = prepare(directories, hosted, indexes, clock.now_ms())
        turns += [(hosted, jobs[at : at + LOGS_PER_TURN]) for at in range(0, len(jobs), LOGS_PER_TURN)]
        await asyncio.sleep(0)
    now_s = monotonic()
    progress = _Progress(sum(len(jobs) for _, jobs in turns), begun_s=now_s, told_s=now_s)
    with ExitStack() as open_pools:
        pools: dict[str, ThreadPoolExecutor] = {}
        for path in directories.paths:
            pool = ThreadPoolExecutor(threads_per_directory, thread_name_prefix="moldau-recovery")
            open_pools.callback(pool.shutdown, cancel_futures=True)
            pools[str(path)] = pool
        work = partial(build, broker_id, clock=clock, terms=terms)
        await _open(turns, pools, work=work, directories=directories, progress=progress, stop=stop)
    progress.sum_up()
    return topics


async def _open(
    turns: list[tuple[HostedTopic, list[LogJob]]],
    pools: dict[str, ThreadPoolExecutor],
    *,
    work: Callable[..., list[Partition | None]],
    directories: LogDirectories,
    progress: _Progress,
    stop: asyncio.Event | None,
) -> None:
    loop = asyncio.get_running_loop()
    given_up = threading.Event()

    async def one_turn(hosted: HostedTopic, jobs: list[LogJob], pool: ThreadPoolExecutor) -> None:
        built = await loop.run_in_executor(pool, partial(work, hosted.image, jobs, is_given_up=given_up.is_set))
        _serve(hosted, jobs, built, directories)
        for job in jobs:
            progress.note(job)
        progress.tell()

    tasks = [
        asyncio.ensure_future(one_turn(hosted, here, pool))
        for hosted, jobs in turns
        for path, pool in pools.items()
        if (here := [job for job in jobs if _home(job) == path])
    ]
    try:
        await _unless(stop, asyncio.gather(*tasks))
    finally:
        given_up.set()
        for task in tasks:
            task.cancel()


async def _unless(stop: asyncio.Event | None, opening: asyncio.Future[list[None]]) -> None:
    if stop is None:
        await opening
        return
    stopping = asyncio.ensure_future(stop.wait())
    opening.add_done_callback(lambda done: done.cancelled() or done.exception())  # of what is given up nobody asks
    try:
        either: tuple[asyncio.Future[Any], ...] = (opening, stopping)
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():
            raise GivenUp
        opening.result()
    finally:
        opening.cancel()
        stopping.cancel()


def _home(job: LogJob) -> str | None:
    """The log directory whose threads do a job; None when there is no place for a new log."""
    return job.homes[0].path if job.homes else job.reserved


def _serve(
    hosted: HostedTopic, jobs: Sequence[LogJob], built: Sequence[Partition | None], directories: LogDirectories
) -> None:
    for job, partition in zip(jobs, built, strict=True):
        try:
            directories.settle(job)
        except NoPlace as wrong:
            hosted.lacks(wrong)
            continue
        assert partition is not None, "a job with a log has made a partition"
        hosted.serving[partition.index] = partition

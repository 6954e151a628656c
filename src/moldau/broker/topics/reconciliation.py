"""The folders of this broker, kept equal to what the cluster's image assigns to it.

Topic by topic, and again until they agree: one topic's failure keeps no other from being made or removed. What is
deleted stops serving at once, whatever becomes of its folders. All folders are made and moved in one thread, a slice of
one topic at a time, so that thousands of partitions hold nobody up and a small topic does not wait for a large one.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from time import monotonic

from moldau.broker.topics.building import build, prepare
from moldau.broker.topics.leaving import Leaving, let_go, set_aside_all
from moldau.broker.topics.partitions import HostedTopic, Partitions, changed_names
from moldau.controller.image import ClusterImage
from moldau.coordinator.long_work import LongWork, in_slices
from moldau.core.clock import Clock
from moldau.core.config.topic import TopicConfig
from moldau.core.errors import ApiError
from moldau.core.ids import TopicId
from moldau.core.repeated_line import RepeatedLine
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.meta_properties import NoPlace, UnusableDirectory
from moldau.log.directories.opening import LogJob
from moldau.replication.assignment import ReplicationTerms
from moldau.replication.partition import DEFAULT_TERMS, Partition

LOGGER = logging.getLogger(__name__)

PARTITIONS_PER_SLICE = 32  # some milliseconds of one thread, after which another topic has its turn
LOOP_S_MAX = 0.005  # of changes to partitions that are here already, before the loop does something else
UNDO_RETRY_S = 3.0

Undo = Callable[[], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Expectation:
    """Somebody who created partitions and will tell a client whether they are there."""

    indexes: range
    undo: Undo
    outcome: asyncio.Future[str | None]

    def tell(self, reason: str | None) -> None:
        if not self.outcome.done():  # its client may have gone
            self.outcome.set_result(reason)


class Reconciliation:
    """Owned by one event loop; only `build` and `set_aside` run in its thread."""

    def __init__(
        self,
        broker_id: int,
        partitions: Partitions,
        directories: LogDirectories,
        *,
        thread: Executor,
        clock: Clock,
        long_work: LongWork | None = None,
        terms: ReplicationTerms = DEFAULT_TERMS,
    ) -> None:
        self._broker_id = broker_id
        self._terms = terms
        self._partitions = partitions
        self._directories = directories
        self._thread = thread
        self._long_work = long_work or LongWork()
        self._clock = clock
        self._image = ClusterImage()
        self._hosted: dict[str, HostedTopic] = {}
        self._due: dict[str, None] = {}  # names of topics with something to do, in the order of their turns
        self._leaving: deque[Leaving] = deque()
        self._stuck: list[Leaving] = []
        self._last_leaving: dict[TopicId, Leaving] = {}
        self._expected: dict[TopicId, list[_Expectation]] = {}
        self._held: dict[TopicId, asyncio.Task[None]] = {}  # creations that are being undone: nobody serves them
        self._worker: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._not_made, self._not_undone = RepeatedLine(LOGGER, logging.ERROR), RepeatedLine(LOGGER, logging.ERROR)
        self._not_followed = RepeatedLine(LOGGER, logging.ERROR)

    def follow(self, old: ClusterImage | None, new: ClusterImage, *, defaults: TopicConfig) -> None:
        """What is gone stops serving here and now; what is new is begun."""
        self._image = self._partitions.image = new
        for name in changed_names(old, new, self._hosted):
            hosted, topic = self._hosted.get(name), new.topics.get(name)
            if hosted is not None and (topic is None or topic.id != hosted.image.id):
                self._evict(hosted)
                hosted = None
            if topic is None:
                continue
            config = defaults.override(topic.configs)
            if hosted is None:
                hosted = self._hosted[name] = HostedTopic(topic, config)
                self._partitions.host(hosted)
            elif topic is not hosted.image or config is not hosted.config:
                gone = hosted.follow(topic, config, self._broker_id)
                self._partitions.tell_gone(gone)
                self._leave(hosted, gone)
                self._settle_expectations(hosted)
            self._due[name] = None
        deadline = monotonic() + LOOP_S_MAX
        for name in [*self._due]:
            self._bring_up_to_date(self._hosted[name], deadline)
        self._work_on()

    def expect(self, topic_id: TopicId, indexes: range, undo: Undo) -> asyncio.Future[str | None]:
        """Done when these new partitions of a topic serve. If they can't be made: the reason, once `undo` was tried.

        Until the undoing got through, however often it must be tried, nobody is served by any of them.
        """
        expectation = _Expectation(indexes, undo, asyncio.get_running_loop().create_future())
        hosted = self._hosted.get(self._image.topic_ids.get(topic_id, ""))
        if hosted is None or self._all_serve(hosted, indexes):
            expectation.tell(None)
            return expectation.outcome
        self._expected.setdefault(topic_id, []).append(expectation)
        if hosted.is_passed and hosted.failure is not None and topic_id not in self._held:
            self._give_up(hosted)
        return expectation.outcome

    async def removed(self, topic_id: TopicId) -> None:
        """Wait until the folders of a deleted topic were set aside, or could not be."""
        leaving = self._last_leaving.get(topic_id)
        if leaving is not None:
            await leaving.tried.wait()

    def complete(self, _now_ms: int = 0) -> None:
        """Try again what could not be made or removed, on a full disk for one.

        What somebody waits for has its turns by itself, and serves nobody while it can still be undone.
        """
        self._leaving.extend(self._stuck)
        self._stuck.clear()
        for name, hosted in self._hosted.items():
            topic_id = hosted.image.id
            if hosted.failed:
                hosted.outdated += hosted.failed
                self._due[name] = None
            if hosted.failure is not None and topic_id not in self._held and topic_id not in self._expected:
                self._serve(hosted)
                hosted.try_again()
                self._due[name] = None
        self._work_on()

    async def settled(self) -> None:
        """Wait until everything was tried that is to be done."""
        while self._worker is not None:
            await asyncio.shield(self._worker)

    async def stop(self, decided: Callable[[], Awaitable[None]] | None = None) -> None:
        """Make nothing any more, but finish deletions: the next start would take their folders for somebody's.

        `decided` is done when no image follows any more: one that is still being written may delete topics, too.
        """
        self._is_stopping = True
        for task in [*self._held.values()]:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if decided is not None:
            await decided()
        if self._worker is not None:
            await asyncio.gather(self._worker, return_exceptions=True)
        self._leaving.extend(self._stuck)
        self._stuck.clear()
        while self._leaving:
            await self._set_aside(self._leaving.popleft())

    def adopt(self, image: ClusterImage, topics: Iterable[HostedTopic]) -> None:
        """Begin with what a start opened."""
        self._image = self._partitions.image = image
        for hosted in topics:
            self._hosted[hosted.name] = hosted
            self._partitions.host(hosted)
            for partition in hosted.serving.values():
                if partition.log.offline is not None:  # its log directory failed before it was here to be told
                    partition.go_offline()

    def _work_on(self) -> None:
        if self._worker is None and not self._is_stopping and (self._due or self._leaving):
            self._worker = asyncio.get_running_loop().create_task(self._work(), name="reconciliation")

    async def _work(self) -> None:
        """Folders that must go come first: a new topic of the same name must not meet them."""
        try:
            while self._leaving or (self._due and not self._is_stopping):
                if self._leaving:
                    await self._set_aside(self._leaving.popleft())
                    continue
                name = next(iter(self._due))
                del self._due[name]
                hosted = self._hosted.get(name)
                if hosted is not None and hosted.image.id not in self._held:
                    await self._try_to_advance(hosted)
        finally:
            self._worker = None

    async def _try_to_advance(self, hosted: HostedTopic) -> None:
        try:
            await self._advance(hosted)
        except Exception as wrong:
            line = f"topic {hosted.name} can't be made what the cluster says; it is tried again"
            self._not_made.say(line, exc_info=wrong)
            hosted.failure = wrong
            hosted.cursor = len(hosted.image.partitions)
            self._give_up(hosted)

    async def _advance(self, hosted: HostedTopic) -> None:
        """One slice of a topic; the rest has its turn after the other topics."""
        self._bring_up_to_date(hosted, monotonic() + LOOP_S_MAX)
        indexes = hosted.missing(self._broker_id, count_max=PARTITIONS_PER_SLICE)
        if indexes:
            jobs = prepare(self._directories, hosted, indexes, self._clock.now_ms())
            work = partial(build, self._broker_id, hosted.image, jobs, clock=self._clock, terms=self._terms)
            built = await asyncio.get_running_loop().run_in_executor(self._thread, work)
            self._take(hosted, jobs, built)
            if self._hosted.get(hosted.name) is not hosted:
                return
        elif hosted.outdated:
            await asyncio.sleep(0)
        if not hosted.is_passed or hosted.outdated:
            self._due[hosted.name] = None
        elif hosted.failure is None:
            self._serve(hosted)
            self._settle_expectations(hosted)
        else:
            self._give_up(hosted)

    def _take(self, hosted: HostedTopic, jobs: list[LogJob], built: list[Partition | None]) -> None:
        """Put what a slice made in place, unless its topic went meanwhile."""
        is_current = self._hosted.get(hosted.name) is hosted
        failure: UnusableDirectory | None = None
        for job, partition in zip(jobs, built, strict=True):
            try:
                self._directories.settle(job)
            except UnusableDirectory as wrong:
                failure = wrong
                continue
            assert partition is not None, "a job with a log has made a partition"
            if is_current and self._belongs_here(hosted, partition.index):
                hosted.made[partition.index] = partition
                hosted.bring_up_to_date(partition.index, self._clock.elapsed_ms())
                if partition.log.offline is not None:
                    partition.go_offline()
            else:
                self._leave(hosted, [partition])
        if failure is None or not is_current:
            return
        hosted.lacks(failure)
        if isinstance(failure, NoPlace):
            hosted.cursor = len(hosted.image.partitions)  # the others would be refused, too

    def _serve(self, hosted: HostedTopic) -> None:
        """Serve what is made, all of a creation at once: none of it may hold records while it can still be undone."""
        made, hosted.made = hosted.made, {}
        hosted.serving.update(made)
        if self._partitions.leadership_listeners:
            for partition in made.values():
                self._partitions.on_leadership(partition, partition.is_leader)
        if hosted.is_incomplete and self._all_serve(hosted, range(len(hosted.image.partitions))):
            hosted.is_incomplete = False
            LOGGER.info("topic %s has all its partitions now", hosted.name)

    def _belongs_here(self, hosted: HostedTopic, index: int) -> bool:
        states = hosted.image.partitions
        return index < len(states) and self._broker_id in states[index].replicas

    def _all_serve(self, hosted: HostedTopic, indexes: range) -> bool:
        states = hosted.image.partitions
        return all(
            index in hosted.serving or self._broker_id not in states[index].replicas
            for index in range(indexes.start, min(indexes.stop, len(states)))
        )

    def _settle_expectations(self, hosted: HostedTopic) -> None:
        left: list[_Expectation] = []
        for each in self._expected.pop(hosted.image.id, []):
            if each.indexes.stop > len(hosted.image.partitions):
                each.tell("the partitions before them could not be made")
            elif self._all_serve(hosted, each.indexes):
                each.tell(None)
            else:
                left.append(each)
        if left:
            self._expected[hosted.image.id] = left

    def _give_up(self, hosted: HostedTopic) -> None:
        """Undo what somebody waits for; what nobody waits for is tried again."""
        waiting = self._expected.pop(hosted.image.id, [])
        if waiting:
            undoing = self._undo(hosted, waiting, str(hosted.failure))
            self._held[hosted.image.id] = asyncio.get_running_loop().create_task(undoing, name="undo-creation")

    async def _undo(self, hosted: HostedTopic, waiting: list[_Expectation], reason: str) -> None:
        """The lowest indexes last: with them everything goes that was added after them."""
        try:
            for each in sorted(waiting, key=lambda one: one.indexes.start, reverse=True):
                while not await self._undone(hosted, each, reason):  # noqa: ASYNC110 - the disk sends no event
                    await asyncio.sleep(UNDO_RETRY_S)
        finally:
            del self._held[hosted.image.id]
            if self._hosted.get(hosted.name) is hosted:
                hosted.try_again()
                self._due[hosted.name] = None
                self._work_on()

    async def _undone(self, hosted: HostedTopic, expectation: _Expectation, reason: str) -> bool:
        try:
            await expectation.undo()
            await self.removed(hosted.image.id)
            await self._make_room()
        except ApiError as wrong:
            self._not_undone.say(f"topic {hosted.name} can't be made, and not be given up either yet: {wrong}")
            return False
        finally:
            expectation.tell(reason)
        return True

    async def _make_room(self) -> None:
        """Delete what was set aside now, not soon: a disk without room is why this is called."""
        due = self._directories.removals_due(self._clock.now_ms())
        if due is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, due)

    def _bring_up_to_date(self, hosted: HostedTopic, deadline: float) -> None:
        while hosted.outdated and monotonic() < deadline:
            index = hosted.outdated.pop()
            try:
                changed = hosted.bring_up_to_date(index, self._clock.elapsed_ms())
                if index in hosted.failed:  # whoever listens may not have been told
                    changed = hosted.serving.get(index)
                if changed is not None and index in hosted.serving:
                    self._partitions.on_leadership(changed, changed.is_leader)
                hosted.failed.discard(index)
            except Exception as wrong:
                hosted.failed.add(index)
                line = (
                    f"partition {index} of topic {hosted.name} can't be made what the cluster says; it is tried again"
                )
                self._not_followed.say(line, exc_info=wrong)

    def _evict(self, hosted: HostedTopic) -> None:
        del self._hosted[hosted.name]
        self._due.pop(hosted.name, None)
        self._leave(hosted, self._partitions.evict(hosted))
        for each in self._expected.pop(hosted.image.id, []):
            # It was created, and then deleted by somebody else, or together with those who could not be made.
            each.tell("the topic could not be made" if hosted.image.id in self._held else None)

    def _leave(self, hosted: HostedTopic, gone: list[Partition]) -> None:
        if not gone:
            return
        leaving = Leaving(hosted.name, hosted.image.id, [partition.log for partition in gone])
        self._last_leaving[hosted.image.id] = leaving
        self._leaving.append(leaving)
        self._work_on()

    def _paths_of(self, name: str) -> set[str]:
        """Folders that are in use: those of partitions that a topic lost and has again since are not to be moved."""
        hosted = self._hosted.get(name)
        if hosted is None:
            return set()
        return {partition.log.path for partition in (*hosted.serving.values(), *hosted.made.values())}

    async def _set_aside(self, leaving: Leaving) -> None:
        """All folders of a topic at once: a rename is a single call."""
        async for stored in in_slices(leaving.logs, self._long_work):
            self._directories.retire(stored)
        loop = asyncio.get_running_loop()
        # What is in a log directory that failed stays: the next start finds the folders of a topic that is gone.
        taken = self._paths_of(leaving.name)
        movable = [stored for stored in leaving.logs if stored.offline is None and stored.path not in taken]
        moved, failed = await loop.run_in_executor(self._thread, set_aside_all, movable)
        for path in moved:
            self._directories.doom(path)
        leaving.logs = [stored for stored, _ in failed]
        leaving.tried.set()
        async for _ in in_slices(let_go(movable), self._long_work):
            pass
        if not failed:
            if self._last_leaving.get(leaving.topic_id) is leaving:
                del self._last_leaving[leaving.topic_id]
            return
        self._stuck.append(leaving)
        if not leaving.is_reported:
            leaving.is_reported = True
            LOGGER.error("%d folders of topic %s stay for now: %s", len(failed), leaving.name, failed[0][1])
        for stored, failure in failed:
            self._directories.fail(os.path.dirname(stored.path), failure)

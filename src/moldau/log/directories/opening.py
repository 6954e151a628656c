"""Opening or creating one partition's log, as a job for a thread.

`LogDirectories` fills the job on its loop and puts what came of it in place there; in between `run` touches the disk
and nothing else, so that thousands of folders are made while the loop serves.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock

import msgspec

from moldau.core.config.topic import TopicConfig
from moldau.core.ids import TopicId, TopicPartition
from moldau.log.checkpoints import CorruptCheckpoint, read_partition_metadata, write_partition_metadata
from moldau.log.directories.meta_properties import NoPlace, UnusableDirectory
from moldau.log.directories.offset_checkpoints import forget_offsets
from moldau.log.maintenance import recovery
from moldau.log.maintenance.removal import set_stray_aside
from moldau.log.partition_log import PartitionLog

LOGGER = logging.getLogger(__name__)


class Home(msgspec.Struct, frozen=True):
    """A log directory that has a folder for the partition, and what its checkpoints say of it."""

    path: str
    clean: bool
    recovery_point: int
    log_start_offset: int
    high_watermark: int
    clean_to: int | None
    may_have_holes: bool


@dataclass(slots=True, eq=False)
class LogJob:
    """What to open or create, and what became of it; `places` are the log directories for a new one, best first."""

    partition: TopicPartition
    topic_id: TopicId
    config: TopicConfig
    now_ms: int
    homes: Sequence[Home]
    places: Sequence[str]
    checkpointing: Lock  # held by who writes the checkpoints of log directories
    log: PartitionLog | None = None
    is_new: bool = False
    reserved: str | None = None  # the place that counts the partition already
    strayed: list[str] = field(default_factory=list)  # log directories whose folder of the name was another topic's
    failure: UnusableDirectory | None = None
    refusals: list[tuple[str, OSError]] = field(default_factory=list)
    high_watermark: int = 0  # of the checkpoint
    scanned_bytes: int = 0
    cut_bytes: int = 0

    def run(self) -> None:
        """May run in any thread. A failure is kept for the loop to look at."""
        if self.log is not None:
            return
        try:
            own = [home for home in self.homes if self._is_of_topic(home)]
            self.log = self._open(own[0]) if own else self._create()
        except UnusableDirectory as wrong:
            self.failure = wrong

    def refuse(self, failure: OSError) -> None:
        """The disk refused something in the log's folder."""
        assert self.log is not None, "only a log that was made has a folder"
        self.refusals.append((os.path.dirname(self.log.path), failure))

    def discard_if_unusable(self) -> bool:
        """Leave no trace of a log that was created but can't be used; one that can't be removed stays where it is."""
        if self.log is None or self.log.offline is None or not self.is_new:
            return False
        shutil.rmtree(self.log.path, ignore_errors=True)
        if os.path.lexists(self.log.path):  # elsewhere there would be two folders of one partition
            return False
        self.failure = NoPlace(f"{self.log.path} can't be written to: {self.log.offline}")
        self.log = None
        return True

    def forget(self, failure: OSError) -> None:
        """Leave no trace of a log that was created, for the log directory's checkpoints could not be."""
        assert self.log is not None, "it was created"
        self.refuse(failure)
        shutil.rmtree(self.log.path, ignore_errors=True)
        self.failure = NoPlace(f"checkpoints beside {self.log.path} can't be written: {failure}")
        self.log = None

    def _is_of_topic(self, home: Home) -> bool:
        """A folder of an older topic of that name makes room."""
        path = f"{home.path}/{self.partition}"
        found = topic_id_of(path)
        try:
            if found is None:
                write_partition_metadata(path, self.topic_id)
            if found is None or found == self.topic_id:
                return True
            LOGGER.warning(
                "%s belongs to another topic of that name; keeping it as %s",
                path,
                set_stray_aside(path, self.partition),
            )
        except OSError as wrong:
            raise UnusableDirectory(f"{path} can't be used: {wrong}") from wrong
        self.strayed.append(home.path)
        return False

    def _open(self, home: Home) -> PartitionLog:
        path = f"{home.path}/{self.partition}"
        start = recovery.Start(
            str(self.partition), self.config, home.clean, home.recovery_point, home.log_start_offset, self.now_ms,
            home.may_have_holes,
        )  # fmt: skip
        try:
            loaded = recovery.load(path, start)
        except (OSError, ValueError) as wrong:
            raise UnusableDirectory(f"{path} can't be opened: {wrong}") from wrong
        self.high_watermark = home.high_watermark
        self.scanned_bytes, self.cut_bytes = loaded.scanned_bytes, loaded.cut_bytes
        log = PartitionLog(loaded, partition=self.partition, topic_id=self.topic_id)
        log.clean_to = None if home.clean_to is None else min(home.clean_to, log.end_offset)
        return log

    def _create(self) -> PartitionLog:
        """In the best place, or the next one when that cannot be written to."""
        for place in self.places:
            path = f"{place}/{self.partition}"
            try:
                self._make_room(path)
            except OSError as wrong:
                # In another place there would be two folders of one partition, which the next start may refuse.
                raise NoPlace(f"{path} is in the way of {self.partition} and can't be moved: {wrong}") from wrong
            try:
                log = PartitionLog.create(
                    path, partition=self.partition, topic_id=self.topic_id, config=self.config, now_ms=self.now_ms
                )
            except OSError as failure:
                shutil.rmtree(path, ignore_errors=True)  # half made, it would be in the way of the next try
                self.refusals.append((place, failure))
                continue
            self.is_new = True
            return log
        reason = f": {self.refusals[-1][1].strerror}" if self.refusals else ""
        raise NoPlace(f"no log directory can be written to{reason}: {self.partition} has no place")

    def _make_room(self, path: str) -> None:
        """What stands where a new folder goes is nobody's: a deletion that did not get through left it, or a user."""
        if os.path.lexists(path):
            LOGGER.warning(
                "%s is in the way of a new topic; keeping it as %s", path, set_stray_aside(path, self.partition)
            )


def forget_offsets_of(jobs: Iterable[LogJob]) -> None:
    """Nothing that is in a checkpoint is about logs that were just created; may run in any thread.

    A crash that comes before the next checkpoint would find the start of a deleted topic there, behind the end of the
    new one, which would be taken for a log without its files, and emptied.
    """
    created: dict[str, list[LogJob]] = {}
    for job in jobs:
        if job.is_new and job.log is not None:
            created.setdefault(os.path.dirname(job.log.path), []).append(job)
    for directory, new in created.items():
        try:
            forget_offsets(directory, {job.partition for job in new}, new[0].checkpointing)
        except OSError as failure:
            for job in new:
                job.forget(failure)


def topic_id_of(path: str) -> TopicId | None:
    """The id of the topic that a folder belongs to; None when it does not say."""
    try:
        return read_partition_metadata(path)
    except CorruptCheckpoint as wrong:
        raise UnusableDirectory(str(wrong)) from wrong
    except OSError as wrong:
        raise UnusableDirectory(f"{path} can't be used: {wrong.strerror}") from wrong

"""Files on their way out: renamed at once, deleted after `file.delete.delay.ms`, so that a reader is not cut off."""

from __future__ import annotations

import logging
import os
import shutil
import uuid
from collections.abc import Iterable

from moldau.core.ids import TopicId, TopicPartition
from moldau.log.checkpoints import CorruptCheckpoint, read_partition_metadata
from moldau.log.files import DELETED, LOG, SEGMENT_SUFFIXES, SNAPSHOT, offset_name, remove_if_there
from moldau.log.segment import Segment

LOGGER = logging.getLogger(__name__)

DELETED_FOLDER = "-delete"
STRAY_FOLDER = "-stray"
FUTURE_FOLDER = "-future"
FOLDER_NAME_CHARS_MAX = 255


class Removals:
    """Paths and the time from which each may be deleted."""

    __slots__ = ("pending",)

    def __init__(self) -> None:
        self.pending: list[tuple[int, str]] = []

    def add(self, path: str, due_ms: int) -> None:
        """Rename a file out of the way; one that is gone already needs no removal."""
        renamed = path if path.endswith(DELETED) else path + DELETED
        try:
            if renamed != path:
                os.replace(path, renamed)
        except FileNotFoundError:
            return
        self.pending.append((due_ms, renamed))

    def add_segment(self, directory: str, segment: Segment, due_ms: int) -> OSError | None:
        """A segment goes with its indexes and with the producer snapshot taken at its start.

        While its log has its name nothing has changed, and a failure is raised; without the log the segment is gone,
        and the first failure to take the rest along is given back.
        """
        self.add(segment.path, due_ms)
        segment.forget()
        failure: OSError | None = None
        beside = [segment.prefix + suffix for suffix in SEGMENT_SUFFIXES if suffix != LOG]
        for path in (*beside, f"{directory}/{offset_name(segment.base_offset)}{SNAPSHOT}"):
            try:
                self.add(path, due_ms)
            except OSError as wrong:
                failure = failure or wrong
        return failure

    def due(self, now_ms: int) -> list[str]:
        """Paths whose time has come; they are the caller's to delete."""
        if not self.pending:
            return []
        due = [path for at_ms, path in self.pending if at_ms <= now_ms]
        self.pending = [(at_ms, path) for at_ms, path in self.pending if at_ms > now_ms]
        return due


def remove(paths: Iterable[str]) -> None:
    """Delete files and folders; may run in any thread. What can't be deleted now is at the next start."""
    for path in paths:
        try:
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                remove_if_there(path)
        except OSError as failure:
            LOGGER.warning("%s could not be deleted, which the next start tries again: %s", path, failure.strerror)


def set_aside(path: str, partition: TopicPartition, topic_id: TopicId) -> str | None:
    """Rename the folder of a deleted topic's partition, so that its name is free; None when there is none any more.

    May run in any thread, and may be tried again later: by then a new topic of that name may have a folder there.
    """
    try:
        found = read_partition_metadata(path)
    except CorruptCheckpoint:
        found = None  # a new topic's would be sound
    except NotADirectoryError:
        return None
    if found not in (None, topic_id):
        return None
    doomed = f"{os.path.dirname(path)}/{deleted_folder_name(partition)}"
    try:
        os.rename(path, doomed)
    except FileNotFoundError:
        LOGGER.warning("%s was gone before its topic was deleted", path)
        return None
    return doomed


def set_stray_aside(path: str, partition: TopicPartition) -> str:
    """Rename a folder that no topic owns; gives its new name. It is kept, for whoever knows what it is."""
    aside = f"{os.path.dirname(path)}/{stray_folder_name(partition)}"
    os.rename(path, aside)
    return aside


def deleted_folder_name(partition: TopicPartition) -> str:
    """Kafka's name for a folder that is to be deleted."""
    return _unique_name(partition, DELETED_FOLDER)


def stray_folder_name(partition: TopicPartition) -> str:
    """Kafka's name for a folder that no topic owns."""
    return _unique_name(partition, STRAY_FOLDER)


def future_folder_name(partition: TopicPartition) -> str:
    """Kafka's name for a folder that is to take the place of another log directory's."""
    return _unique_name(partition, FUTURE_FOLDER)


def _unique_name(partition: TopicPartition, kind: str) -> str:
    """The topic's name gives way when the whole gets too long."""
    suffix = f"-{partition.partition}.{uuid.uuid4().hex}{kind}"
    return partition.topic[: FOLDER_NAME_CHARS_MAX - len(suffix)] + suffix

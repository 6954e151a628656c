"""What survives a crash: real partition logs in a folder, written through a seam at which the process may die."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from moldau.core.config.topic import TopicConfig
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicId, TopicPartition
from moldau.log.errors import LogError
from moldau.log.partition_log import Appended, PartitionLog


class Crash(BaseException):
    """The process is gone. Nothing may catch it, as nothing catches a kill -9."""


class Fate(Enum):
    """What becomes of one write."""

    WRITTEN = "it is written, and life goes on"
    REFUSED = "there is no room for it, and life goes on"
    BEFORE = "the process dies before it"
    TORN = "the process dies with a part of it in the file"
    AFTER = "it is written, and the process dies before it can do anything more"


class Writing(Protocol):
    """The process that writes."""

    def fate_of_write(self) -> Fate: ...

    def die(self) -> None: ...


# Told of every batch that is in a log, at the moment when it is.
OnAppended = Callable[[TopicPartition, memoryview], None]


class CrashingLog:
    """A partition's log in the hands of a process that may die while it writes."""

    def __init__(self, log: PartitionLog, writing: Writing, on_appended: OnAppended) -> None:
        self._log = self.inner = log
        self._writing = writing
        self._on_appended = on_appended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append_as_leader(self, records: memoryview, **how: Any) -> Appended:
        fate = self._writing.fate_of_write()
        if fate is Fate.BEFORE:
            self._writing.die()
            raise Crash
        if fate is Fate.REFUSED:
            raise LogError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left on device")
        appended = self._log.append_as_leader(records, **how)
        if appended.duplicate:
            return appended
        if fate is Fate.TORN:
            self._tear(len(records))
            self._writing.die()
            raise Crash
        self._on_appended(self._log.partition, records)
        if fate is Fate.AFTER:
            self._writing.die()
            raise Crash
        return appended

    def _tear(self, size_bytes: int) -> None:
        """The last bytes never reached the file; how many depends on the batch alone, so that a seed decides it."""
        active = self._log.active
        os.truncate(active.path, active.size - 1 - size_bytes // 3)


class Disk:
    """The folders of one broker."""

    def __init__(self, folder: Path, topics: dict[str, TopicConfig], partition_counts: Mapping[str, int]) -> None:
        self.folder = folder
        self.clean_to: dict[TopicPartition, int] = {}
        """Where the logs ended when they were closed; empty after a crash."""
        self.topics = topics
        self.partitions = [TopicPartition(name, index) for name in topics for index in range(partition_counts[name])]

    def topic_id(self, topic: str) -> TopicId:
        return TopicId((list(self.topics).index(topic) + 1).to_bytes(16, "big"))

    def open(self, partition: TopicPartition, now_ms: int) -> PartitionLog:
        path = self.folder / str(partition)
        topic_id, config = self.topic_id(partition.topic), self.topics[partition.topic]
        if not path.exists():
            return PartitionLog.create(path, partition=partition, topic_id=topic_id, config=config, now_ms=now_ms)
        return PartitionLog.open(
            path,
            partition=partition,
            topic_id=topic_id,
            config=config,
            clean=partition in self.clean_to,
            recovery_point=self.clean_to.get(partition, 0),
            log_start_offset=0,
            now_ms=now_ms,
        )

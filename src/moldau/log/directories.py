"""The data folders of a broker: whose they are, which partitions are in them, and where new ones go."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from moldau.core.config.topic import TopicConfig
from moldau.core.ids import TopicId, TopicPartition
from moldau.log.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    CorruptCheckpoint,
    read_partition_metadata,
    write_clean_shutdown,
    write_offsets,
    write_partition_metadata,
)
from moldau.log.data_directory import DataDirectory
from moldau.log.directory_lock import DirectoryLock
from moldau.log.directory_state import EVENTS, Event, State
from moldau.log.errors import LogError
from moldau.log.failure import judge
from moldau.log.files import remove_if_there, sync_path
from moldau.log.meta_properties import NoPlace, UnusableDirectory, claim
from moldau.log.partition_log import PartitionLog
from moldau.log.removal import DELETED_FOLDER, remove, stray_folder_name

LOGGER = logging.getLogger(__name__)

CLOSING_THREADS = 8  # they wait for fsync, which disks do several of at a time
NO_BROKER_EPOCH = -1
_FOLDER = re.compile(r"(.+)-(0|[1-9]\d{0,9})")
_NOT_PARTITIONS = (DELETED_FOLDER, "-stray", "-future")


class Checkpoints(NamedTuple):
    """Offsets as they were at one moment, for each file in each folder; writing them may be left to a thread."""

    files: tuple[tuple[str, str, Mapping[TopicPartition, int]], ...]

    def write(self, only: str | None = None) -> None:
        for directory, name, offsets in self.files:
            if only is None or directory == only:
                write_offsets(directory, name, offsets)

    def write_all(self) -> dict[str, OSError]:
        """Write those of every directory; gives the failures, for whoever owns the directories to judge."""
        failures: dict[str, OSError] = {}
        for directory in dict.fromkeys(each[0] for each in self.files):
            try:
                self.write(directory)
            except OSError as failure:
                failures[directory] = failure
        return failures


def _unmark(directory: DataDirectory) -> None:
    """From now on only a clean stop makes the next start skip recovery."""
    if directory.clean:
        remove_if_there(f"{directory.path}/{CLEAN_SHUTDOWN}")
        sync_path(directory.path)


def _refuse_doubles(directories: list[DataDirectory]) -> None:
    """Of two folders of one partition of one topic nobody can say which one has the records that count.

    Two topics of one name are another thing: one was deleted while its directory was offline.
    """
    homes: dict[TopicPartition, str] = {}
    for each in directories:
        for partition in each.folders:
            other = homes.setdefault(partition, each.path)
            if other == each.path:
                continue
            ids = {_topic_id(f"{path}/{partition}") for path in (other, each.path)}
            if len(ids) == 1 or None in ids:
                raise UnusableDirectory(
                    f"{partition} is in {other} and in {each.path}; move one of the two folders away"
                )


class LogDirectories:
    """All data folders of one broker, locked. One event loop owns it, as it owns the logs."""

    def __init__(self, directories: list[DataDirectory]) -> None:
        self._directories = {each.path: each for each in directories}
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._doomed: list[str] = []
        self.is_started = False  # all partitions of the image are open
        self.on_offline: Callable[[str, list[TopicPartition]], None] | None = None
        for each in directories:
            self._look_around(each)
        _refuse_doubles(directories)
        for each in directories:
            _unmark(each)

    @classmethod
    def open(cls, paths: Iterable[Path | str], *, node_id: int, cluster_id: str | None = None) -> LogDirectories:
        """Lock the folders, making those that are not there; `UnusableDirectory` when one belongs to somebody else."""
        names = list(dict.fromkeys(os.path.abspath(path) for path in paths))
        locks: dict[str, DirectoryLock] = {}
        try:
            for name in names:
                os.makedirs(name, exist_ok=True)
                locks[name] = DirectoryLock(name)
            metas = claim(names, node_id=node_id, cluster_id=cluster_id)
            return cls([DataDirectory(name, locks[name], metas[name]) for name in names])
        except FileExistsError as failure:
            _release(locks.values())
            raise UnusableDirectory(f"data folder {failure.filename} is not a folder but a file") from failure
        except OSError as failure:
            _release(locks.values())
            where = failure.filename or ", ".join(names)
            raise UnusableDirectory(f"data folder {where}: {failure.strerror}") from failure
        except BaseException:
            _release(locks.values())
            raise

    def _look_around(self, directory: DataDirectory) -> None:
        """Note which partitions are here."""
        for entry in os.scandir(directory.path):
            if not entry.is_dir():
                continue
            if entry.name.endswith(DELETED_FOLDER):
                self._doomed.append(entry.path)
            elif (match := _FOLDER.fullmatch(entry.name)) and not entry.name.endswith(_NOT_PARTITIONS):
                directory.folders.add(TopicPartition(match[1], int(match[2])))
            else:
                LOGGER.warning("%s is no partition's folder; leaving it alone", entry.path)

    @property
    def cluster_id(self) -> str:
        return next(iter(self._directories.values())).meta.cluster_id

    @property
    def paths(self) -> list[Path]:
        return [Path(path) for path in self._directories]

    @property
    def failures(self) -> dict[Path, str]:
        """Directories that are offline, with the reason."""
        return self._in_state(State.OFFLINE)

    @property
    def full(self) -> dict[Path, str]:
        """Directories that had no room the last time."""
        return self._in_state(State.FULL)

    def _in_state(self, state: State) -> dict[Path, str]:
        return {Path(each.path): each.failure for each in self._directories.values() if each.state is state}

    def directory_id(self, path: Path | str) -> str:
        return self._directories[str(path)].meta.directory_id

    def high_watermark(self, partition: TopicPartition) -> int:
        """What was known to be committed before the last stop; 0 when nothing is."""
        return max((each.high_watermarks.get(partition, 0) for each in self._directories.values()), default=0)

    def fail(self, path: Path | str, failure: OSError) -> None:
        """The disk refused something in a directory: one that has failed takes all its partitions offline."""
        directory = self._directories[str(path)]
        reason = failure.strerror or str(failure)
        event = EVENTS.get(judge(failure))
        if event is None:
            LOGGER.warning("log directory %s: %s", path, failure)
        elif directory.advance(event, reason):
            if directory.state is State.FULL:
                LOGGER.error("log directory %s is full: %s", path, reason)
            else:
                self._take_offline(directory, failure)

    def _take_offline(self, directory: DataDirectory, failure: OSError) -> None:
        gone = sorted(directory.folders & self._logs.keys())
        where = f" ({failure.filename})" if failure.filename else ""
        LOGGER.error(
            "log directory %s is offline with its %d partitions until the broker starts again: %s%s",
            directory.path, len(gone), directory.failure, where,
        )  # fmt: skip
        for partition in gone:
            self._logs[partition].offline = directory.failure
        if self.on_offline is not None:
            self.on_offline(directory.path, gone)

    def look_for_room(self) -> None:
        """See whether full directories can be written to again; may be called as often as one likes."""
        for directory in self._directories.values():
            if directory.state is State.FULL and directory.has_room():
                self._written(directory)

    def _written(self, directory: DataDirectory) -> None:
        if directory.advance(Event.WRITTEN):
            LOGGER.info("log directory %s has room again", directory.path)

    def _places(self) -> list[DataDirectory]:
        """Where a new partition may go, best first: the fewest partitions, and last where there was no room before."""
        usable = [each for each in self._directories.values() if each.state is not State.OFFLINE]
        return sorted(usable, key=lambda each: (each.state is State.FULL, len(each.folders)))

    def has_folder(self, partition: TopicPartition) -> bool:
        return any(partition in each.folders for each in self._directories.values())

    def log_for(
        self, partition: TopicPartition, *, topic_id: TopicId, config: TopicConfig, now_ms: int
    ) -> PartitionLog:
        """The partition's log, opened or created. A folder of an older topic of that name makes room."""
        known = self._logs.get(partition)
        if known is not None:
            return known
        homes = [each for each in self._directories.values() if partition in each.folders]
        home = next(iter([each for each in homes if self._is_of(each, partition, topic_id)]), None)
        log = (
            self._open(home, partition, topic_id=topic_id, config=config, now_ms=now_ms)
            if home is not None
            else self._create(partition, topic_id=topic_id, config=config, now_ms=now_ms)
        )
        if home is not None and home.state is State.OFFLINE:  # since this start began
            log.offline = home.failure
        log.on_failure = partial(self.fail, os.path.dirname(log.path))
        self._logs[partition] = log
        return log

    def _is_of(self, home: DataDirectory, partition: TopicPartition, topic_id: TopicId) -> bool:
        path = f"{home.path}/{partition}"
        found = _topic_id(path)
        if found is None:
            write_partition_metadata(path, topic_id)
        if found is None or found == topic_id:
            return True
        aside = f"{home.path}/{stray_folder_name(partition)}"
        LOGGER.warning("%s belongs to another topic of that name; keeping it as %s", path, aside)
        os.rename(path, aside)
        home.folders.discard(partition)
        return False

    def _open(
        self, home: DataDirectory, partition: TopicPartition, *, topic_id: TopicId, config: TopicConfig, now_ms: int
    ) -> PartitionLog:
        path = f"{home.path}/{partition}"
        try:
            return PartitionLog.open(
                path,
                partition=partition,
                topic_id=topic_id,
                config=config,
                clean=home.clean,
                recovery_point=home.recovery_points.get(partition, 0),
                log_start_offset=home.starts.get(partition, 0),
                now_ms=now_ms,
            )
        except (OSError, ValueError) as wrong:
            raise UnusableDirectory(f"{path} can't be opened: {wrong}") from wrong

    def _create(
        self, partition: TopicPartition, *, topic_id: TopicId, config: TopicConfig, now_ms: int
    ) -> PartitionLog:
        """In the folder with the fewest partitions, or the next one when that cannot be written to."""
        for home in self._places():
            path = f"{home.path}/{partition}"
            try:
                log = PartitionLog.create(path, partition=partition, topic_id=topic_id, config=config, now_ms=now_ms)
            except FileExistsError:
                LOGGER.error("%s is in the way of a new partition; move it away", path)
                continue
            except OSError as failure:
                shutil.rmtree(path, ignore_errors=True)  # half made, it would be in the way of the next try
                self.fail(home.path, failure)
                continue
            self._written(home)
            home.folders.add(partition)
            return log
        raise NoPlace(f"no data folder can be written to: {partition} has no place")

    def delete(self, log: PartitionLog) -> None:
        """Free the partition's name at once and its disk soon; a folder that can't be renamed is no topic's then."""
        home = self._directories[os.path.dirname(log.path)]
        self._logs.pop(log.partition, None)
        if home.state is State.OFFLINE:  # the next start finds the folder of a topic that is gone
            home.folders.discard(log.partition)
            return
        try:
            self._doomed.append(log.delete())
            home.folders.discard(log.partition)
        except OSError as failure:
            LOGGER.error("%s could not be deleted: %s", log.path, failure.strerror)
            self.fail(home.path, failure)

    def unclean(self) -> list[TopicPartition]:
        """Partitions in directories that the last broker did not leave cleanly: a power failure may have cut them."""
        return sorted(partition for each in self._directories.values() if not each.clean for partition in each.folders)

    def unclaimed(self) -> dict[TopicPartition, TopicId | None]:
        """Partitions that have a folder here but that nobody asked for, with the id of their topic if they tell it."""
        return {
            partition: _topic_id(f"{each.path}/{partition}")
            for each in self._directories.values()
            for partition in sorted(each.folders)
            if partition not in self._logs
        }

    def removals_due(self, now_ms: int) -> Callable[[], None] | None:
        """What deletes the files whose time has come, to be called in any thread; None when there are none."""
        paths, self._doomed = self._doomed, []
        for log in self._logs.values():
            if log.removals.pending:
                paths += log.removals.due(now_ms)
        return partial(remove, paths) if paths else None

    def checkpoints(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> Checkpoints:
        """Recovery points and log starts of all folders, and the high watermarks if they are given."""
        files: list[tuple[str, str, Mapping[TopicPartition, int]]] = []
        for path, directory in self._directories.items():
            if directory.state is State.OFFLINE:
                continue
            logs = [log for log in self._logs.values() if os.path.dirname(log.path) == path]
            points = {log.partition: int(log.recovery_point) for log in logs}
            starts = {
                log.partition: int(log.log_start_offset)
                for log in logs
                if log.log_start_offset > log.segments[0].base_offset
            }
            files += [(path, RECOVERY_POINTS, points), (path, LOG_START_OFFSETS, starts)]
            if high_watermarks is not None:
                known = {log.partition: high_watermarks.get(log.partition, 0) for log in logs}
                files.append((path, HIGH_WATERMARKS, known))
        return Checkpoints(tuple(files))

    def close(
        self, *, broker_epoch: int = NO_BROKER_EPOCH, high_watermarks: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Stop cleanly. A folder with a log that could not be closed is recovered at the next start."""
        if high_watermarks is None:
            high_watermarks = {partition: int(log.end_offset) for partition, log in self._logs.items()}
        with ThreadPoolExecutor(CLOSING_THREADS, thread_name_prefix="moldau-close") as pool:
            logs = [log for log in self._logs.values() if log.offline is None]
            unclean = {os.path.dirname(log.path) for log in pool.map(_close, logs) if log is not None}
        offsets = self.checkpoints(high_watermarks)
        for path, directory in self._directories.items():
            if directory.state is State.OFFLINE:
                continue
            try:
                offsets.write(path)
                if path not in unclean:
                    write_clean_shutdown(path, broker_epoch)
            except OSError as failure:
                LOGGER.error("log directory %s: %s; the next start recovers its partitions", path, failure)
        _release(each.lock for each in self._directories.values())

    def end(self) -> None:
        """Stop cleanly, or give up a start that failed before all partitions were open.

        Then what was not opened is as the last broker left it: neither recovered nor in any checkpoint of ours. A mark
        of a clean stop would keep the next start from recovering it.
        """
        if self.is_started:
            self.close()
            return
        logs = [log for log in self._logs.values() if log.offline is None]
        unclean = {os.path.dirname(log.path) for log in map(_close, logs) if log is not None}
        for path, directory in self._directories.items():
            if directory.clean and directory.state is not State.OFFLINE and path not in unclean:
                with contextlib.suppress(OSError):  # then the next start recovers what it need not
                    write_clean_shutdown(path, NO_BROKER_EPOCH)
        _release(each.lock for each in self._directories.values())


def _topic_id(path: str) -> TopicId | None:
    try:
        return read_partition_metadata(path)
    except CorruptCheckpoint as wrong:
        raise UnusableDirectory(str(wrong)) from wrong


def _close(log: PartitionLog) -> PartitionLog | None:
    """The log, if it could not be closed."""
    log.on_failure = None  # it is a thread that closes, and the directory's state no longer matters
    try:
        log.close()
    except (LogError, OSError) as failure:
        LOGGER.error("%s could not be closed: %s", log.partition, failure)
        return log
    return None


def _release(locks: Iterable[DirectoryLock]) -> None:
    for lock in locks:
        lock.release()

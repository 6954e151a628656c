"""The log directories of a broker: whose they are, which partitions are in them, and where new ones go."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
from collections.abc import Callable, Iterable, Set
from functools import partial
from pathlib import Path
from threading import Lock

from moldau.core.config.topic import TopicConfig
from moldau.core.ids import TopicId, TopicPartition
from moldau.log.checkpoints import CLEAN_SHUTDOWN, write_clean_shutdown
from moldau.log.directories.closing import close_all
from moldau.log.directories.doubles import settle_doubles
from moldau.log.directories.future_log import promote
from moldau.log.directories.lock import DirectoryLock
from moldau.log.directories.log_directory import LogDirectory
from moldau.log.directories.meta_properties import NoPlace, UnusableDirectory, claim
from moldau.log.directories.offset_checkpoints import Checkpoints, lower_offsets
from moldau.log.directories.opening import Home, LogJob
from moldau.log.directories.state import EVENTS, Event, State
from moldau.log.failure import judge
from moldau.log.files import remove_if_there, sync_path
from moldau.log.maintenance.removal import DELETED_FOLDER, FUTURE_FOLDER, STRAY_FOLDER, remove, set_aside
from moldau.log.open_files import OpenFiles
from moldau.log.partition_log import PartitionLog

LOGGER = logging.getLogger(__name__)

NO_BROKER_EPOCH = -1
SECURITY_FOLDER = "security"  # certificates and passwords of a start with --secure
_FOLDER = re.compile(r"(.+)-(0|[1-9]\d{0,9})")
_NOT_PARTITIONS = (DELETED_FOLDER, STRAY_FOLDER, FUTURE_FOLDER)


def _unmark(directory: LogDirectory) -> None:
    """From now on only a clean stop makes the next start skip recovery."""
    if directory.clean:
        remove_if_there(f"{directory.path}/{CLEAN_SHUTDOWN}")
        sync_path(directory.path)


class LogDirectories:
    """All log directories of one broker, locked. One event loop owns it, as it owns the logs."""

    def __init__(self, directories: list[LogDirectory]) -> None:
        self._directories = {each.path: each for each in directories}
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._doomed: list[str] = []
        self.checkpointing = Lock()  # held by threads that write checkpoints
        self.open_files = OpenFiles()
        self.is_started = False  # all partitions of the image are open
        self.may_have_holes = False  # power was lost, and others have what is missing
        self.on_offline: Callable[[str, list[TopicPartition]], None] | None = None
        self.on_room: Callable[[], None] | None = None  # a directory is full, and still is so, or has room again
        self.high_watermark_of: Callable[[TopicPartition], int | None] = lambda _: None
        for each in directories:
            self._look_around(each)
        self._doomed += settle_doubles(directories)
        for each in directories:
            _unmark(each)

    @classmethod
    def open(cls, paths: Iterable[Path | str], *, node_id: int, cluster_id: str | None = None) -> LogDirectories:
        """Lock them, making those that are not there; `UnusableDirectory` when one belongs to somebody else."""
        names = list(dict.fromkeys(os.path.abspath(path) for path in paths))
        locks: dict[str, DirectoryLock] = {}
        try:
            for name in names:
                os.makedirs(name, exist_ok=True)
                locks[name] = DirectoryLock(name)
            metas = claim(names, node_id=node_id, cluster_id=cluster_id)
            return cls([LogDirectory(name, locks[name], metas[name]) for name in names])
        except FileExistsError as failure:
            _release(locks.values())
            raise UnusableDirectory(f"log directory {failure.filename} is not a directory but a file") from failure
        except OSError as failure:
            _release(locks.values())
            where = failure.filename or ", ".join(names)
            raise UnusableDirectory(f"log directory {where}: {failure.strerror}{_advice(failure)}") from failure
        except BaseException:
            _release(locks.values())
            raise

    def _look_around(self, directory: LogDirectory) -> None:
        """Note which partitions are here."""
        for entry in os.scandir(directory.path):
            if not entry.is_dir():
                continue
            if entry.name.endswith((DELETED_FOLDER, FUTURE_FOLDER)):  # a move that did not end is begun anew, if at all
                self._doomed.append(entry.path)
            elif (match := _FOLDER.fullmatch(entry.name)) and not entry.name.endswith(_NOT_PARTITIONS):
                directory.folders.add(TopicPartition(match[1], int(match[2])))
            elif entry.name != SECURITY_FOLDER:
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

    def fail(self, path: Path | str, failure: OSError) -> None:
        """The disk refused something in a directory: one that has failed takes all its partitions offline."""
        directory = self._directories[str(path)]
        reason = failure.strerror or str(failure)
        event = EVENTS.get(judge(failure))
        if event is None:
            directory.passing.say(f"log directory {path}: {failure}")
        elif directory.advance(event, reason):
            if directory.state is State.FULL:
                LOGGER.error("log directory %s is full: %s", path, reason)
                self._tell_of_room()
            else:
                self._take_offline(directory, failure)

    def _take_offline(self, directory: LogDirectory, failure: OSError) -> None:
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

    def tell_of_failures(self) -> None:
        """Of all that there were, once more."""
        for directory in self._directories.values():
            if directory.state is State.OFFLINE and self.on_offline is not None:
                self.on_offline(directory.path, self.partitions_in(directory.path))
            elif directory.state is State.FULL:
                self._tell_of_room()

    def look_for_room(self) -> None:
        """See whether full directories can be written to again; may be called as often as one likes."""
        for directory in self._directories.values():
            if directory.state is not State.FULL:
                continue
            if directory.has_room():
                self._written(directory)
            else:
                self._tell_of_room()

    def _written(self, directory: LogDirectory) -> None:
        if directory.advance(Event.WRITTEN):
            LOGGER.info("log directory %s has room again", directory.path)
            self._tell_of_room()

    def _tell_of_room(self) -> None:
        if self.on_room is not None:
            self.on_room()

    def partitions_in(self, path: Path | str) -> list[TopicPartition]:
        return sorted(self._directories[str(path)].folders & self._logs.keys())

    def _places(self) -> list[LogDirectory]:
        """Where a new partition may go, best first: the fewest partitions, and last where there was no room before."""
        usable = [each for each in self._directories.values() if each.state is not State.OFFLINE]
        return sorted(usable, key=lambda each: (each.state is State.FULL, len(each.folders)))

    def has_folder(self, partition: TopicPartition, *, among: Set[str] | None = None) -> bool:
        """In any directory, or `among` those with these ids."""
        return any(
            partition in each.folders and (among is None or each.meta.directory_id in among)
            for each in self._directories.values()
        )

    def prepare(self, partition: TopicPartition, *, topic_id: TopicId, config: TopicConfig, now_ms: int) -> LogJob:
        """What it takes to open or create a log. Run it in any thread, then `settle` it, whatever came of it."""
        homes = [
            Home(
                each.path,
                each.clean,
                recovery_point=each.recovery_points.get(partition, 0),
                log_start_offset=each.starts.get(partition, 0),
                high_watermark=each.high_watermarks.get(partition, 0),
                clean_to=each.clean_to.get(partition),
                may_have_holes=self.may_have_holes,
            )
            for each in self._directories.values()
            if partition in each.folders
        ]
        places = [each.path for each in self._places()]
        job = LogJob(partition, topic_id, config, now_ms, homes, places, self.checkpointing, self._logs.get(partition))
        if not homes and places:
            self._directories[places[0]].folders.add(partition)  # so that the next one goes elsewhere
            job.reserved = places[0]
        return job

    def settle(self, job: LogJob) -> PartitionLog:
        """The job's log, from now on among the others; `UnusableDirectory` when there is none."""
        for path in (*job.strayed, *([job.reserved] if job.reserved else [])):
            self._directories[path].folders.discard(job.partition)
        for path, failure in job.refusals:
            self.fail(path, failure)
        if job.log is None:
            raise job.failure or NoPlace(f"{job.partition} has no place")
        path = os.path.dirname(job.log.path)
        home = self._directories[path]
        if job.is_new:
            if all(refused != path for refused, _ in job.refusals):
                self._written(home)
            home.folders.add(job.partition)
            home.forget_offsets(job.partition)
        if home.state is State.OFFLINE:  # since the job was prepared
            job.log.offline = home.failure
        if job.partition not in self._logs:
            self._adopt(job.log, path)
        return job.log

    def _adopt(self, log: PartitionLog, path: str) -> None:
        log.on_failure = partial(self.fail, path)
        log.on_gone_back = partial(lower_offsets, path, lock=self.checkpointing, high_watermark=self.high_watermark)
        for segment in log.segments:
            segment.keeper = self.open_files
        self._logs[log.partition] = log

    def replace(self, log: PartitionLog, future: PartitionLog) -> None:
        """A log in another directory has all that this one has, and takes its place; if that fails nothing changes."""
        promote(future, log)
        path = os.path.dirname(future.path)
        self.delete(log)
        self._directories[path].folders.add(future.partition)
        self._directories[path].forget_offsets(future.partition)
        self._adopt(future, path)

    def discard(self, future: PartitionLog) -> None:
        """A log that takes no other's place is deleted soon."""
        future.is_deleted = True
        for segment in future.segments:
            segment.forget()
        self.doom(future.path)

    def delete(self, log: PartitionLog) -> None:
        """Free the partition's name at once and its disk soon; a folder that can't be renamed is no topic's then."""
        self.retire(log)
        if log.offline is not None:  # the next start finds the folder of a topic that is gone
            return
        try:
            self.doom(set_aside(log.path, log.partition, log.topic_id))
        except OSError as failure:
            self.not_set_aside(log, failure)

    def retire(self, log: PartitionLog) -> None:
        """Forget a log whose topic is gone. Its folder is `set_aside` next, in any thread, and then `doom`ed."""
        if self._logs.get(log.partition) is log:  # else it is retired already, and the name may be another's
            del self._logs[log.partition]
            self._directories[os.path.dirname(log.path)].folders.discard(log.partition)
            log.is_deleted = True
            for segment in log.segments:
                segment.forget()

    def doom(self, path: str | None) -> None:
        """A folder that was set aside is deleted soon; None is one that was gone already."""
        if path is not None:
            self._doomed.append(path)

    def not_set_aside(self, log: PartitionLog, failure: OSError) -> None:
        LOGGER.error("%s could not be deleted: %s", log.path, failure.strerror)
        self.fail(os.path.dirname(log.path), failure)

    def unclean(self) -> list[TopicPartition]:
        """Partitions in directories that the last broker did not leave cleanly: a power failure may have cut them."""
        return sorted(partition for each in self._directories.values() if not each.clean for partition in each.folders)

    def unclaimed(self) -> dict[TopicPartition, str]:
        """Partitions that have a folder here but that nobody asked for, with its path."""
        return {
            partition: f"{each.path}/{partition}"
            for each in self._directories.values()
            for partition in sorted(each.folders)
            if partition not in self._logs
        }

    def disown(self, partition: TopicPartition) -> bool:
        """No topic has this partition: its folder gets another name, so that no later one begins with its records."""
        for each in self._directories.values():
            if partition in each.folders and (failure := each.disown(partition)) is not None:
                self.fail(each.path, failure)
        return not self.has_folder(partition)

    def removals_due(self, now_ms: int) -> Callable[[], None] | None:
        """What deletes the files whose time has come, to be called in any thread; None when there are none."""
        paths, self._doomed = self._doomed, []
        for log in self._logs.values():
            if log.removals.pending:
                paths += log.removals.due(now_ms)
        return partial(remove, paths) if paths else None

    def logs(self) -> list[PartitionLog]:
        return [*self._logs.values()]

    @property
    def usable_paths(self) -> list[str]:
        return [each.path for each in self._directories.values() if each.state is not State.OFFLINE]

    def high_watermark(self, log: PartitionLog) -> int:
        """What is committed; of a partition that serves nobody, what was when the directory was opened."""
        known = self.high_watermark_of(log.partition)
        if known is None:
            known = self._directories[os.path.dirname(log.path)].high_watermarks.get(log.partition, 0)
        return known

    def checkpoints(self) -> Checkpoints:
        """Recovery points, log starts and high watermarks of all log directories."""
        pending = Checkpoints.of_high_watermarks(self.usable_paths, self.checkpointing, self.high_watermark)
        pending.files.extend(Checkpoints.of_directories(self.usable_paths, self.checkpointing).files)
        for log in self._logs.values():
            pending.note(log)
        return pending

    def close(self, *, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Stop cleanly. A log directory with a log that could not be closed is recovered at the next start."""
        unclean = close_all(log for log in self._logs.values() if log.offline is None)
        offsets = self.checkpoints()
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
        clean = [each.path for each in self._directories.values() if each.clean and each.state is not State.OFFLINE]
        unclean = close_all(log for log in self._logs.values() if os.path.dirname(log.path) in clean)
        for path in clean:
            if path not in unclean:
                with contextlib.suppress(OSError):  # then the next start recovers what it need not
                    write_clean_shutdown(path, NO_BROKER_EPOCH)
        _release(each.lock for each in self._directories.values())


def _release(locks: Iterable[DirectoryLock]) -> None:
    for lock in locks:
        lock.release()


def _advice(failure: OSError) -> str:
    is_refused = failure.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    return "; choose a directory that this user may write to (log.dirs)" if is_refused else ""

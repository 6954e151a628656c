"""How much of what a broker acknowledged its logs still hold: it tells the cluster when it comes back."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Set
from pathlib import Path

from moldau.controller.image import ClusterImage, TopicImage
from moldau.core.ids import TopicId, TopicPartition
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.files import read_whole, replace

LOGGER = logging.getLogger(__name__)

BOOT_FILE = "moldau-boot-id"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
CUT = b"cut"  # instead of a boot: the logs lack records that the cluster relies on


def has_whole_logs(directories: LogDirectories) -> bool:
    """Whether all that was appended is in the logs: after a clean stop, and as long as the machine has run on.

    What a process wrote before it was killed is the kernel's, which keeps it until the machine ends, unless the disk
    refuses it. Logs that a start found cut are so for the next ones, too, until the cluster was told: the first may
    have ended before that.
    """
    noted = _noted(directories)
    return CUT not in noted and (not directories.unclean() or noted == {_boot_id()} != {b""})


def lost_logs(
    image: ClusterImage, directories: LogDirectories, *, broker_id: int, are_accepted: bool
) -> dict[TopicId, tuple[int, ...]]:
    """Partitions whose logs went with a log directory that this broker had, as with a new disk.

    With all directories there, a partition without a folder is one that a crash kept from being made. What no other
    broker has may begin anew if that `are_accepted`. A folder in a directory that the cluster does not know yet was
    made by a start before this one, which ended before the cluster was told.
    """
    here = {directories.directory_id(path) for path in directories.paths}
    registered = image.brokers.get(broker_id)
    if registered is None or registered.directories.keys() <= here:
        return {}
    known = frozenset(registered.directories)
    found = {
        topic.id: indexes
        for topic in image.topics.values()
        if (indexes := tuple(_without_folder(topic, directories, known, broker_id, replicas_min=1 + are_accepted)))
    }
    if found:
        count = sum(map(len, found.values()))
        LOGGER.warning("a log directory was replaced, and %d partitions with it; others have to have them", count)
    return found


def _without_folder(
    topic: TopicImage, directories: LogDirectories, known: Set[str], broker_id: int, *, replicas_min: int
) -> Iterator[int]:
    for index, state in enumerate(topic.partitions):
        is_here = broker_id in state.replicas and len(state.replicas) >= replicas_min
        if is_here and not directories.has_folder(TopicPartition(topic.name, index), among=known):
            yield index


def note_boot(directories: LogDirectories, *, are_cut: bool = False) -> None:
    """For the next start: the machine's present one, unless logs `are_cut` and the cluster does not know it yet.

    Logs that are cut are opened as such: what comes after a hole in one is given up, for others have all of it.
    """
    directories.may_have_holes = are_cut
    if are_cut or directories.failures:
        _note_cut(directories)
        return
    for path in directories.paths:
        with contextlib.suppress(OSError):  # without the note, the next start after a crash trusts its logs less
            replace(f"{path}/{BOOT_FILE}", _boot_id(), sync=False)


def note_failure(directories: LogDirectories) -> None:
    """For the next start, after a log directory failed: a kernel that could not write a page does not keep it."""
    _note_cut(directories)


def _note_cut(directories: LogDirectories) -> None:
    for path in directories.usable_paths:
        with contextlib.suppress(OSError):
            replace(f"{path}/{BOOT_FILE}", CUT, sync=True)


def _noted(directories: LogDirectories) -> set[bytes]:
    return {read_whole(f"{path}/{BOOT_FILE}") or b"" for path in directories.paths}


def _boot_id() -> bytes:
    try:
        return BOOT_ID.read_bytes()
    except OSError:
        return b""

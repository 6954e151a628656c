"""Two folders of one partition: a crash left them while a replica moved, or nobody knows which one counts."""

from __future__ import annotations

import os
from collections.abc import Iterable

from moldau.core.ids import TopicPartition
from moldau.log.directories.future_log import is_moved_here
from moldau.log.directories.log_directory import LogDirectory
from moldau.log.directories.meta_properties import UnusableDirectory
from moldau.log.directories.opening import topic_id_of
from moldau.log.maintenance.removal import deleted_folder_name


def settle_doubles(directories: Iterable[LogDirectory]) -> list[str]:
    """Folders to delete, for another has taken their place; `UnusableDirectory` when none has.

    Two topics of one name are another thing: one was deleted while its directory was offline.
    """
    homes: dict[TopicPartition, LogDirectory] = {}
    doomed: list[str] = []
    for each in directories:
        for partition in sorted(each.folders):
            other = homes.setdefault(partition, each)
            if other is each or not _is_one_topic(paths := [f"{home.path}/{partition}" for home in (other, each)]):
                continue
            moved = [is_moved_here(path) for path in paths]
            if sum(moved) != 1:
                raise UnusableDirectory(
                    f"{partition} is in {other.path} and in {each.path}; move one of the two folders away"
                )
            left, homes[partition] = (other, each) if moved[1] else (each, other)
            aside = f"{left.path}/{deleted_folder_name(partition)}"
            os.rename(f"{left.path}/{partition}", aside)
            left.folders.discard(partition)
            doomed.append(aside)
    return doomed


def _is_one_topic(paths: Iterable[str]) -> bool:
    ids = {topic_id_of(path) for path in paths}
    return len(ids) == 1 or None in ids

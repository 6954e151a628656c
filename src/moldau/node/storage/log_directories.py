"""What a start looks at before it trusts its log directories: whose they are, and whether one of them was forgotten."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from moldau.controller.image import ClusterImage
from moldau.controller.runtime import Controller
from moldau.core.config.broker import BrokerConfig
from moldau.core.ids import TopicPartition
from moldau.core.topic_names import CLUSTER_METADATA_TOPIC
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.meta_properties import UnusableDirectory, read_meta_properties
from moldau.log.files import read_whole, remove_if_there, replace
from moldau.log.maintenance.removal import STRAY_FOLDER
from moldau.store.sqlite import FILE_NAME as METADATA_FILE
from moldau.store.sqlite import LOCATION_FILE, SqliteStore

LOGGER = logging.getLogger(__name__)

NAMED_MAX = 10


async def open_log_dirs(
    config: BrokerConfig,
    *,
    accept_lost_log_dirs: bool,
    cluster_id: str | None = None,
    shared: Path | None = None,
) -> LogDirectories:
    """`cluster_id` is for a cluster that begins here; data that is there has an id already.

    `shared` is the folder of metadata that several brokers have in common.
    """
    log_dirs = [Path(each) for each in config.log_dirs]
    if shared is None:
        _refuse_one_of_several(log_dirs)
    if not accept_lost_log_dirs:
        _refuse_lost_metadata(log_dirs, shared)
    known = await _stored_cluster_id(log_dirs, shared)
    if known is None and not any(read_meta_properties(str(log_dir)) for log_dir in log_dirs):
        known = cluster_id
    opened = LogDirectories.open(log_dirs, node_id=config.node_id, cluster_id=known)
    try:
        if not accept_lost_log_dirs:  # until the directories were locked, the metadata could be moved away
            _refuse_lost_metadata(log_dirs, shared)
    except UnusableDirectory:
        opened.end()
        raise
    if cluster_id not in (None, opened.cluster_id):
        LOGGER.warning("CLUSTER_ID=%s is not used: the data belongs to cluster %s", cluster_id, opened.cluster_id)
    return opened


def _metadata_path(log_dirs: Sequence[Path], shared: Path | None) -> Path:
    """Where it is, or else in the first one: `log.dirs` in another order must not begin a new cluster."""
    if shared is not None:
        return shared / METADATA_FILE
    paths = dict.fromkeys(log_dir.resolve() / METADATA_FILE for log_dir in log_dirs)
    found = [path for path in paths if path.exists()]
    if len(found) > 1:
        raise UnusableDirectory(f"{found[0]} and {found[1]} are two brokers' metadata; move the wrong one away")
    return found[0] if found else log_dirs[0] / METADATA_FILE


def _refuse_one_of_several(log_dirs: Sequence[Path]) -> None:
    """Its metadata is not lost but beside it: a cluster of its own would have the id and the records of the other."""
    if _metadata_path(log_dirs, None).exists():
        return
    for log_dir in log_dirs:
        noted = Path((read_whole(f"{log_dir}/{LOCATION_FILE}") or b"").decode("utf-8", "replace").strip())
        if log_dir.resolve().parent == noted.parent and noted.exists():
            raise UnusableDirectory(
                f"{log_dir} is that of one of several brokers, and their metadata is {noted}; "
                f"start all of them with --brokers and --data-dir {noted.parent}"
            )


def _refuse_lost_metadata(log_dirs: Sequence[Path], shared: Path | None) -> None:
    """Without the one that has the metadata, the others would be taken for those of a broker that had none."""
    if _metadata_path(log_dirs, shared).exists():
        return
    for log_dir in log_dirs:
        noted = (read_whole(f"{log_dir}/{LOCATION_FILE}") or b"").decode("utf-8", "replace").strip()
        service, at, connect = noted.partition(" at ")
        if at:
            raise UnusableDirectory(
                f"the metadata of {log_dir} is in {noted}; start with {service.lower()}.connect={connect}"
            )
        if noted:
            raise UnusableDirectory(
                f"log.dirs has no metadata; that of {log_dir} was {noted}; "
                "bring its directory back, or lose what is in it for good with --accept-lost-log-dirs"
            )


async def open_metadata(config: BrokerConfig, log_dirs: Sequence[Path], shared: Path | None = None) -> SqliteStore:
    """The store, once it is there and each other log directory says where."""
    path = _metadata_path(log_dirs, shared)
    store = await SqliteStore.open(
        path,
        session_timeout_ms=config.int("broker.session.timeout.ms"),
        heartbeat_interval_ms=config.int("broker.heartbeat.interval.ms"),
    )
    _note_location(path.resolve(), log_dirs)
    return store


def _note_location(location: Path, log_dirs: Sequence[Path]) -> None:
    for log_dir in log_dirs:
        path, text = f"{log_dir}/{LOCATION_FILE}", f"{location}\n".encode()
        if log_dir.resolve() == location.parent:
            remove_if_there(path)
        elif read_whole(path) != text:
            replace(path, text, sync=True)


async def _stored_cluster_id(log_dirs: Sequence[Path], shared: Path | None) -> str | None:
    """The cluster's id from the metadata, where no log directory has `meta.properties`; else they say it."""
    path = _metadata_path(log_dirs, shared)
    if not path.exists() or any(read_meta_properties(str(log_dir)) for log_dir in log_dirs):
        return None
    store = await SqliteStore.open(path)
    try:
        cluster_id = await Controller.stored_cluster_id(store)
    finally:
        await store.close()
    if cluster_id and shared is None:
        LOGGER.warning("meta.properties is missing beside %s; it is made anew for cluster %s", path, cluster_id)
    return cluster_id or None


def refuse_lost_log_dirs(image: ClusterImage, directories: LogDirectories, *, broker_id: int) -> None:
    """A broker that lacks a log directory it had would serve the partitions in it as empty ones."""
    here = {directories.directory_id(path) for path in directories.paths}
    registered = image.brokers.get(broker_id)
    lost = [
        f"{path} (directory.id {directory_id})"
        for directory_id, path in (registered.directories if registered else {}).items()
        if directory_id not in here
    ]
    missing = _without_folder(image, directories, broker_id)
    if lost and missing:
        raise UnusableDirectory(
            f"log.dirs lacks what was {_enumerated(lost)}, and {len(missing)} partitions have no folder "
            f"({_enumerated(missing)}); bring it back, or lose its records for good with --accept-lost-log-dirs"
        )


def report_missing(image: ClusterImage, directories: LogDirectories, *, broker_id: int) -> None:
    """As a crash between a topic's creation and the making of its folders leaves it, and as no one expects it else."""
    missing = _without_folder(image, directories, broker_id)
    if missing:
        LOGGER.warning("%d partitions have no folder and begin empty: %s", len(missing), _enumerated(missing))


def set_strays_aside(image: ClusterImage, directories: LogDirectories, *, broker_id: int) -> None:
    """What a crash between the deletion of a topic and that of its folders left, for nobody would ever delete it, and
    what other brokers have since."""
    strays = [
        partition
        for partition in directories.unclaimed()
        if partition.topic != CLUSTER_METADATA_TOPIC
        and not _is_here(image, partition, broker_id)
        and directories.disown(partition)
    ]
    if strays:
        LOGGER.warning(
            "%d folders belong to no topic that this broker has, and are kept with names that end in %s: %s",
            len(strays), STRAY_FOLDER, _enumerated([*map(str, strays)]),
        )  # fmt: skip


def _is_here(image: ClusterImage, partition: TopicPartition, broker_id: int) -> bool:
    return image.has_partition(partition) and (
        broker_id in image.topics[partition.topic].partitions[partition.partition].replicas
    )


def _without_folder(image: ClusterImage, directories: LogDirectories, broker_id: int) -> list[str]:
    return [
        str(TopicPartition(topic.name, index))
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if broker_id in state.replicas and not directories.has_folder(TopicPartition(topic.name, index))
    ]


def _enumerated(names: list[str]) -> str:
    return ", ".join(names[:NAMED_MAX]) + (", ..." if names[NAMED_MAX:] else "")

"""Several brokers on one machine: a folder for each below that of their common metadata, and how each is started."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

METADATA_FILES = "moldau-metadata."
METADATA_FILE = "moldau-metadata.db"
LOCATION_FILE = "moldau-metadata.location"
META_PROPERTIES = "meta.properties"
LOCK_FILE = ".lock"
SECURITY_FOLDER = "security"
MOVING = ".moving"
CLUSTER_ID = re.compile(r"^cluster\.id=(\S+)$", re.MULTILINE)
BROKER_FOLDER = re.compile(r"broker-(0|[1-9]\d*)")
NODE_ID = re.compile(r"^(?:node|broker)\.id=(\d+)$", re.MULTILINE)


class Member(NamedTuple):
    broker_id: int
    folder: Path
    """Its first log directory."""
    arguments: list[str]
    """Of `moldau start`, beside what all of them have."""


def members(data_dirs: Sequence[Path], broker_ids: Sequence[int], *, has_service: bool) -> list[Member]:
    """What each broker of a cluster on this machine is started with. Data of a single broker is taken over.

    Each has a log directory in each of the folders; the metadata is in the first, or where a single broker had it, or
    in a service if there `has_service`.
    """
    refuse_metadata_elsewhere(data_dirs, has_service=has_service)
    for data_dir in data_dirs:
        data_dir.mkdir(parents=True, exist_ok=True)
        make_room_for_others(data_dir)
    home = next((each for each in data_dirs if (each / METADATA_FILE).exists()), data_dirs[0])
    cluster_id = next(filter(None, map(cluster_id_of, data_dirs)), None) or new_cluster_id()
    found = []
    for broker_id in broker_ids:
        folders = [data_dir / f"broker-{broker_id}" for data_dir in data_dirs]
        arguments = ["--member-of", os.fspath(home), "--members", str(len(broker_ids)), "--cluster-id", cluster_id]
        log_dirs = ",".join(map(os.fspath, folders))
        for key, value in (("node.id", broker_id), ("broker.id", broker_id), ("log.dirs", log_dirs)):
            arguments += ["--override", f"{key}={value}"]
        found.append(Member(broker_id, folders[0], arguments))
    return found


def cluster_id_of(data_dir: Path) -> str | None:
    """The cluster's id as its brokers noted it; None where none has started yet."""
    for path in sorted(data_dir.glob(f"broker-*/{META_PROPERTIES}")):
        match = CLUSTER_ID.search(path.read_text("iso-8859-1"))
        if match is not None:
            return match[1]
    return None


def new_cluster_id() -> str:
    from moldau.core.ids import format_uuid, random_uuid

    return format_uuid(random_uuid())


def broker_ids_of(data_dir: Path) -> list[int]:
    """The brokers that have a folder of their own there, in order; none where the data is that of one broker alone."""
    folders = [path.parent.name for path in data_dir.glob(f"broker-*/{META_PROPERTIES}")]
    return sorted(int(name.removeprefix("broker-")) for name in folders if BROKER_FOLDER.fullmatch(name))


def single_broker_id(data_dir: Path) -> int | None:
    """Whose data it is, if it is that of one broker alone."""
    if broker_ids_of(data_dir):
        return None
    for folder in (data_dir, data_dir / MOVING):
        path = folder / META_PROPERTIES
        match = NODE_ID.search(path.read_text("iso-8859-1")) if path.exists() else None
        if match is not None:
            return int(match[1])
    return None


def first_broker_id(data_dirs: Sequence[Path]) -> int | None:
    """The lowest id of the brokers whose data is there; None where there is none."""
    known = [single for data_dir in data_dirs if (single := single_broker_id(data_dir)) is not None]
    for data_dir in data_dirs:
        known += broker_ids_of(data_dir)
    return min(known, default=None)


def refuse_metadata_elsewhere(data_dirs: Sequence[Path], *, has_service: bool) -> None:
    """Before anything is moved: with metadata that begins here, all that a broker has would be nobody's."""
    from moldau.log.directories.meta_properties import UnusableDirectory

    if any((data_dir / METADATA_FILE).exists() for data_dir in data_dirs):
        return
    for data_dir in data_dirs:
        path = data_dir / LOCATION_FILE
        noted = path.read_text("utf-8", "replace").strip() if path.exists() else ""
        service, at, connect = noted.partition(" at ")
        if not noted or single_broker_id(data_dir) is None or (at and has_service):
            continue
        advice = f"start with {service.lower()}.connect={connect}" if at else "start it with the folders that it had"
        raise UnusableDirectory(f"{data_dir} is the data of one broker, and its metadata is in {noted}; {advice}")


def make_room_for_others(data_dir: Path) -> None:
    """Move the data of a single broker into a folder of its own; what a crash interrupted is finished.

    The metadata and what secures the cluster stay, for the others will share them. `meta.properties` says whose data
    it is, so it goes last. A topic may be named `broker`, whose folders look like those of brokers: all of it moves in
    one place before that is named.
    """
    broker_id = single_broker_id(data_dir)
    if broker_id is None:
        return
    from moldau.log.directories.lock import DirectoryLock

    lock = DirectoryLock(os.fspath(data_dir))
    try:
        moving = data_dir / MOVING
        moving.mkdir(exist_ok=True)
        stays = (MOVING, LOCK_FILE, META_PROPERTIES, SECURITY_FOLDER)
        for entry in os.listdir(data_dir):
            if entry not in stays and (entry == LOCATION_FILE or not entry.startswith(METADATA_FILES)):
                os.rename(data_dir / entry, moving / entry)
        if (data_dir / META_PROPERTIES).exists():
            os.rename(data_dir / META_PROPERTIES, moving / META_PROPERTIES)
        os.rename(moving, data_dir / f"broker-{broker_id}")
    finally:
        lock.release()

"""`meta.properties`: whose data a log directory holds, so that no broker serves another's by mistake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.core.ids import format_uuid, random_uuid
from moldau.log.files import read_whole, replace

FILE_NAME = "meta.properties"
VERSION = 1
ADVICE = "restore it from a backup, or move it away: a start makes it anew from the metadata beside it"


class UnusableDirectory(Exception):
    """A log directory that this broker must not or cannot use; the message says which one, and why."""


class NoPlace(UnusableDirectory):
    """No log directory takes a new partition now; with room on the disk again one will."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    cluster_id: str
    node_id: int
    directory_id: str


def read_meta_properties(directory: str) -> MetaProperties | None:
    """None for a log directory that belongs to nobody yet."""
    path = f"{directory}/{FILE_NAME}"
    try:
        data = read_whole(path)
    except OSError as wrong:
        raise UnusableDirectory(f"{path} can't be read: {wrong.strerror}; {ADVICE}") from wrong
    if data is None:
        return None
    pairs: dict[str, str] = {}
    for line in data.decode("iso-8859-1").splitlines():
        if line.strip() and line.lstrip()[0] not in "#!":
            key, _, value = line.partition("=")
            pairs[key.strip()] = value.strip()
    version = _number(path, pairs, "version")
    if version not in (0, VERSION):
        raise UnusableDirectory(f"{path}: unknown version {version}; known are 0 and {VERSION}; {ADVICE}")
    return MetaProperties(
        _text(path, pairs, "cluster.id"),
        _number(path, pairs, "node.id" if version == VERSION else "broker.id"),
        pairs.get("directory.id", ""),
    )


def _text(path: str, pairs: Mapping[str, str], key: str) -> str:
    value = pairs.get(key)
    if not value:
        raise UnusableDirectory(f"{path} is damaged: it has no {key}; {ADVICE}")
    return value


def _number(path: str, pairs: Mapping[str, str], key: str) -> int:
    value = _text(path, pairs, key)
    try:
        return int(value)
    except ValueError:
        raise UnusableDirectory(f"{path} is damaged: {key} is {value!r}, not a number; {ADVICE}") from None


def write_meta_properties(directory: str, meta: MetaProperties) -> None:
    text = (
        f"node.id={meta.node_id}\ndirectory.id={meta.directory_id}\nversion={VERSION}\ncluster.id={meta.cluster_id}\n"
    )
    replace(f"{directory}/{FILE_NAME}", text.encode(), sync=True)


def claim(directories: list[str], *, node_id: int, cluster_id: str | None) -> dict[str, MetaProperties]:
    """Those of each log directory, which all belong to one node of one cluster; new ones are marked as ours."""
    known = {path: read_meta_properties(path) for path in directories}
    for path, meta in known.items():
        if meta is None:
            continue
        cluster_id = meta.cluster_id if cluster_id is None else cluster_id
        if meta.cluster_id != cluster_id:
            raise UnusableDirectory(
                f"{path}/{FILE_NAME} says the data belongs to cluster {meta.cluster_id}; this is cluster {cluster_id}; "
                "correct log.dirs, or the address of the metadata"
            )
        if meta.node_id != node_id:
            raise UnusableDirectory(
                f"{path}/{FILE_NAME} says the data belongs to node {meta.node_id}; this is node {node_id} (node.id); "
                "correct the one, or choose another directory (log.dirs)"
            )
    cluster_id = format_uuid(random_uuid()) if cluster_id is None else cluster_id
    claimed: dict[str, MetaProperties] = {}
    for path, meta in known.items():
        if meta is None or not meta.directory_id:
            meta = MetaProperties(cluster_id, node_id, format_uuid(random_uuid()))
            write_meta_properties(path, meta)
        claimed[path] = meta
    return claimed

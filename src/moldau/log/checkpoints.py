"""The small text files beside the logs, in Kafka's format: a version, a count, and a line for each entry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from moldau.core.ids import TopicId, TopicPartition, format_uuid, parse_uuid
from moldau.log.files import read_whole, replace, write_at
from moldau.log.leader_epochs import FILE_NAME as EPOCHS_FILE
from moldau.log.leader_epochs import EpochStart, LeaderEpochs

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
PARTITION_METADATA = "partition.metadata"
VERSION = 0


class CorruptCheckpoint(Exception):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")


def _encode(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in [str(VERSION), str(len(entries)), *entries]).encode()


def _decode(path: str) -> list[list[str]]:
    """The entries, each split at its spaces; an empty or missing file has none."""
    data = read_whole(path)
    if not data:
        return []
    if not data.endswith(b"\n"):  # half a number is a number, too
        raise CorruptCheckpoint(path, "its last line is cut short")
    try:
        version, count, *lines = data.decode().splitlines()
        if int(version) != VERSION:
            raise CorruptCheckpoint(path, f"unknown version {version}")
        if int(count) != len(lines):
            raise CorruptCheckpoint(path, f"{count} entries announced, {len(lines)} there")
    except ValueError as wrong:
        raise CorruptCheckpoint(path, str(wrong)) from None
    return [line.split(" ") for line in lines]


def read_offsets(directory: str, name: str) -> dict[TopicPartition, int]:
    path = f"{directory}/{name}"
    try:
        return {TopicPartition(topic, int(index)): int(offset) for topic, index, offset in _decode(path)}
    except ValueError as wrong:
        raise CorruptCheckpoint(path, str(wrong)) from None


def write_offsets(directory: str, name: str, offsets: Mapping[TopicPartition, int], *, sync: bool = True) -> None:
    lines = [f"{partition.topic} {partition.partition} {offset}" for partition, offset in offsets.items()]
    replace(f"{directory}/{name}", _encode(lines), sync=sync)


def read_leader_epochs(directory: str) -> LeaderEpochs:
    path = f"{directory}/{EPOCHS_FILE}"
    try:
        return LeaderEpochs([EpochStart(int(epoch), int(offset)) for epoch, offset in _decode(path)])
    except ValueError as wrong:
        raise CorruptCheckpoint(path, str(wrong)) from None


def write_leader_epochs(directory: str, epochs: LeaderEpochs) -> None:
    """Not synced: until the next flush the batches that recovery reads tell the epochs, too."""
    path = f"{directory}/{EPOCHS_FILE}"
    data = _encode([f"{entry.epoch} {entry.start_offset}" for entry in epochs.entries])
    if len(epochs.entries) == 1:  # as at every partition's first append, where the second file would be noticed
        write_at(path, data, 0)
    else:
        replace(path, data, sync=False)


def read_partition_metadata(directory: str) -> TopicId | None:
    """The id of the topic a folder belongs to, or None when it does not say."""
    path = f"{directory}/{PARTITION_METADATA}"
    data = read_whole(path)
    if not data or not data.strip(b"\0"):  # a power failure may leave a file of its length without its bytes
        return None
    try:
        fields = dict(line.split(": ", 1) for line in data.decode().splitlines() if line)
        if int(fields["version"]) < VERSION:
            raise CorruptCheckpoint(path, f"unknown version {fields['version']}")
        return parse_uuid(fields["topic_id"].strip())
    except (ValueError, KeyError):
        advice = "remove the file, and it is made anew for the topic of that name"
        raise CorruptCheckpoint(path, f"malformed, expected version and topic_id; {advice}") from None


def write_partition_metadata(directory: str, topic_id: TopicId) -> None:
    """Written into a folder that is new; half of it reads as nothing, and the folder is taken for the asker's."""
    text = f"version: {VERSION}\ntopic_id: {format_uuid(topic_id)}"
    write_at(f"{directory}/{PARTITION_METADATA}", text.encode(), 0)


def read_clean_shutdown(directory: str) -> bool:
    """Whether the last broker stopped cleanly; also an empty file, as Kafka before 3.8 left it, says so."""
    return read_whole(f"{directory}/{CLEAN_SHUTDOWN}") is not None


def write_clean_shutdown(directory: str, broker_epoch: int) -> None:
    text = json.dumps({"version": VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace(f"{directory}/{CLEAN_SHUTDOWN}", text.encode(), sync=True)

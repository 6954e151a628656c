"""Records of Apache Kafka's `__remote_log_metadata` as its own classes show themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from moldau.cli.kafka.dump_log.schemas.remote_log import (
    PartitionDeletion,
    SegmentId,
    SegmentMetadata,
    SegmentMetadataUpdate,
    TopicIdPartition,
)
from moldau.core.errors import ProtocolViolation
from moldau.core.ids import format_uuid
from moldau.wire.batch import Record
from moldau.wire.codec import decode
from moldau.wire.schema import Bytes, Message
from moldau.wire.varint import read_uvarint

FRAME_VERSION = 1
SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED",
)  # fmt: skip
DELETION_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")


def remote_log_metadata(record: Record) -> tuple[str | None, str | None]:
    """These records have no keys."""
    try:
        return None, shown(memoryview(record.value or b""))
    except (ProtocolViolation, ValueError) as wrong:
        return None, f"Error at offset {record.offset}, skipping. {wrong}"


def shown(value: memoryview) -> str:
    frame_version, at = read_uvarint(value, 0)
    kind, at = read_uvarint(value, at)
    version, at = read_uvarint(value, at)
    if frame_version != FRAME_VERSION or kind not in KINDS:
        raise ProtocolViolation(f"unknown record {kind} of frame version {frame_version}")
    schema, show = KINDS[kind]
    oldest, newest = schema.VERSIONS
    if not oldest <= version <= newest:
        raise ProtocolViolation(f"unknown version {version} of record {kind}")
    message: Any = decode(schema, version, value, at)[0]
    return show(message)


def _segment(each: SegmentMetadata) -> str:
    epochs = ", ".join(f"{entry.leader_epoch}={entry.start_offset}" for entry in each.segment_leader_epochs)
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(each.segment_id)}, startOffset={each.start_offset},"
        f" endOffset={each.end_offset}, brokerId={each.broker_id}, maxTimestampMs={each.max_timestamp_ms},"
        f" eventTimestampMs={each.event_timestamp_ms}, segmentLeaderEpochs={{{epochs}}},"
        f" segmentSizeInBytes={each.segment_size_in_bytes}, customMetadata={_custom(each.custom_metadata)},"
        f" state={_state(SEGMENT_STATES, each.state)}, txnIdxEmpty={_boolean(each.is_transaction_index_empty)}}}"
    )


def _update(each: SegmentMetadataUpdate) -> str:
    return (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(each.segment_id)},"
        f" customMetadata={_custom(each.custom_metadata)}, state={_state(SEGMENT_STATES, each.state)},"
        f" eventTimestampMs={each.event_timestamp_ms}, brokerId={each.broker_id}}}"
    )


def _deletion(each: PartitionDeletion) -> str:
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition={_partition(each.topic_id_partition)},"
        f" state={_state(DELETION_STATES, each.state)}, eventTimestampMs={each.event_timestamp_ms},"
        f" brokerId={each.broker_id}}}"
    )


KINDS: Mapping[int, tuple[type[Message], Callable[[Any], str]]] = MappingProxyType(
    {
        SegmentMetadata.API_KEY: (SegmentMetadata, _segment),
        SegmentMetadataUpdate.API_KEY: (SegmentMetadataUpdate, _update),
        PartitionDeletion.API_KEY: (PartitionDeletion, _deletion),
    }
)


def _segment_id(each: SegmentId) -> str:
    where = _partition(each.topic_id_partition)
    return f"RemoteLogSegmentId{{topicIdPartition={where}, id={format_uuid(bytes(each.id))}}}"


def _partition(each: TopicIdPartition) -> str:
    return f"{format_uuid(bytes(each.id))}:{each.name}-{each.partition}"


def _custom(content: Bytes | None) -> str:
    return "Optional.empty" if content is None else f"Optional[CustomMetadata{{{len(content)} bytes}}]"


def _state(names: Sequence[str], number: int) -> str:
    if not 0 <= number < len(names):
        raise ProtocolViolation(f"unknown state {number}")
    return names[number]


def _boolean(value: bool) -> str:
    return "true" if value else "false"

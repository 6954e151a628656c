"""Records of internal topics as JSON: of our brokers, and those that only Apache Kafka writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.cli.kafka.dump_log.decoding import Undecodable
from moldau.cli.kafka.dump_log.json_text import as_json, json_text
from moldau.cli.kafka.dump_log.schemas import group_members, metadata, newer_groups, share_state
from moldau.core.errors import ProtocolViolation
from moldau.groups import schemas as groups
from moldau.groups.consumer import schemas as consumer_groups
from moldau.transactions import schemas as transactions
from moldau.wire.batch import Record
from moldau.wire.codec import decode
from moldau.wire.schema import Message
from moldau.wire.varint import read_uvarint

CONSUMER_PROTOCOL = "consumer"
METADATA_FRAME_VERSION = 1

_CAPITAL = re.compile(r"(?<=.)([A-Z])")

Schemas = Mapping[int, tuple[type[Message], type[Message]]]


def _paired(module: Any, names: Mapping[int, str]) -> dict[int, tuple[type[Message], type[Message]]]:
    return {kind: (getattr(module, f"{name}Key"), getattr(module, f"{name}Value")) for kind, name in names.items()}


def offsets_schemas() -> Schemas:
    return {
        0: (groups.OffsetCommitKey, groups.OffsetCommitValue),  # of old brokers: it reads the same
        **_paired(groups, {1: "OffsetCommit", 2: "GroupMetadata"}),
        3: (consumer_groups.ConsumerGroupMetadataKey, consumer_groups.ConsumerGroupMetadataValue),
        4: (consumer_groups.PartitionMetadataKey, group_members.ConsumerGroupPartitionMetadataValue),
        **_paired(consumer_groups, {5: "MemberMetadata", 6: "TargetMetadata", 7: "TargetMember", 8: "CurrentMember"}),
        **_paired(
            newer_groups,
            {
                10: "ShareGroupMemberMetadata",
                11: "ShareGroupMetadata",
                12: "ShareGroupTargetAssignmentMetadata",
                13: "ShareGroupTargetAssignmentMember",
                14: "ShareGroupCurrentMemberAssignment",
                15: "ShareGroupStatePartitionMetadata",
            },
        ),
        **_paired(consumer_groups, {16: "RegularExpression"}),
        **_paired(
            newer_groups,
            {
                17: "StreamsGroupMetadata",
                19: "StreamsGroupMemberMetadata",
                20: "StreamsGroupTargetAssignmentMetadata",
                21: "StreamsGroupTargetAssignmentMember",
                22: "StreamsGroupCurrentMemberAssignment",
                23: "StreamsGroupTopology",
            },
        ),
    }


def transaction_schemas() -> Schemas:
    return {0: (transactions.TransactionLogKey, transactions.TransactionLogValue)}


def share_state_schemas() -> Schemas:
    return _paired(share_state, {0: "ShareSnapshot", 1: "ShareUpdate"})


@dataclass(frozen=True, slots=True)
class CoordinatorParser:
    """Of records whose key begins with its kind, and whose value with its version."""

    schemas: Schemas

    def __call__(self, record: Record) -> tuple[str | None, str | None]:
        if record.key is None:
            raise Undecodable(
                f"Failed to decode message at offset {record.offset} using the specified decoder"
                " (message had a missing key)"
            )
        try:
            return self._parsed(
                memoryview(record.key), None if record.value is None else memoryview(record.value), record
            )
        except (ProtocolViolation, ValueError) as wrong:
            return f"Error at offset {record.offset}, skipping. {wrong}", None

    def _parsed(self, key: memoryview, value: memoryview | None, record: Record) -> tuple[str, str | None]:
        kind = groups.version_of(key)
        if kind not in self.schemas:
            return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
        key_schema, value_schema = self.schemas[kind]
        named: Any = decode(key_schema, 0, key, groups.SHORT.size)[0]
        shown = json_text({"type": str(kind), "data": as_json(named, 0)})
        if value is None:
            return shown, "<DELETE>"
        version = groups.known_version(value, value_schema.VERSIONS)
        message: Any = decode(value_schema, version, value, groups.SHORT.size)[0]
        data = as_json(message, version)
        if isinstance(message, groups.GroupMetadataValue) and message.protocol_type == CONSUMER_PROTOCOL:
            _open_members(message, data)
        return shown, json_text({"version": str(version), "data": data})


def _open_members(message: groups.GroupMetadataValue, data: dict[str, Any]) -> None:
    """What members of this protocol say to each other is read, too."""
    for member, shown in zip(message.members, data["members"], strict=True):
        for name, raw, schema in (
            ("subscription", member.subscription, group_members.ConsumerProtocolSubscription),
            ("assignment", member.assignment, group_members.ConsumerProtocolAssignment),
        ):
            try:
                version = groups.known_version(memoryview(raw), schema.VERSIONS)
                said: Any = decode(schema, version, raw, groups.SHORT.size)[0]
            except ProtocolViolation:
                continue  # the bytes stay
            shown[name] = as_json(said, version)


def cluster_metadata(record: Record) -> tuple[str | None, str | None]:
    """Records of the quorum have no keys."""
    try:
        return None, json_text(_metadata_record(memoryview(record.value or b"")))
    except (ProtocolViolation, ValueError) as wrong:
        return None, f"Error at {record.offset}, skipping. {wrong}"


def _metadata_record(value: memoryview) -> dict[str, Any]:
    frame_version, at = read_uvarint(value, 0)
    if frame_version != METADATA_FRAME_VERSION:
        raise ProtocolViolation(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            f"(only frame version {METADATA_FRAME_VERSION} is supported)"
        )
    kind, at = read_uvarint(value, at)
    version, at = read_uvarint(value, at)
    schema = _metadata_schemas().get(kind)
    if schema is None:
        raise ProtocolViolation(f"Unknown metadata id {kind}")
    message: Any = decode(schema, version, value, at)[0]
    name = _CAPITAL.sub(r"_\1", schema.__name__).upper()
    return {"type": name, "version": version, "data": as_json(message, version)}


def _metadata_schemas() -> dict[int, Any]:
    return {each.API_KEY: each for each in vars(metadata).values() if hasattr(each, "API_KEY")}

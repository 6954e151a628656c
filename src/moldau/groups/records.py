"""Facts about groups. Most are written to `__consumer_offsets`; those about a rebalance under way live in memory only,
as a coordinator that takes over makes the members join again anyway.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from moldau.coordinator.journal import CoordinatorRecord
from moldau.core.ids import ZERO_UUID
from moldau.groups.classic.group import Group, State
from moldau.groups.classic.members import Member, Protocol
from moldau.groups.classic.subscriptions import subscribed_topics
from moldau.groups.consumer.facts import ConsumerFact
from moldau.groups.consumer.records import decode_consumer_fact
from moldau.groups.schemas import (
    SHORT,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    known_version,
    version_of,
)
from moldau.log.producers.end_transaction_marker import encode_marker
from moldau.wire.codec import decode, encode

NO_EXPIRY = -1

_OLD_OFFSET_KEY = 0  # what version 0 of OffsetCommitKey was before kinds had numbers; it reads the same
_OFFSET_KEY = SHORT.pack(OffsetCommitKey.API_KEY)
_GROUP_KEY = SHORT.pack(GroupMetadataKey.API_KEY)
_GROUP_VERSION = 3
_OFFSET_VERSION = 4
_OFFSET_WITH_EXPIRY_VERSION = 1


class CommittedOffset(msgspec.Struct, frozen=True, gc=False):
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = 0
    expire_ms: int = NO_EXPIRY
    topic_id: bytes = ZERO_UUID


class GroupCreated(msgspec.Struct, frozen=True):
    """A first client came."""

    group_id: str
    at_ms: int


class GroupChanged(msgspec.Struct, frozen=True):
    group: Group
    is_logged: bool


class GroupDeleted(msgspec.Struct, frozen=True):
    group_id: str


class OffsetCommitted(msgspec.Struct, frozen=True, gc=False):
    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset


class OffsetPending(msgspec.Struct, frozen=True, gc=False):
    """An offset that a producer committed in a transaction which is still open."""

    producer_id: int
    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset


class TransactionEnded(msgspec.Struct, frozen=True):
    producer_id: int
    is_commit: bool
    coordinator_epoch: int = 0


class OffsetDeleted(msgspec.Struct, frozen=True, gc=False):
    group_id: str
    topic: str
    partition: int


class OffsetsDetached(msgspec.Struct, frozen=True):
    """A group with many offsets is deleted: none of them counts from now on. The log learns of it one by one."""

    group_id: str


ClassicFact: TypeAlias = (
    GroupCreated
    | GroupChanged
    | GroupDeleted
    | OffsetCommitted
    | OffsetPending
    | OffsetDeleted
    | OffsetsDetached
    | TransactionEnded
)
Fact: TypeAlias = ClassicFact | ConsumerFact


def encode_fact(fact: ClassicFact) -> CoordinatorRecord | None:
    """Key and value of a log record; None for a fact that is not logged."""
    if isinstance(fact, OffsetCommitted | OffsetPending):
        return _offset_key(fact.group_id, fact.topic, fact.partition), _offset_value(fact.committed)
    if isinstance(fact, GroupChanged):
        return (_group_key(fact.group.group_id), _group_value(fact.group)) if fact.is_logged else None
    if isinstance(fact, GroupCreated):
        value = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=fact.at_ms)
        return _group_key(fact.group_id), SHORT.pack(_GROUP_VERSION) + encode(value, _GROUP_VERSION)
    if isinstance(fact, OffsetDeleted):
        return _offset_key(fact.group_id, fact.topic, fact.partition), None
    if isinstance(fact, TransactionEnded):
        return encode_marker(is_commit=fact.is_commit, coordinator_epoch=fact.coordinator_epoch)
    if isinstance(fact, OffsetsDetached):
        return None
    return _group_key(fact.group_id), None


def decode_fact(key: memoryview, value: memoryview | None) -> Fact | None:
    """The fact that a log record states; None for a kind that we don't know. ProtocolViolation if it is damaged."""
    kind = version_of(key)
    if kind in (_OLD_OFFSET_KEY, OffsetCommitKey.API_KEY):
        named, _ = decode(OffsetCommitKey, 0, key, 2)
        if value is None:
            return OffsetDeleted(named.group, named.topic, named.partition)
        return OffsetCommitted(named.group, named.topic, named.partition, _read_offset(value))
    if kind == GroupMetadataKey.API_KEY:
        group, _ = decode(GroupMetadataKey, 0, key, 2)
        return GroupDeleted(group.group) if value is None else GroupChanged(_read_group(group.group, value), True)
    return decode_consumer_fact(kind, key, value)


def decode_pending(key: memoryview, value: memoryview | None, producer_id: int) -> Fact | None:
    """The fact that a record of a transaction states: only offsets are committed in transactions."""
    fact = decode_fact(key, value)
    if isinstance(fact, OffsetCommitted):
        return OffsetPending(producer_id, fact.group_id, fact.topic, fact.partition, fact.committed)
    return None


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return _OFFSET_KEY + encode(OffsetCommitKey(group_id, topic, partition), 0)


def _group_key(group_id: str) -> bytes:
    return _GROUP_KEY + encode(GroupMetadataKey(group_id), 0)


def _offset_value(committed: CommittedOffset) -> bytes:
    version = _OFFSET_VERSION if committed.expire_ms == NO_EXPIRY else _OFFSET_WITH_EXPIRY_VERSION
    value = OffsetCommitValue(
        committed.offset,
        committed.leader_epoch,
        committed.metadata,
        committed.commit_ms,
        committed.expire_ms,
        committed.topic_id,
    )
    return SHORT.pack(version) + encode(value, version)


def _read_offset(value: memoryview) -> CommittedOffset:
    read, _ = decode(OffsetCommitValue, known_version(value, OffsetCommitValue.VERSIONS), value, 2)
    return CommittedOffset(
        offset=read.offset,
        leader_epoch=read.leader_epoch,
        metadata=read.metadata,
        commit_ms=read.commit_timestamp,
        expire_ms=read.expire_timestamp,
        topic_id=read.topic_id,
    )


def _group_value(group: Group) -> bytes:
    protocol = group.protocol_name
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=protocol,
        leader=group.leader,
        current_state_timestamp=group.state_since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(protocol or ""),
                assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
    return SHORT.pack(_GROUP_VERSION) + encode(value, _GROUP_VERSION)


def _read_group(group_id: str, value: memoryview) -> Group:
    read, _ = decode(GroupMetadataValue, known_version(value, GroupMetadataValue.VERSIONS), value, 2)
    members = [
        Member(
            member_id=each.member_id,
            client_id=each.client_id,
            client_host=each.client_host,
            session_timeout_ms=each.session_timeout,
            rebalance_timeout_ms=each.session_timeout if each.rebalance_timeout == -1 else each.rebalance_timeout,
            protocols=(Protocol(read.protocol or "", bytes(each.subscription)),),
            instance_id=each.group_instance_id,
            assignment=bytes(each.assignment),
        )
        for each in read.members
    ]
    group = Group(
        group_id=group_id,
        state=State.STABLE if members else State.EMPTY,
        generation=read.generation,
        protocol_type=read.protocol_type or None,
        protocol_name=read.protocol,
        leader=read.leader,
        state_since_ms=read.current_state_timestamp,
        members={member.member_id: member for member in members},
    )
    return msgspec.structs.replace(group, subscribed_topics=subscribed_topics(group))

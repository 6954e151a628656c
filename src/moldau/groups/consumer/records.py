"""Facts about consumer groups as records of `__consumer_offsets`, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from moldau.coordinator.journal import CoordinatorRecord
from moldau.groups.classic.members import Protocol
from moldau.groups.consumer.facts import (
    ConsumerFact,
    GroupEpochSet,
    OldMetadataSet,
    ProfileSet,
    ProgressSet,
    RegexSet,
    ResolvedRegex,
    TargetEpochSet,
    TargetSet,
)
from moldau.groups.consumer.members import (
    ClassicPart,
    EpochPartitions,
    MemberState,
    Profile,
    Progress,
)
from moldau.groups.consumer.schemas import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    CurrentMemberKey,
    CurrentMemberValue,
    CurrentTopic,
    MemberMetadataKey,
    MemberMetadataValue,
    PartitionMetadataKey,
    RegularExpressionKey,
    RegularExpressionValue,
    TargetMemberKey,
    TargetMemberValue,
    TargetMetadataKey,
    TargetMetadataValue,
    TargetTopic,
)
from moldau.groups.schemas import SHORT, known_version
from moldau.wire.codec import decode, encode

_VERSION = 0
_STATES = frozenset(MemberState)


def encode_consumer_fact(fact: ConsumerFact) -> CoordinatorRecord | None:
    """Key and value of a log record; None for a fact that is not logged."""
    match fact:
        case GroupEpochSet(epoch=epoch):
            return _entry(
                ConsumerGroupMetadataKey(fact.group_id),
                None if epoch is None else ConsumerGroupMetadataValue(epoch, fact.metadata_hash),
            )
        case ProfileSet(profile=profile):
            return _entry(
                MemberMetadataKey(fact.group_id, fact.member_id), None if profile is None else _profile_value(profile)
            )
        case TargetEpochSet(epoch=epoch):
            return _entry(
                TargetMetadataKey(fact.group_id), None if epoch is None else TargetMetadataValue(epoch, fact.at_ms)
            )
        case TargetSet(partitions=partitions):
            topics = [TargetTopic(topic_id, sorted(held)) for topic_id, held in (partitions or {}).items()]
            return _entry(
                TargetMemberKey(fact.group_id, fact.member_id),
                None if partitions is None else TargetMemberValue(topics),
            )
        case ProgressSet(progress=progress):
            return _entry(
                CurrentMemberKey(fact.group_id, fact.member_id), None if progress is None else _progress_value(progress)
            )
        case RegexSet(resolved=found):
            return _entry(
                RegularExpressionKey(fact.group_id, fact.regex),
                None if found is None else RegularExpressionValue(sorted(found.topics), found.version, found.at_ms),
            )
        case OldMetadataSet():
            return _entry(PartitionMetadataKey(fact.group_id), None)
    return None


def _entry(key: Any, value: Any | None) -> CoordinatorRecord:
    kind = SHORT.pack(key.API_KEY) + encode(key, _VERSION)
    return kind, None if value is None else SHORT.pack(_VERSION) + encode(value, _VERSION)


def _profile_value(profile: Profile) -> MemberMetadataValue:
    classic = profile.classic
    return MemberMetadataValue(
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=sorted(profile.topics),
        subscribed_topic_regex=profile.regex,
        rebalance_timeout_ms=profile.rebalance_timeout_ms,
        server_assignor=profile.assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            classic.session_timeout_ms, [ClassicProtocol(each.name, each.metadata) for each in classic.protocols]
        ),
    )


def _progress_value(progress: Progress) -> CurrentMemberValue:
    return CurrentMemberValue(
        member_epoch=progress.epoch,
        previous_member_epoch=progress.previous_epoch,
        state=progress.state,
        assigned_partitions=_topics(progress.assigned),
        partitions_pending_revocation=_topics(progress.revoking),
    )


def _topics(held: EpochPartitions) -> list[CurrentTopic]:
    return [CurrentTopic(topic_id, list(epochs), list(epochs.values())) for topic_id, epochs in held.items()]


def decode_consumer_fact(kind: int, key: memoryview, value: memoryview | None) -> ConsumerFact | None:
    """The fact that a log record states; None for a kind that is not of consumer groups."""
    read = _READERS.get(kind)
    return None if read is None else read(key, value)


def _key(cls: type[Any], key: memoryview) -> Any:
    return decode(cls, _VERSION, key, SHORT.size)[0]


def _value(cls: type[Any], value: memoryview) -> Any:
    return decode(cls, known_version(value, cls.VERSIONS), value, SHORT.size)[0]


def _read_epoch(key: memoryview, value: memoryview | None) -> GroupEpochSet:
    group_id = _key(ConsumerGroupMetadataKey, key).group_id
    if value is None:
        return GroupEpochSet(group_id, None)
    read = _value(ConsumerGroupMetadataValue, value)
    return GroupEpochSet(group_id, read.epoch, read.metadata_hash)


def _read_old_metadata(key: memoryview, value: memoryview | None) -> OldMetadataSet:
    return OldMetadataSet(_key(PartitionMetadataKey, key).group_id, value is not None)


def _read_profile(key: memoryview, value: memoryview | None) -> ProfileSet:
    named = _key(MemberMetadataKey, key)
    if value is None:
        return ProfileSet(named.group_id, named.member_id, None)
    read: MemberMetadataValue = _value(MemberMetadataValue, value)
    classic = read.classic_member_metadata
    profile = Profile(
        client_id=read.client_id,
        client_host=read.client_host,
        instance_id=read.instance_id,
        rack_id=read.rack_id,
        topics=frozenset(read.subscribed_topic_names),
        regex=read.subscribed_topic_regex,
        rebalance_timeout_ms=read.rebalance_timeout_ms,
        assignor=read.server_assignor,
        classic=None
        if classic is None
        else ClassicPart(
            classic.session_timeout_ms,
            tuple(Protocol(each.name, bytes(each.metadata)) for each in classic.supported_protocols),
        ),
    )
    return ProfileSet(named.group_id, named.member_id, profile)


def _read_target_epoch(key: memoryview, value: memoryview | None) -> TargetEpochSet:
    group_id = _key(TargetMetadataKey, key).group_id
    if value is None:
        return TargetEpochSet(group_id, None)
    read = _value(TargetMetadataValue, value)
    return TargetEpochSet(group_id, read.assignment_epoch, read.assignment_timestamp)


def _read_target(key: memoryview, value: memoryview | None) -> TargetSet:
    named = _key(TargetMemberKey, key)
    if value is None:
        return TargetSet(named.group_id, named.member_id, None)
    read: TargetMemberValue = _value(TargetMemberValue, value)
    partitions = {each.topic_id: frozenset(each.partitions) for each in read.topic_partitions}
    return TargetSet(named.group_id, named.member_id, partitions)


def _read_progress(key: memoryview, value: memoryview | None) -> ProgressSet:
    named = _key(CurrentMemberKey, key)
    if value is None:
        return ProgressSet(named.group_id, named.member_id, None)
    read: CurrentMemberValue = _value(CurrentMemberValue, value)
    progress = Progress(
        epoch=read.member_epoch,
        previous_epoch=read.previous_member_epoch,
        state=MemberState(read.state) if read.state in _STATES else MemberState.UNKNOWN,
        assigned=_read_topics(read.assigned_partitions, read.member_epoch),
        revoking=_read_topics(read.partitions_pending_revocation, read.member_epoch),
    )
    return ProgressSet(named.group_id, named.member_id, progress)


def _read_topics(topics: Sequence[CurrentTopic], member_epoch: int) -> dict[bytes, dict[int, int]]:
    """Older releases did not write since when a member has a partition; its own epoch is late enough."""
    held: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        held[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return held


def _read_regex(key: memoryview, value: memoryview | None) -> RegexSet:
    named = _key(RegularExpressionKey, key)
    if value is None:
        return RegexSet(named.group_id, named.regular_expression, None)
    read: RegularExpressionValue = _value(RegularExpressionValue, value)
    resolved = ResolvedRegex(frozenset(read.topics), read.version, read.timestamp)
    return RegexSet(named.group_id, named.regular_expression, resolved)


_READERS: Mapping[int, Callable[[memoryview, memoryview | None], ConsumerFact]] = MappingProxyType(
    {
        ConsumerGroupMetadataKey.API_KEY: _read_epoch,
        PartitionMetadataKey.API_KEY: _read_old_metadata,
        MemberMetadataKey.API_KEY: _read_profile,
        TargetMetadataKey.API_KEY: _read_target_epoch,
        TargetMemberKey.API_KEY: _read_target,
        CurrentMemberKey.API_KEY: _read_progress,
        RegularExpressionKey.API_KEY: _read_regex,
    }
)

"""All sub-domains as one state machine: which function applies which record, and the records that make an image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from moldau.controller.brokers import apply_broker_registered
from moldau.controller.configs import (
    apply_broker_configs_changed,
    apply_group_configs_changed,
    apply_topic_configs_changed,
)
from moldau.controller.elections import apply_leaders_changed
from moldau.controller.features import apply_features_finalized
from moldau.controller.image import ClusterImage, Draft
from moldau.controller.partitions import apply_partition_changed, apply_partitions_added, apply_partitions_removed
from moldau.controller.producer_ids import apply_producer_ids_allocated
from moldau.controller.records import (
    BrokerConfigsChanged,
    BrokerRegistered,
    ClusterCreated,
    FeaturesFinalized,
    GroupConfigsChanged,
    LeadersChanged,
    PartitionChanged,
    PartitionsAdded,
    PartitionsRemoved,
    ProducerIdsAllocated,
    Record,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
)
from moldau.controller.topics import apply_topic_created, apply_topic_deleted
from moldau.core.decision import Decision


def decide_create_cluster(image: ClusterImage, cluster_id: str) -> Decision[str]:
    """The cluster's id: the one it has, or this one from now on."""
    if image.cluster_id:
        return Decision.reply_only(image.cluster_id)
    return Decision(records=(ClusterCreated(cluster_id),), reply=cluster_id)


def apply_cluster_created(draft: Draft, record: ClusterCreated) -> None:
    draft.set(cluster_id=record.cluster_id)


_APPLY: Mapping[type, Callable[[Draft, Any], None]] = MappingProxyType(
    {
        ClusterCreated: apply_cluster_created,
        BrokerRegistered: apply_broker_registered,
        TopicCreated: apply_topic_created,
        TopicDeleted: apply_topic_deleted,
        PartitionsAdded: apply_partitions_added,
        PartitionsRemoved: apply_partitions_removed,
        PartitionChanged: apply_partition_changed,
        LeadersChanged: apply_leaders_changed,
        TopicConfigsChanged: apply_topic_configs_changed,
        BrokerConfigsChanged: apply_broker_configs_changed,
        GroupConfigsChanged: apply_group_configs_changed,
        ProducerIdsAllocated: apply_producer_ids_allocated,
        FeaturesFinalized: apply_features_finalized,
    }
)


def apply_to_draft(draft: Draft, records: Iterable[Record]) -> None:
    for record in records:
        _APPLY[type(record)](draft, record)


def apply(image: ClusterImage, records: Iterable[Record]) -> ClusterImage:
    draft = Draft(image)
    apply_to_draft(draft, records)
    return draft.finish()


def snapshot_records(image: ClusterImage) -> list[Record]:
    """The shortest history that leads to this image."""
    records: list[Record] = [ClusterCreated(image.cluster_id)] if image.cluster_id else []
    records += [BrokerRegistered(broker) for broker in image.brokers.values()]
    records += [TopicCreated(topic) for topic in image.topics.values()]
    records += [BrokerConfigsChanged(broker, dict(values)) for broker, values in image.broker_configs.items()]
    records += [GroupConfigsChanged(group_id, dict(values)) for group_id, values in image.group_configs.items()]
    if image.next_producer_id:
        records.append(ProducerIdsAllocated(image.next_producer_id))
    if image.features_epoch:
        records.append(FeaturesFinalized(image.features_epoch, dict(image.features)))
    return records

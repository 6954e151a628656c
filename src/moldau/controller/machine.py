"""All sub-domains as one state machine: which function applies which record, and the records that make an image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from moldau.controller.image import ClusterImage, Draft
from moldau.controller.members.brokers import (
    apply_broker_epochs_given,
    apply_broker_registered,
    apply_broker_unregistered,
)
from moldau.controller.partitions.leaders import apply_leaders_changed
from moldau.controller.partitions.states import (
    apply_partitions_added,
    apply_partitions_changed,
    apply_partitions_removed,
)
from moldau.controller.producer_ids import apply_producer_ids_allocated
from moldau.controller.records import (
    AclCreated,
    AclDeleted,
    BrokerConfigsChanged,
    BrokerEpochsGiven,
    BrokerRegistered,
    BrokerUnregistered,
    ClientMetricsConfigsChanged,
    ClientQuotasChanged,
    ClusterCreated,
    DelegationTokenRemoved,
    DelegationTokenSet,
    FeaturesFinalized,
    GroupConfigsChanged,
    LeadersChanged,
    PartitionsAdded,
    PartitionsChanged,
    PartitionsRemoved,
    ProducerIdsAllocated,
    Record,
    ScramCredentialRemoved,
    ScramCredentialSet,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
)
from moldau.controller.settings.acls import apply_acl_created, apply_acl_deleted
from moldau.controller.settings.configs import (
    apply_broker_configs_changed,
    apply_client_metrics_configs_changed,
    apply_group_configs_changed,
    apply_topic_configs_changed,
)
from moldau.controller.settings.delegation_tokens import (
    apply_delegation_token_removed,
    apply_delegation_token_set,
    delegation_token_records,
)
from moldau.controller.settings.features import apply_features_finalized
from moldau.controller.settings.quotas import apply_client_quotas_changed
from moldau.controller.settings.scram_credentials import (
    apply_scram_credential_removed,
    apply_scram_credential_set,
    scram_credential_records,
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
        BrokerUnregistered: apply_broker_unregistered,
        BrokerEpochsGiven: apply_broker_epochs_given,
        TopicCreated: apply_topic_created,
        TopicDeleted: apply_topic_deleted,
        PartitionsAdded: apply_partitions_added,
        PartitionsRemoved: apply_partitions_removed,
        PartitionsChanged: apply_partitions_changed,
        LeadersChanged: apply_leaders_changed,
        TopicConfigsChanged: apply_topic_configs_changed,
        BrokerConfigsChanged: apply_broker_configs_changed,
        GroupConfigsChanged: apply_group_configs_changed,
        ClientMetricsConfigsChanged: apply_client_metrics_configs_changed,
        ScramCredentialSet: apply_scram_credential_set,
        ScramCredentialRemoved: apply_scram_credential_removed,
        DelegationTokenSet: apply_delegation_token_set,
        DelegationTokenRemoved: apply_delegation_token_removed,
        ClientQuotasChanged: apply_client_quotas_changed,
        ProducerIdsAllocated: apply_producer_ids_allocated,
        FeaturesFinalized: apply_features_finalized,
        AclCreated: apply_acl_created,
        AclDeleted: apply_acl_deleted,
    }
)


def apply_to_draft(draft: Draft, records: Iterable[Record]) -> None:
    for record in records:
        _APPLY[type(record)](draft, record)


def apply(image: ClusterImage, records: Iterable[Record]) -> ClusterImage:
    draft = Draft(image)
    apply_to_draft(draft, records)
    return draft.finish()


def snapshot_records(image: ClusterImage) -> Iterator[Record]:
    """The shortest history that leads to this image."""
    if image.cluster_id:
        yield ClusterCreated(image.cluster_id)
    yield from (BrokerRegistered(broker) for broker in image.brokers.values())
    if image.broker_epoch_max > max((broker.epoch for broker in image.brokers.values()), default=0):
        yield BrokerEpochsGiven(image.broker_epoch_max)
    # Before the topics: a change of min.insync.replicas, or of a feature, clears the ELR of those that are there.
    if image.features_epoch:
        yield FeaturesFinalized(image.features_epoch, dict(image.features))
    yield from (BrokerConfigsChanged(broker, dict(values)) for broker, values in image.broker_configs.items())
    yield from (TopicCreated(topic) for topic in image.topics.values())
    yield from (GroupConfigsChanged(group_id, dict(values)) for group_id, values in image.group_configs.items())
    yield from (
        ClientMetricsConfigsChanged(name, dict(values)) for name, values in image.client_metrics_configs.items()
    )
    yield from scram_credential_records(image)
    yield from delegation_token_records(image)
    yield from (ClientQuotasChanged(entity, dict(values)) for entity, values in image.client_quotas.items())
    if image.next_producer_id:
        yield ProducerIdsAllocated(image.next_producer_id)
    yield from (AclCreated(acl_id, acl) for acl_id, acl in image.acls.items())

"""The cluster as everyone sees it: an immutable value that a batch of records turns into the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from moldau.core.ids import NO_LEADER, AclId, TopicId, TopicPartition
from moldau.core.topic_names import collision_key, may_collide
from moldau.security.acls.bindings import Acl
from moldau.security.delegation_tokens import DelegationToken
from moldau.security.sasl.scram.credential import ScramCredential, ScramMechanism

NO_CONTROLLER = -1

QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]  # type and name of each part; a name of None is the default

K = TypeVar("K")
V = TypeVar("V")


class Endpoint(msgspec.Struct, frozen=True, array_like=True):
    host: str
    port: int
    security: str = "PLAINTEXT"


class BrokerImage(msgspec.Struct, frozen=True, array_like=True):
    id: int
    endpoints: dict[str, Endpoint]
    rack: str | None = None
    epoch: int = 0
    fenced: bool = False
    directories: dict[str, str] = {}  # the id of each log directory and where it was seen last
    incarnation: bytes = b""  # of the process, which a restart changes; empty as long as there was only this broker
    in_controlled_shutdown: bool = False
    min_insync_replicas: int = 0  # in its own file; 0 where it did not tell
    inter_broker_listener: str = ""  # by which it asks others; empty where it did not tell
    inter_broker_principal: str = ""  # whom they know it as then; empty where that is not in its configuration

    @property
    def is_active(self) -> bool:
        """Whether it may lead, and join an ISR."""
        return not self.fenced and not self.in_controlled_shutdown


RECOVERED, RECOVERING = 0, 1  # of a leader: RECOVERING since an unclean election, until its ISR was changed


class PartitionImage(msgspec.Struct, frozen=True, array_like=True):
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()  # eligible leader replicas (KIP-966): out of sync, with all that was committed
    last_known_elr: tuple[int, ...] = ()  # the last leader of a partition that has neither an ISR nor an ELR
    offline: tuple[int, ...] = ()  # replicas whose log directory failed
    leader_recovery_state: int = RECOVERED
    lost: tuple[int, ...] = ()  # replicas whose logs are gone, until they are in sync again


class TopicImage(msgspec.Struct, frozen=True, array_like=True):
    name: str
    id: TopicId
    partitions: tuple[PartitionImage, ...]
    configs: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """The mappings are plain dicts that nobody changes: a new image has new ones where something changed."""

    cluster_id: str = ""
    controller_id: int = NO_CONTROLLER
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    broker_epoch_max: int = 0  # of all that were ever given, also to brokers that are not registered any more
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_ids: Mapping[bytes, str] = field(default_factory=dict)
    colliding_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # "" is all brokers, "0" is broker 0
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    client_metrics_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by subscription
    scram_credentials: Mapping[str, Mapping[ScramMechanism, ScramCredential]] = field(default_factory=dict)  # by user
    delegation_tokens: Mapping[str, DelegationToken] = field(default_factory=dict)  # by id
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    next_producer_id: int = 0
    features: Mapping[str, int] = field(default_factory=dict)  # only levels that somebody chose
    features_epoch: int = 0
    acls: Mapping[AclId, Acl] = field(default_factory=dict)
    acl_ids: Mapping[Acl, AclId] = field(default_factory=dict)  # no two are alike
    changed_topics: frozenset[str] = field(default=frozenset(), compare=False)  # against the image published before

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        name = self.topic_ids.get(topic_id)
        return None if name is None else self.topics[name]

    def has_partition(self, partition: TopicPartition) -> bool:
        topic = self.topics.get(partition.topic)
        return topic is not None and partition.partition < len(topic.partitions)

    def broker_config(self, broker: str) -> Mapping[str, str]:
        return self.broker_configs.get(broker, {})

    def group_config(self, group_id: str) -> Mapping[str, str]:
        return self.group_configs.get(group_id, {})

    def client_metrics_config(self, subscription: str) -> Mapping[str, str]:
        return self.client_metrics_configs.get(subscription, {})

    def active_brokers(self) -> Iterator[BrokerImage]:
        return (broker for broker in self.brokers.values() if not broker.fenced)


def without_leader(image: ClusterImage, broker_id: int) -> ClusterImage:
    """The same, but for what a broker leads: that is led by nobody."""
    topics = dict(image.topics)
    for name, topic in image.topics.items():
        leaders = [state.leader for state in topic.partitions]
        if broker_id in leaders:  # what stays keeps its object: a broker that lost its session does this for each image
            partitions = list(topic.partitions)
            for index, leader in enumerate(leaders):
                if leader == broker_id:
                    partitions[index] = msgspec.structs.replace(partitions[index], leader=NO_LEADER)
            topics[name] = msgspec.structs.replace(topic, partitions=tuple(partitions))
    return replace(image, topics=topics)


def without_broker(image: ClusterImage, broker_id: int) -> ClusterImage:
    """The same, but for a broker that is gone: it is fenced, and nobody leads what it led."""
    brokers = {
        each.id: msgspec.structs.replace(each, fenced=each.fenced or each.id == broker_id)
        for each in image.brokers.values()
    }
    controller_id = NO_CONTROLLER if image.controller_id == broker_id else image.controller_id
    return replace(without_leader(image, broker_id), brokers=brokers, controller_id=controller_id)


class Draft:
    """An image in the making. Each mapping is copied once, before its first change, however many records follow."""

    __slots__ = ("_changed", "_image", "_owned")

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._owned: set[str] = set()
        self._changed: set[str] = set()

    @property
    def image(self) -> ClusterImage:
        """What is drafted so far. It changes with the next record, so it is for looking, not for keeping."""
        return self._image

    def finish(self) -> ClusterImage:
        return replace(self._image, changed_topics=frozenset(self._changed))

    def set(self, **values: Any) -> None:
        self._image = replace(self._image, **values)

    def brokers(self) -> dict[int, BrokerImage]:
        return self._own("brokers", self._image.brokers)

    def broker_configs(self) -> dict[str, Mapping[str, str]]:
        return self._own("broker_configs", self._image.broker_configs)

    def group_configs(self) -> dict[str, Mapping[str, str]]:
        return self._own("group_configs", self._image.group_configs)

    def client_metrics_configs(self) -> dict[str, Mapping[str, str]]:
        return self._own("client_metrics_configs", self._image.client_metrics_configs)

    def scram_credentials(self) -> dict[str, Mapping[ScramMechanism, ScramCredential]]:
        return self._own("scram_credentials", self._image.scram_credentials)

    def delegation_tokens(self) -> dict[str, DelegationToken]:
        return self._own("delegation_tokens", self._image.delegation_tokens)

    def client_quotas(self) -> dict[QuotaEntity, Mapping[str, float]]:
        return self._own("client_quotas", self._image.client_quotas)

    def put_topic(self, topic: TopicImage) -> None:
        if topic.name not in self._image.topics and may_collide(topic.name):
            names = self._own("colliding_names", self._image.colliding_names)
            key = collision_key(topic.name)
            names[key] = (*names.get(key, ()), topic.name)
        self._own("topics", self._image.topics)[topic.name] = topic
        self._own("topic_ids", self._image.topic_ids)[topic.id] = topic.name
        self._changed.add(topic.name)

    def remove_topic(self, topic: TopicImage) -> None:
        del self._own("topics", self._image.topics)[topic.name]
        del self._own("topic_ids", self._image.topic_ids)[topic.id]
        self._changed.add(topic.name)
        if may_collide(topic.name):
            names = self._own("colliding_names", self._image.colliding_names)
            key = collision_key(topic.name)
            rest = tuple(name for name in names[key] if name != topic.name)
            if rest:
                names[key] = rest
            else:
                del names[key]

    def put_acl(self, acl_id: AclId, acl: Acl) -> None:
        self._own("acls", self._image.acls)[acl_id] = acl
        self._own("acl_ids", self._image.acl_ids)[acl] = acl_id

    def remove_acl(self, acl_id: AclId) -> None:
        acl = self._own("acls", self._image.acls).pop(acl_id)
        del self._own("acl_ids", self._image.acl_ids)[acl]

    def _own(self, name: str, current: Mapping[K, V]) -> dict[K, V]:
        if name not in self._owned:
            self._owned.add(name)
            current = dict(current)
            self.set(**{name: current})
        return cast("dict[K, V]", current)

"""The records of Apache Kafka's `__cluster_metadata`, as it lays them out."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.schema import Bytes, Int8, Int16, Int32, Int64, UInt16, Uuid, since, tagged


class BrokerEndpoint(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


class BrokerFeature(Struct, gc=False):
    name: str = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


class RegisterBrokerRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_FROM: ClassVar[int] = 0

    broker_id: Int32 = 0
    is_migrating_zk_broker: Annotated[bool, since(2)] = False
    incarnation_id: Uuid = ZERO_UUID
    broker_epoch: Int64 = 0
    end_points: list[BrokerEndpoint] = []
    features: list[BrokerFeature] = []
    rack: str | None = ""
    fenced: bool = True
    in_controlled_shutdown: Annotated[bool, since(1)] = False
    log_dirs: Annotated[list[Uuid], tagged(0, since=3)] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, tagged(1, since=4)] = None


class UnregisterBrokerRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0


class TopicRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 2
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    name: str = ""
    topic_id: Uuid = ZERO_UUID


class PartitionRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 0

    partition_id: Int32 = -1
    topic_id: Uuid = ZERO_UUID
    replicas: list[Int32] = []
    isr: list[Int32] = []
    removing_replicas: list[Int32] = []
    adding_replicas: list[Int32] = []
    leader: Int32 = -1
    leader_recovery_state: Annotated[Int8, tagged(0, since=0)] = 0
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: Annotated[list[Uuid], since(1)] = []
    eligible_leader_replicas: Annotated[list[Int32] | None, tagged(1, since=2)] = None
    last_known_elr: Annotated[list[Int32] | None, tagged(2, since=2)] = None


class ConfigRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 4
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    resource_type: Int8 = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = ""


class PartitionChangeRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 5
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 0

    partition_id: Int32 = -1
    topic_id: Uuid = ZERO_UUID
    isr: Annotated[list[Int32] | None, tagged(0, since=0)] = None
    leader: Annotated[Int32, tagged(1, since=0)] = -2
    replicas: Annotated[list[Int32] | None, tagged(2, since=0)] = None
    removing_replicas: Annotated[list[Int32] | None, tagged(3, since=0)] = None
    adding_replicas: Annotated[list[Int32] | None, tagged(4, since=0)] = None
    leader_recovery_state: Annotated[Int8, tagged(5, since=0)] = -1
    directories: Annotated[list[Uuid] | None, tagged(8, since=1)] = None
    eligible_leader_replicas: Annotated[list[Int32] | None, tagged(6, since=2)] = None
    last_known_elr: Annotated[list[Int32] | None, tagged(7, since=2)] = None


class FenceBrokerRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 7
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    id: Int32 = 0
    epoch: Int64 = 0


class UnfenceBrokerRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    id: Int32 = 0
    epoch: Int64 = 0


class RemoveTopicRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    topic_id: Uuid = ZERO_UUID


class DelegationTokenRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    owner: str = ""
    requester: str = ""
    renewers: list[str] = []
    issue_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    expiration_timestamp: Int64 = 0
    token_id: str = ""


class UserScramCredentialRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    name: str = ""
    mechanism: Int8 = 0
    salt: Bytes = b""
    stored_key: Bytes = b""
    server_key: Bytes = b""
    iterations: Int32 = 0


class FeatureLevelRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    name: str = ""
    feature_level: Int16 = 0


class EntityData(Struct, gc=False):
    entity_type: str = ""
    entity_name: str | None = ""


class ClientQuotaRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    entity: list[EntityData] = []
    key: str = ""
    value: float = 0.0
    remove: bool = False


class ProducerIdsRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    next_producer_id: Int64 = 0


class BrokerRegistrationChangeRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE_FROM: ClassVar[int] = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    fenced: Annotated[Int8, tagged(0, since=0)] = 0
    in_controlled_shutdown: Annotated[Int8, tagged(1, since=1)] = 0
    log_dirs: Annotated[list[Uuid], tagged(2, since=2)] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, tagged(3, since=3)] = None


class AccessControlEntryRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 18
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    id: Uuid = ZERO_UUID
    resource_type: Int8 = 0
    resource_name: str = ""
    pattern_type: Int8 = 0
    principal: str = ""
    host: str = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class RemoveAccessControlEntryRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    id: Uuid = ZERO_UUID


class NoOpRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0


class ZkMigrationStateRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    zk_migration_state: Int8 = 0


class RemoveUserScramCredentialRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    name: str = ""
    mechanism: Int8 = 0


class BeginTransactionRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    name: Annotated[str | None, tagged(0, since=0)] = None


class EndTransactionRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0


class AbortTransactionRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    reason: Annotated[str | None, tagged(0, since=0)] = None


class RemoveDelegationTokenRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    token_id: str = ""


class ControllerEndpoint(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


class ControllerFeature(Struct, gc=False):
    name: str = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


class RegisterControllerRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    controller_id: Int32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: bool = False
    end_points: list[ControllerEndpoint] = []
    features: list[ControllerFeature] = []


class ClearElrRecord(Struct, gc=False):
    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    topic_name: str = ""

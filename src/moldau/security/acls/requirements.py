"""What each API needs of whoever calls it, as the KafkaApis and ControllerApis of Apache Kafka 4.3.1 ask for it.

A request needs all that its API lists. An API without an entry must not be answered where there is an authorizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

from moldau.core.errors import ErrorCode
from moldau.security.acls.vocabulary import AclOperation, ResourceType
from moldau.wire.api import ApiKey

VERSION_MAX = 2**15 - 1


class Scope(Enum):
    """Which resources of the type are meant."""

    THE_CLUSTER = auto()
    THE_ONE = auto()  # that the request is about
    EACH = auto()  # that the request names, or the answer would
    ANY = auto()  # one of the type that the principal may do this with, named or not


class Denial(Enum):
    """What becomes of a request that lacks it."""

    FAILS_REQUEST = auto()
    FAILS_RESOURCE = auto()  # the answer has the error beside this resource; the others are served
    LEAVES_OUT = auto()  # the answer is one of a cluster that has no such resource


AUTHORIZATION_ERRORS: Mapping[ResourceType, ErrorCode] = MappingProxyType(
    {
        ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    operation: AclOperation
    resource_type: ResourceType
    scope: Scope
    denial: Denial = Denial.FAILS_REQUEST
    error: ErrorCode
    when: str = ""
    """The condition under which it is needed; always if empty."""
    versions: tuple[int, int] = (0, VERSION_MAX)
    unless: tuple[Requirement, ...] = ()
    """Each of these is enough instead. They are asked for first, and their denials are not audited."""
    is_denial_audited: bool = True


def on_cluster(operation: AclOperation, *, when: str = "", unless: tuple[Requirement, ...] = ()) -> Requirement:
    return Requirement(
        operation=operation,
        resource_type=ResourceType.CLUSTER,
        scope=Scope.THE_CLUSTER,
        error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        when=when,
        unless=unless,
    )


def on_the(
    operation: AclOperation, resource_type: ResourceType, *, when: str = "", to: int = VERSION_MAX
) -> Requirement:
    return Requirement(
        operation=operation,
        resource_type=resource_type,
        scope=Scope.THE_ONE,
        error=AUTHORIZATION_ERRORS[resource_type],
        when=when,
        versions=(0, to),
    )


def on_each(
    operation: AclOperation,
    resource_type: ResourceType,
    denial: Denial = Denial.FAILS_RESOURCE,
    *,
    when: str = "",
    to: int = VERSION_MAX,
    unless: tuple[Requirement, ...] = (),
    is_denial_audited: bool = True,
) -> Requirement:
    return Requirement(
        operation=operation,
        resource_type=resource_type,
        scope=Scope.EACH,
        denial=denial,
        error=AUTHORIZATION_ERRORS[resource_type],
        when=when,
        versions=(0, to),
        unless=unless,
        is_denial_audited=is_denial_audited,
    )


_TOPIC, _GROUP, _TXN = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
_READ, _WRITE, _CREATE, _DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE
_ALTER, _DESCRIBE, _BROKERS = AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION
_ALTER_CONFIGS, _DESCRIBE_CONFIGS = AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS

_NOTHING: tuple[Requirement, ...] = ()
_BETWEEN_BROKERS = (on_cluster(_BROKERS),)
_MEMBER_OF_GROUP = (on_the(_READ, _GROUP),)

_CLUSTER_OPERATIONS = Requirement(
    operation=_DESCRIBE,
    resource_type=ResourceType.CLUSTER,
    scope=Scope.THE_CLUSTER,
    denial=Denial.LEAVES_OUT,
    error=ErrorCode.NONE,
    when="the cluster's authorized operations are asked for; they are 0 then",
)
_NAMED_OR_ALL_TOPICS = (
    on_each(_DESCRIBE, _TOPIC, when="topics are named"),
    on_each(_DESCRIBE, _TOPIC, Denial.LEAVES_OUT, when="all topics are asked for"),
)
_DESCRIBED_OFFSETS = (on_each(_DESCRIBE, _GROUP), *_NAMED_OR_ALL_TOPICS)
_DESCRIBED_MODERN_GROUPS = (
    on_each(_DESCRIBE, _GROUP),
    on_each(_DESCRIBE, _TOPIC, when="of the topics of its members: the group fails with TOPIC_AUTHORIZATION_FAILED"),
)
_SUBSCRIBED_TOPICS = on_each(_DESCRIBE, _TOPIC, Denial.FAILS_REQUEST, when="topics are subscribed to by name")


def _on_configs(operation: AclOperation, of_cluster: str) -> tuple[Requirement, ...]:
    return (
        Requirement(
            operation=operation,
            resource_type=ResourceType.CLUSTER,
            scope=Scope.THE_CLUSTER,
            denial=Denial.FAILS_RESOURCE,
            error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            when=f"the resource is a {of_cluster}",
        ),
        on_each(operation, _TOPIC, when="the resource is a TOPIC"),
        on_each(operation, _GROUP, when="the resource is a GROUP"),
    )


_OF_CLIENTS: dict[ApiKey, tuple[Requirement, ...]] = {
    ApiKey.PRODUCE: (
        on_the(_WRITE, _TXN, when="any batch is transactional"),
        on_each(_WRITE, _TOPIC),
    ),
    ApiKey.FETCH: (
        Requirement(
            operation=_BROKERS,
            resource_type=ResourceType.CLUSTER,
            scope=Scope.THE_CLUSTER,
            denial=Denial.FAILS_RESOURCE,
            error=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            when="it has a replica id; every partition fails then",
        ),
        on_each(_READ, _TOPIC, when="it has no replica id"),
    ),
    ApiKey.LIST_OFFSETS: (on_each(_DESCRIBE, _TOPIC),),
    ApiKey.METADATA: (
        on_each(_DESCRIBE, _TOPIC, when="topics are named"),
        on_each(_DESCRIBE, _TOPIC, Denial.LEAVES_OUT, when="all topics are asked for", is_denial_audited=False),
        on_each(_CREATE, _TOPIC, when="the topic would be created", unless=(on_cluster(_CREATE),)),
        _CLUSTER_OPERATIONS,
    ),
    ApiKey.OFFSET_COMMIT: (*_MEMBER_OF_GROUP, on_each(_READ, _TOPIC)),
    ApiKey.OFFSET_FETCH: _DESCRIBED_OFFSETS,
    ApiKey.FIND_COORDINATOR: (
        on_each(_DESCRIBE, _GROUP, when="of a group"),
        on_each(_DESCRIBE, _TXN, when="of a transactional id"),
        on_cluster(_BROKERS, when="of a share partition"),
    ),
    ApiKey.JOIN_GROUP: _MEMBER_OF_GROUP,
    ApiKey.HEARTBEAT: _MEMBER_OF_GROUP,
    ApiKey.LEAVE_GROUP: _MEMBER_OF_GROUP,
    ApiKey.SYNC_GROUP: _MEMBER_OF_GROUP,
    ApiKey.DESCRIBE_GROUPS: (on_each(_DESCRIBE, _GROUP),),
    ApiKey.LIST_GROUPS: (
        on_each(_DESCRIBE, _GROUP, Denial.LEAVES_OUT, unless=(on_cluster(_DESCRIBE),), is_denial_audited=False),
    ),
    ApiKey.SASL_HANDSHAKE: _NOTHING,
    ApiKey.API_VERSIONS: _NOTHING,
    ApiKey.SASL_AUTHENTICATE: _NOTHING,
    ApiKey.CREATE_TOPICS: (
        on_each(_CREATE, _TOPIC, unless=(on_cluster(_CREATE),)),
        on_each(
            _DESCRIBE_CONFIGS,
            _TOPIC,
            Denial.LEAVES_OUT,
            when="of configurations in the answer, whose place the error takes",
            is_denial_audited=False,
        ),
    ),
    ApiKey.DELETE_TOPICS: (
        on_each(_DESCRIBE, _TOPIC, when="else no name is told of a topic by id", unless=(on_cluster(_DELETE),)),
        on_each(_DELETE, _TOPIC, unless=(on_cluster(_DELETE),)),
    ),
    ApiKey.DELETE_RECORDS: (on_each(_DELETE, _TOPIC),),
    ApiKey.INIT_PRODUCER_ID: (
        on_the(_WRITE, _TXN, when="it has a transactional id"),
        on_the(AclOperation.TWO_PHASE_COMMIT, _TXN, when="two-phase commit is enabled"),
        Requirement(
            operation=_WRITE,
            resource_type=_TOPIC,
            scope=Scope.ANY,
            error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            when="it has no transactional id",
            unless=(on_cluster(AclOperation.IDEMPOTENT_WRITE),),
        ),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (on_each(_DESCRIBE, _TOPIC, unless=_BETWEEN_BROKERS),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        on_the(_WRITE, _TXN, to=3),
        on_each(_WRITE, _TOPIC, when="never of internal topics", to=3),
        Requirement(
            operation=_BROKERS,
            resource_type=ResourceType.CLUSTER,
            scope=Scope.THE_CLUSTER,
            error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            versions=(4, VERSION_MAX),
        ),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (on_the(_WRITE, _TXN), on_the(_READ, _GROUP)),
    ApiKey.END_TXN: (on_the(_WRITE, _TXN),),
    ApiKey.TXN_OFFSET_COMMIT: (on_the(_WRITE, _TXN), on_the(_READ, _GROUP), on_each(_READ, _TOPIC)),
    ApiKey.DESCRIBE_CONFIGS: _on_configs(_DESCRIBE_CONFIGS, "BROKER, BROKER_LOGGER or CLIENT_METRICS"),
    ApiKey.ALTER_CONFIGS: _on_configs(_ALTER_CONFIGS, "BROKER or CLIENT_METRICS"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _on_configs(_ALTER_CONFIGS, "BROKER, BROKER_LOGGER or CLIENT_METRICS"),
    ApiKey.CREATE_PARTITIONS: (on_each(_ALTER, _TOPIC),),
    ApiKey.DELETE_GROUPS: (on_each(_DELETE, _GROUP),),
    ApiKey.OFFSET_DELETE: (on_the(_DELETE, _GROUP), on_each(_READ, _TOPIC)),
    ApiKey.DESCRIBE_CLUSTER: (_CLUSTER_OPERATIONS,),
    ApiKey.DESCRIBE_PRODUCERS: (on_each(_READ, _TOPIC),),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        on_each(_DESCRIBE, _TXN),
        on_each(_DESCRIBE, _TOPIC, Denial.LEAVES_OUT, when="of the topics of a transaction"),
    ),
    ApiKey.LIST_TRANSACTIONS: (on_each(_DESCRIBE, _TXN, Denial.LEAVES_OUT),),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (
        *_MEMBER_OF_GROUP,
        _SUBSCRIBED_TOPICS,
        on_each(
            _DESCRIBE,
            _TOPIC,
            Denial.LEAVES_OUT,
            when="a regular expression is subscribed to",
            is_denial_audited=False,
        ),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _DESCRIBED_MODERN_GROUPS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _NAMED_OR_ALL_TOPICS,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _NOTHING,
    ApiKey.PUSH_TELEMETRY: _NOTHING,
}

_OF_TOKENS: dict[ApiKey, tuple[Requirement, ...]] = {
    ApiKey.CREATE_DELEGATION_TOKEN: (
        on_the(AclOperation.CREATE_TOKENS, ResourceType.USER, when="the owner is another principal"),
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: _NOTHING,  # for its owner and its renewers, whatever ACLs say
    ApiKey.EXPIRE_DELEGATION_TOKEN: _NOTHING,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (
        on_each(
            _DESCRIBE,
            ResourceType.DELEGATION_TOKEN,
            Denial.LEAVES_OUT,
            when="it neither owns nor may renew the token",
            unless=(on_each(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, when="of the token's owner"),),
        ),
    ),
}

_OF_SHARE_AND_STREAMS_GROUPS: dict[ApiKey, tuple[Requirement, ...]] = {
    ApiKey.SHARE_GROUP_HEARTBEAT: (*_MEMBER_OF_GROUP, _SUBSCRIBED_TOPICS),
    ApiKey.SHARE_GROUP_DESCRIBE: _DESCRIBED_MODERN_GROUPS,
    ApiKey.SHARE_FETCH: (*_MEMBER_OF_GROUP, on_each(_READ, _TOPIC)),
    ApiKey.SHARE_ACKNOWLEDGE: (*_MEMBER_OF_GROUP, on_each(_READ, _TOPIC)),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _DESCRIBED_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (*_MEMBER_OF_GROUP, on_each(_READ, _TOPIC)),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (on_the(_DELETE, _GROUP), on_each(_READ, _TOPIC)),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (
        *_MEMBER_OF_GROUP,
        on_each(_DESCRIBE, _TOPIC, Denial.FAILS_REQUEST, when="of the topics of its topology"),
        on_each(_CREATE, _TOPIC, when="internal topics are missing", unless=(on_cluster(_CREATE),)),
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: _DESCRIBED_MODERN_GROUPS,
}

_ON_CLUSTER: dict[ApiKey, AclOperation] = {
    ApiKey.DESCRIBE_ACLS: _DESCRIBE,
    ApiKey.CREATE_ACLS: _ALTER,
    ApiKey.DELETE_ACLS: _ALTER,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _ALTER,
    ApiKey.DESCRIBE_LOG_DIRS: _DESCRIBE,
    ApiKey.ELECT_LEADERS: _ALTER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _ALTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _DESCRIBE,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _DESCRIBE_CONFIGS,
    ApiKey.ALTER_CLIENT_QUOTAS: _ALTER_CONFIGS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _DESCRIBE,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _ALTER,
    ApiKey.DESCRIBE_QUORUM: _DESCRIBE,
    ApiKey.UPDATE_FEATURES: _ALTER,
    ApiKey.UNREGISTER_BROKER: _ALTER,
    ApiKey.LIST_CONFIG_RESOURCES: _DESCRIBE_CONFIGS,
    ApiKey.ADD_RAFT_VOTER: _ALTER,
    ApiKey.REMOVE_RAFT_VOTER: _ALTER,
}

_BETWEEN_BROKERS_ONLY = (
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.UPDATE_RAFT_VOTER,
    ApiKey.ALTER_PARTITION,
    ApiKey.ENVELOPE,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
)

REQUIREMENTS: Mapping[ApiKey, tuple[Requirement, ...]] = MappingProxyType(
    {
        **_OF_CLIENTS,
        **_OF_TOKENS,
        **_OF_SHARE_AND_STREAMS_GROUPS,
        **{key: (on_cluster(operation),) for key, operation in _ON_CLUSTER.items()},
        **dict.fromkeys(_BETWEEN_BROKERS_ONLY, _BETWEEN_BROKERS),
        ApiKey.WRITE_TXN_MARKERS: (on_cluster(_BROKERS, unless=(on_cluster(_ALTER),)),),
    }
)


def needed_of_the_cluster(key: ApiKey, version: int) -> Requirement | None:
    """What a request needs whatever it says, and fails without: it can be refused before it is read."""
    for each in REQUIREMENTS[key]:
        is_whole = each.scope is Scope.THE_CLUSTER and each.denial is Denial.FAILS_REQUEST and not each.when
        if is_whole and each.versions[0] <= version <= each.versions[1]:
            return each
    return None

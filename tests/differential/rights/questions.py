"""What is asked: every API of a broker, about resources that a user may have rights on, and about others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.differential import batches
from tests.differential.rights.users import ABSENT, AUTOMATIC, NOBODY, OTHERS, PAYMENTS, REFUNDS, SECRET, SEEN, STAFF
from tests.differential.scenarios.groups import join_fields
from tests.differential.world import NOW_MS

Fields = dict[str, Any]


class Setting(NamedTuple):
    """What each broker chose for itself."""

    ids: dict[str, bytes]


class Question(NamedTuple):
    api: str
    version: int
    note: str
    fields: Callable[[Setting], Fields]
    restores: str = ""
    """What the answer may have taken away, and the next user needs."""
    kept: tuple[str, ...] = ()
    """Fields of the answer to compare, where the rest is about the machine; all if empty."""

    @property
    def name(self) -> str:
        return f"{self.api} v{self.version} {self.note}".strip()


def ask(api: str, *versions: int, note: str = "", restores: str = "", kept: tuple[str, ...] = (), **fields: Any) -> Any:
    return [Question(api, version, note, lambda _: fields, restores, kept) for version in versions]


def ask_by_id(api: str, *versions: int, note: str, fields: Callable[[Setting], Fields], restores: str = "") -> Any:
    return [Question(api, version, note, fields, restores) for version in versions]


TOPICS = (SEEN, SECRET, ABSENT)
RECORDS = batches.batch([b"value"], timestamp=NOW_MS)
UNKNOWN_ID = bytes(range(16))
MEMBER: Fields = {"member_id": "rights-member", "generation_id": 1}
ERRORS = ("error_code", "name", "topic_name", "partition_index", "topics", "partitions", "results", "nodes")


def of_topics(*names: str, **partition: Any) -> list[Fields]:
    return [{"name": name, "partitions": [{"partition_index": 0, **partition}]} for name in names or TOPICS]


def transactional() -> bytes:
    """A transaction's, of a producer that nobody knows."""
    attributes, producer = batches.TRANSACTIONAL, (77, 0, 0)
    return batches.batch([b"value"], timestamp=NOW_MS, attributes=attributes, producer=producer)


def produce_by_name(*names: str, records: bytes = RECORDS, **more: Any) -> Fields:
    data = [{"name": name, "partition_data": [{"index": 0, "records": records}]} for name in names]
    return {"acks": -1, "timeout_ms": 5_000, "topic_data": data, **more}


def produce_by_id(setting: Setting) -> Fields:
    ids = [setting.ids[SEEN], setting.ids[SECRET], UNKNOWN_ID]
    data = [{"topic_id": each, "partition_data": [{"index": 0, "records": RECORDS}]} for each in ids]
    return {"acks": -1, "timeout_ms": 5_000, "topic_data": data}


def fetched(topics: list[Fields], **more: Any) -> Fields:
    return {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 100,
        "session_id": 0,
        "session_epoch": -1,
        "topics": topics,
        **more,
    }


FETCHED: Fields = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}


def fetch_by_name(**more: Any) -> Fields:
    return fetched([{"topic": name, "partitions": [FETCHED]} for name in TOPICS], **more)


def fetch_by_id(setting: Setting) -> Fields:
    ids = [setting.ids[SEEN], setting.ids[SECRET], UNKNOWN_ID]
    return fetched([{"topic_id": each, "partitions": [FETCHED]} for each in ids])


def committed(version: int) -> Callable[[Setting], Fields]:
    def fields(setting: Setting) -> Fields:
        partition = {"partition_index": 0, "committed_offset": 3, "committed_metadata": "m"}
        named: list[Fields] = [{"name": name} for name in TOPICS]
        if version >= 10:
            named = [{"topic_id": each} for each in (setting.ids[SEEN], setting.ids[SECRET], UNKNOWN_ID)]
        topics = [{**each, "partitions": [partition]} for each in named]
        return {"group_id": STAFF, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}

    return fields


def offsets_by_id(setting: Setting) -> Fields:
    ids = [setting.ids[SEEN], setting.ids[SECRET], UNKNOWN_ID]
    topics = [{"topic_id": each, "partition_indexes": [0]} for each in ids]
    return {"groups": [{"group_id": STAFF, "topics": topics}]}


DATA = [
    *ask("Produce", 3, 9, note="by name", **produce_by_name(*TOPICS)),
    *ask("Produce", 12, note="one", **produce_by_name(SEEN)),
    *ask_by_id("Produce", 13, note="by id", fields=produce_by_id),
    *ask(
        "Produce",
        9,
        note="in a transaction",
        **produce_by_name(SEEN, SECRET, records=transactional(), transactional_id=PAYMENTS),
    ),
    *ask("Produce", 9, note="in no transaction", **produce_by_name(SEEN, records=transactional())),
    *ask("Fetch", 4, 12, note="by name", **fetch_by_name()),
    *ask_by_id("Fetch", 13, 17, note="by id", fields=fetch_by_id),
    *ask("Fetch", 12, note="as a follower", **fetch_by_name(replica_id=5)),
    *ask("ListOffsets", 1, 7, topics=of_topics(timestamp=-1)),
    *ask(
        "OffsetForLeaderEpoch",
        3,
        4,
        topics=[{"topic": name, "partitions": [{"partition": 0, "leader_epoch": 0}]} for name in TOPICS],
    ),
    *ask("DeleteRecords", 2, topics=of_topics(offset=0), timeout_ms=5_000),
    *ask("DescribeProducers", 0, topics=[{"name": name, "partition_indexes": [0]} for name in TOPICS]),
]

NO_CREATION: Fields = {"allow_auto_topic_creation": False}
WITH_OPERATIONS: Fields = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
TOPICS_AND_CLUSTER = [
    *ask("Metadata", 4, 5, 12, note="named", topics=[{"name": name} for name in TOPICS], **NO_CREATION),
    *ask(
        "Metadata",
        8,
        10,
        note="operations",
        topics=[{"name": name} for name in TOPICS],
        **NO_CREATION,
        **WITH_OPERATIONS,
    ),
    *ask("Metadata", 1, 12, note="all", topics=None, **NO_CREATION),
    *ask("Metadata", 0, note="all", topics=[]),
    *ask("Metadata", 9, note="all, operations", topics=None, **NO_CREATION, **WITH_OPERATIONS),
    *ask_by_id(
        "Metadata",
        12,
        13,
        note="by id",
        fields=lambda setting: {
            "topics": [{"topic_id": each, "name": None} for each in (*setting.ids.values(), UNKNOWN_ID)],
            "include_topic_authorized_operations": True,
            **NO_CREATION,
        },
    ),
    *ask(
        "Metadata",
        3,
        9,
        note="created",
        topics=[{"name": AUTOMATIC}],
        allow_auto_topic_creation=True,
        restores="no topic",
    ),
    *ask("Metadata", 9, note="illegal", topics=[{"name": "no such name!"}], allow_auto_topic_creation=True),
    *ask(
        "DescribeTopicPartitions",
        0,
        note="named",
        topics=[{"name": name} for name in TOPICS],
        response_partition_limit=2_000,
    ),
    *ask("DescribeTopicPartitions", 0, note="all", topics=[], response_partition_limit=2_000),
    *ask(
        "DescribeTopicPartitions",
        0,
        note="a page",
        topics=[],
        response_partition_limit=1,
        cursor={"topic_name": "rights-", "partition_index": 0},
    ),
    *ask("DescribeCluster", 0, 1, include_cluster_authorized_operations=True),
    *ask(
        "CreateTopics",
        2,
        7,
        topics=[{"name": name, "num_partitions": 1, "replication_factor": 1} for name in (ABSENT, SEEN, SECRET)],
        timeout_ms=5_000,
        validate_only=True,
    ),
    *ask(
        "CreateTopics",
        7,
        note="twice",
        topics=[{"name": ABSENT, "num_partitions": 1, "replication_factor": 1}] * 2,
        timeout_ms=5_000,
        validate_only=True,
    ),
    *ask(
        "CreatePartitions",
        3,
        topics=[{"name": name, "count": 2} for name in TOPICS],
        timeout_ms=5_000,
        validate_only=True,
    ),
    *ask("DeleteTopics", 5, note="others", topic_names=[SECRET + "-x", ABSENT], timeout_ms=5_000),
    *ask("DeleteTopics", 4, topic_names=[SEEN], timeout_ms=5_000, restores="topic"),
    *ask("DeleteTopics", 6, topics=[{"name": SEEN}], timeout_ms=5_000, restores="topic"),
    *ask_by_id(
        "DeleteTopics",
        6,
        note="by id",
        fields=lambda setting: {
            "topics": [{"name": None, "topic_id": each} for each in (setting.ids[SEEN], UNKNOWN_ID)],
            "timeout_ms": 5_000,
        },
        restores="topic",
    ),
    *ask(
        "DescribeConfigs",
        1,
        4,
        resources=[
            {
                "resource_type": kind,
                "resource_name": name,
                "configuration_keys": ["retention.ms", "log.retention.ms", "consumer.session.timeout.ms"],
            }
            for kind, name in ((2, SEEN), (2, SECRET), (2, ABSENT), (4, "1"), (8, "1"), (32, STAFF))
        ],
        kept=("error_code", "error_message", "resource_type", "resource_name", "results", "name", "value", "configs"),
    ),
    *ask(
        "AlterConfigs",
        2,
        resources=[
            {"resource_type": kind, "resource_name": name, "configs": []}
            for kind, name in ((2, SEEN), (2, ABSENT), (4, "1"), (32, STAFF))
        ],
        validate_only=True,
    ),
    *ask(
        "IncrementalAlterConfigs",
        1,
        resources=[
            {"resource_type": kind, "resource_name": name, "configs": []}
            for kind, name in ((2, SEEN), (2, ABSENT), (4, "1"), (8, "1"), (32, STAFF))
        ],
        validate_only=True,
    ),
    *ask("ListConfigResources", 1, resource_types=[2, 4, 32]),
    *ask("DescribeLogDirs", 1, 4, topics=[{"topic": SEEN, "partitions": [0]}], kept=ERRORS),
    *ask("AlterReplicaLogDirs", 2, dirs=[{"path": "/nowhere", "topics": [{"name": SEEN, "partitions": [0]}]}]),
    *ask(
        "ElectLeaders", 0, 2, election_type=0, topic_partitions=[{"topic": SEEN, "partitions": [0]}], timeout_ms=5_000
    ),
    *ask(
        "AlterPartitionReassignments",
        0,
        topics=[{"name": SEEN, "partitions": [{"partition_index": 0, "replicas": None}]}],
        timeout_ms=5_000,
    ),
    *ask("ListPartitionReassignments", 0, topics=[{"name": SEEN, "partition_indexes": [0]}], timeout_ms=5_000),
    *ask("ListPartitionReassignments", 0, note="all", topics=None, timeout_ms=5_000),
    *ask(
        "DescribeQuorum",
        0,
        2,
        topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}],
        kept=ERRORS,
    ),
    *ask(
        "UpdateFeatures",
        1,
        feature_updates=[{"feature": "no.such.feature", "max_version_level": 1}],
        validate_only=True,
        timeout_ms=5_000,
    ),
    *ask("UnregisterBroker", 0, broker_id=99),
]

GROUPS = [
    *ask("FindCoordinator", 2, note="of a group", key=STAFF, key_type=0),
    *ask("FindCoordinator", 5, note="of groups", coordinator_keys=[STAFF, OTHERS], key_type=0),
    *ask("FindCoordinator", 2, note="of a transaction", key=PAYMENTS, key_type=1),
    *ask("FindCoordinator", 5, note="of transactions", coordinator_keys=[PAYMENTS, REFUNDS], key_type=1),
    *ask("JoinGroup", 5, 9, **join_fields(NOBODY, "no-such-member")),
    *ask("JoinGroup", 2, note="staff", **join_fields(STAFF, "no-such-member")),
    *ask("SyncGroup", 4, 5, group_id=STAFF, **MEMBER, protocol_type="consumer", protocol_name="range"),
    *ask("Heartbeat", 0, 4, group_id=STAFF, **MEMBER),
    *ask("LeaveGroup", 1, 4, group_id=STAFF, member_id="rights-member", members=[{"member_id": "rights-member"}]),
    *(
        each
        for version in (2, 8, 10)
        for each in ask_by_id("OffsetCommit", version, note="", fields=committed(version))
    ),
    *ask("OffsetFetch", 1, 7, group_id=STAFF, topics=[{"name": name, "partition_indexes": [0]} for name in TOPICS]),
    *ask("OffsetFetch", 2, 7, note="all", group_id=STAFF, topics=None),
    *ask(
        "OffsetFetch",
        8,
        9,
        note="many",
        groups=[
            {"group_id": STAFF, "topics": [{"name": name, "partition_indexes": [0]} for name in TOPICS]},
            {"group_id": OTHERS, "topics": None},
        ],
    ),
    *ask("OffsetFetch", 9, note="all", groups=[{"group_id": STAFF, "topics": None}]),
    *ask_by_id("OffsetFetch", 10, note="by id", fields=offsets_by_id),
    *ask("DescribeGroups", 0, 5, 6, groups=[STAFF, OTHERS, NOBODY], include_authorized_operations=True),
    *ask("ListGroups", 0, 5),
    *ask("OffsetDelete", 0, group_id=STAFF, topics=of_topics(SEEN, SECRET, ABSENT), restores="offsets"),
    *ask("DeleteGroups", 2, groups_names=[STAFF, NOBODY], restores="offsets"),
    *ask("ConsumerGroupDescribe", 0, 1, group_ids=["rights-modern", STAFF], include_authorized_operations=True),
    *ask("ConsumerGroupHeartbeat", 0, note="unknown", group_id=STAFF, member_id="x", member_epoch=5),
    *ask(
        "ConsumerGroupHeartbeat",
        0,
        note="subscribed",
        group_id=STAFF,
        member_id="x",
        member_epoch=5,
        subscribed_topic_names=[SEEN, ABSENT],
    ),
]

PRODUCER: Fields = {"producer_id": 77, "producer_epoch": 0}
TRANSACTIONS = [
    *ask("InitProducerId", 1, 4, note="idempotent", transactional_id=None, transaction_timeout_ms=1_000),
    *ask("InitProducerId", 1, 4, note="transactional", transactional_id=PAYMENTS, transaction_timeout_ms=60_000),
    *ask("InitProducerId", 4, note="empty id", transactional_id="", transaction_timeout_ms=60_000),
    *ask(
        "AddPartitionsToTxn",
        0,
        3,
        v3_and_below_transactional_id=PAYMENTS,
        v3_and_below_producer_id=77,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[{"name": name, "partitions": [0]} for name in TOPICS],
    ),
    *ask(
        "AddPartitionsToTxn",
        3,
        note="one",
        v3_and_below_transactional_id=PAYMENTS,
        v3_and_below_producer_id=77,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[{"name": SEEN, "partitions": [0]}],
    ),
    *ask(
        "AddPartitionsToTxn",
        4,
        note="by a broker",
        transactions=[
            {
                "transactional_id": PAYMENTS,
                **PRODUCER,
                "verify_only": True,
                "topics": [{"name": SEEN, "partitions": [0]}],
            }
        ],
    ),
    *ask("AddOffsetsToTxn", 0, 3, transactional_id=PAYMENTS, group_id=STAFF, **PRODUCER),
    *ask("EndTxn", 0, 4, transactional_id=PAYMENTS, committed=True, **PRODUCER),
    *ask(
        "TxnOffsetCommit",
        2,
        3,
        transactional_id=PAYMENTS,
        group_id=STAFF,
        **PRODUCER,
        topics=of_topics(committed_offset=1, committed_metadata=""),
    ),
    *ask(
        "WriteTxnMarkers",
        1,
        markers=[
            {
                **PRODUCER,
                "transaction_result": True,
                "coordinator_epoch": 0,
                "topics": [{"name": ABSENT, "partition_indexes": [0]}],
            }
        ],
    ),
    *ask("DescribeTransactions", 0, transactional_ids=[PAYMENTS, REFUNDS]),
    *ask("ListTransactions", 0, 1),
]

FILTER: Fields = {
    "resource_type_filter": 2,
    "resource_name_filter": SEEN,
    "pattern_type_filter": 3,
    "principal_filter": None,
    "host_filter": "127.0.7.3",
    "operation": 1,
    "permission_type": 1,
}
NO_ACL: Fields = {**FILTER, "resource_name_filter": "rights-none"}
NEW_ACL: Fields = {
    "resource_type": 2,
    "resource_name": "rights-new",
    "resource_pattern_type": 3,
    "principal": "User:x",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
ACLS = [
    *ask("DescribeAcls", 1, 3, **FILTER),
    *ask(
        "CreateAcls",
        1,
        3,
        creations=[
            NEW_ACL,
            {**NEW_ACL, "resource_type": 4},
            {**NEW_ACL, "principal": "x"},
            {**NEW_ACL, "resource_name": ""},
        ],
    ),
    *ask("DeleteAcls", 1, 3, filters=[NO_ACL, {**NO_ACL, "resource_name_filter": "rights-new"}]),
]

# Nobody may ask these without a login, whatever the ACLs: `tests/differential/test_tokens.py` has users who may.
BOB: Fields = {"principal_type": "User", "principal_name": "bob"}
TOKENS = [
    *ask(
        "CreateDelegationToken",
        1,
        3,
        owner_principal_type="User",
        owner_principal_name="alice",
        renewers=[BOB],
        max_lifetime_ms=-1,
    ),
    *ask("RenewDelegationToken", 1, 2, hmac=b"none", renew_period_ms=-1),
    *ask("ExpireDelegationToken", 1, 2, hmac=b"none", expiry_time_period_ms=-1),
    *ask("DescribeDelegationToken", 1, 3, owners=[BOB]),
]

CLIENT: list[Fields] = [{"entity_type": "client-id", "entity_name": "rights-client"}]
QUOTA: Fields = {"key": "producer_byte_rate", "value": 1e12, "remove": False}
NEW_USER: Fields = {
    "name": "rights-user",
    "mechanism": 1,
    "iterations": 4_096,
    "salt": b"salt",
    "salted_password": bytes(32),
}
QUOTAS_AND_USERS = [
    *ask(
        "AlterClientQuotas",
        0,
        1,
        entries=[{"entity": CLIENT, "ops": [QUOTA]}, {"entity": CLIENT, "ops": [{**QUOTA, "key": "rights-none"}]}],
        validate_only=False,
    ),
    *ask(
        "DescribeClientQuotas",
        0,
        1,
        components=[{"entity_type": "client-id", "match_type": 0, "match": "rights-client"}],
        strict=False,
    ),
    # Not by null, which Apache Kafka never answers where it has to refuse.
    *ask("DescribeUserScramCredentials", 0, note="all", users=[]),
    *ask("DescribeUserScramCredentials", 0, note="some", users=[{"name": "rights-user"}, {"name": "rights-none"}]),
    *ask(
        "AlterUserScramCredentials",
        0,
        deletions=[{"name": "rights-none", "mechanism": 1}],
        upsertions=[NEW_USER, {**NEW_USER, "name": "rights-weak", "iterations": 1}],
    ),
    *ask("DescribeUserScramCredentials", 0, note="again", users=[]),
]

QUESTIONS: tuple[Question, ...] = (
    *GROUPS[-7:],
    *DATA,
    *TOPICS_AND_CLUSTER,
    *GROUPS[:-7],
    *TRANSACTIONS,
    *ACLS,
    *TOKENS,
    *QUOTAS_AND_USERS,
)

# Those of clients' metrics need no right either: `tests/differential/telemetry` asks an Apache Kafka with a plugin.
NOT_ASKED = {
    "SaslHandshake": "comes before a login, and needs no right",
    "SaslAuthenticate": "comes before a login, and needs no right",
    "ApiVersions": "comes before a login, and needs no right",
}

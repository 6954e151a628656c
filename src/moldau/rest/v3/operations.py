"""v3's operations."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.rest.operations import ANYTHING, Answer, Operation, Parameter
from moldau.rest.v3 import acls, clusters, configs, events, groups, partitions, records, topics
from moldau.web.logins import Action

READ, WRITE, ADMIN = Action.READ, Action.WRITE, Action.ADMIN
ROOT = "/v3/clusters"
CLUSTER = "/v3/clusters/{cluster_id}"
TOPIC = f"{CLUSTER}/topics/{{topic_name}}"
PARTITION = f"{TOPIC}/partitions/{{partition_id}}"
BROKER = f"{CLUSTER}/brokers/{{broker_id}}"
GROUP = f"{CLUSTER}/consumer-groups/{{consumer_group_id}}"
MEMBER = f"{GROUP}/consumers/{{consumer_id}}"

TEXT = {"type": "string"}
FORMAT = {"type": "string", "enum": ["auto", "binary", "string", "json", "schema"]}
STREAM_PARAMETERS = (
    Parameter("from", TEXT, "beginning, end (the default), an offset, a time in ISO 8601, or @ and milliseconds"),
    Parameter("partitions", TEXT, "Numbers, such as 0,2; all of them by default"),
    Parameter("group", TEXT, "Read as a member of this group, which keeps what was read"),
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 1_000_000_000}, "End after so many records"),
    Parameter("timeout", {"type": "integer", "minimum": 0, "maximum": 1_000_000_000}, "End after ms of silence"),
    Parameter("until", {"type": "string", "enum": ["end"]}, "End where each partition ended"),
    Parameter("key_format", FORMAT),
    Parameter("value_format", FORMAT),
    Parameter("isolation", {"type": "string", "enum": ["read_committed", "read_uncommitted"]}),
    Parameter("last_event_id", TEXT, "As the header Last-Event-ID: the id of the last event that was read"),
    Parameter("Last-Event-ID", TEXT, "Go on behind this event", "header"),
)
ACL_PARAMETERS = (
    Parameter("resource_type", {"type": "string", "enum": [*acls.RESOURCE_TYPES]}),
    Parameter("resource_name", TEXT),
    Parameter("pattern_type", {"type": "string", "enum": [*acls.PATTERN_TYPES]}),
    Parameter("principal", TEXT),
    Parameter("host", TEXT),
    Parameter("operation", {"type": "string", "enum": [*acls.OPERATIONS]}),
    Parameter("permission", {"type": "string", "enum": [*acls.PERMISSIONS]}),
)


def _get(path: str, answer: Answer, schema: str, summary: str, *, of: str = "") -> Operation:
    return Operation(method="GET", path=path, answer=answer, summary=summary, action=READ, of=of, success={200: schema})


def _configs(path: str, kind: str, *, of: str = "") -> list[Operation]:
    """Of a topic, a broker or all brokers: who may read is not who may change."""
    one = f"{path}/{{name}}"
    return [
        _get(path, configs.list_configs, f"{kind}DataList", "List configurations", of=of),
        Operation(
            method="POST", path=f"{path}:alter", answer=configs.alter_configs, summary="Change configurations",
            action=ADMIN, of=of, body="AlterConfigBatchRequest",
        ),
        _get(one, configs.get_config, f"{kind}Data", "Get a configuration", of=of),
        Operation(
            method="PUT", path=one, answer=configs.update_config, summary="Set a configuration", action=ADMIN, of=of,
            body="UpdateConfigRequest",
        ),
        Operation(
            method="DELETE", path=one, answer=configs.reset_config, summary="Reset a configuration", action=ADMIN,
            of=of,
        ),
    ]  # fmt: skip


def _cluster() -> list[Operation]:
    path = f"{CLUSTER}/acls"
    return [
        Operation(
            method="GET", path=ROOT, answer=clusters.list_clusters, summary="List clusters", action=READ, of=ANYTHING,
            success={200: "ClusterDataList"},
        ),
        Operation(
            method="GET", path=CLUSTER, answer=clusters.get_cluster, summary="Get a cluster", action=READ, of=ANYTHING,
            success={200: "ClusterData"},
        ),
        Operation(
            method="GET", path=path, answer=acls.search_acls, summary="Search ACLs", action=ADMIN,
            parameters=ACL_PARAMETERS, success={200: "AclDataList"},
        ),
        Operation(
            method="POST", path=path, answer=acls.create_acl, summary="Create an ACL", action=ADMIN,
            body="CreateAclRequest", success={201: "Empty"},
        ),
        Operation(
            method="DELETE", path=path, answer=acls.delete_acls, summary="Delete ACLs", action=ADMIN,
            parameters=ACL_PARAMETERS, success={200: "DeletedAcls"},
        ),
        Operation(
            method="POST", path=f"{path}:batch", answer=acls.create_acls, summary="Create many ACLs", action=ADMIN,
            body="CreateAclBatchRequest", success={201: "Empty"},
        ),
        _get(f"{CLUSTER}/brokers", clusters.list_brokers, "BrokerDataList", "List brokers"),
        _get(
            f"{CLUSTER}/brokers/-/configs", configs.list_configs_of_brokers, "BrokerConfigDataList",
            "List the configurations of all brokers",
        ),
        _get(BROKER, clusters.get_broker, "BrokerData", "Get a broker"),
        _get(
            f"{BROKER}/partition-replicas", partitions.list_replicas_of_broker, "ReplicaDataList",
            "List the replicas of a broker",
        ),
        *_configs(f"{BROKER}/configs", "BrokerConfig"),
        *_configs(f"{CLUSTER}/broker-configs", "ClusterConfig"),
    ]  # fmt: skip


def _groups() -> list[Operation]:
    of, assignments = "consumer_group_id", f"{MEMBER}/assignments"
    place = "{topic_name}/partitions/{partition_id}"
    return [
        _get(
            f"{CLUSTER}/consumer-groups", groups.list_consumer_groups, "ConsumerGroupDataList", "List consumer groups"
        ),
        _get(GROUP, groups.get_consumer_group, "ConsumerGroupData", "Get a consumer group", of=of),
        _get(f"{GROUP}/consumers", groups.list_consumers, "ConsumerDataList", "List consumers", of=of),
        _get(MEMBER, groups.get_consumer, "ConsumerData", "Get a consumer", of=of),
        _get(assignments, groups.list_assignments, "ConsumerAssignmentDataList", "List a consumer's partitions", of=of),
        _get(
            f"{assignments}/{place}", groups.get_assignment, "ConsumerAssignmentData", "Get an assignment", of=of
        ),
        _get(
            f"{GROUP}/lag-summary", groups.get_lag_summary, "ConsumerGroupLagSummaryData", "Get the lag of a group",
            of=of,
        ),
        _get(f"{GROUP}/lags", groups.list_lags, "ConsumerLagDataList", "List lags of partitions", of=of),
        _get(f"{GROUP}/lags/{place}", groups.get_lag, "ConsumerLagData", "Get the lag of a partition", of=of),
    ]  # fmt: skip


def _topics() -> list[Operation]:
    path, of = f"{CLUSTER}/topics", "topic_name"
    return [
        Operation(
            method="GET", path=path, answer=topics.list_topics, summary="List topics", action=READ, of=ANYTHING,
            success={200: "TopicDataList"},
        ),
        Operation(
            method="POST", path=path, answer=topics.create_topic, summary="Create a topic", action=ADMIN,
            body="CreateTopicRequest", success={200: "TopicData", 201: "TopicData"},
        ),
        _get(f"{path}/-/configs", configs.list_configs_of_topics, "TopicConfigDataList", "List all topics' configs"),
        Operation(
            method="POST", path=f"{path}/-/configs:alter", answer=configs.alter_configs_of_topics,
            summary="Change the configurations of many topics", action=ADMIN, body="AlterTopicsConfigsRequest",
        ),
        _get(
            f"{path}/-/partitions/-/reassignment", partitions.list_all_reassignments, "ReassignmentDataList",
            "List all reassignments",
        ),
        _get(TOPIC, topics.get_topic, "TopicData", "Get a topic", of=of),
        Operation(
            method="PATCH", path=TOPIC, answer=topics.add_partitions, summary="Add partitions to a topic",
            action=ADMIN, of=of, body="UpdatePartitionCountRequest", success={200: "TopicData"},
        ),
        Operation(
            method="DELETE", path=TOPIC, answer=topics.delete_topic, summary="Delete a topic", action=ADMIN, of=of
        ),
        *_configs(f"{TOPIC}/configs", "TopicConfig", of=of),
        _get(f"{TOPIC}/partitions", partitions.list_partitions, "PartitionDataList", "List partitions", of=of),
        _get(
            f"{TOPIC}/partitions/-/reassignment", partitions.list_reassignments, "ReassignmentDataList",
            "List the reassignments of a topic", of=of,
        ),
        _get(PARTITION, partitions.get_partition, "PartitionData", "Get a partition", of=of),
        _get(f"{PARTITION}/offset", partitions.get_offsets, "PartitionWithOffsetsData", "Get offsets", of=of),
        _get(
            f"{PARTITION}/reassignment", partitions.get_reassignment, "ReassignmentData", "Get a reassignment", of=of
        ),
        _get(f"{PARTITION}/replicas", partitions.list_replicas, "ReplicaDataList", "List replicas", of=of),
        _get(f"{PARTITION}/replicas/{{broker_id}}", partitions.get_replica, "ReplicaData", "Get a replica", of=of),
    ]  # fmt: skip


def _records() -> list[Operation]:
    return [
        Operation(
            method="POST", path=f"{TOPIC}/records", answer=records.produce_records, action=WRITE, of="topic_name",
            summary="Produce records: one after another in the body, one answer for each", body="ProduceRequest",
            is_body_needed=False, success={200: "ProduceResponse"}, errors=(415,),
        ),
        Operation(
            method="POST", path=f"{TOPIC}/records:batch", answer=records.produce_batch, action=WRITE, of="topic_name",
            summary="Produce some records", body="ProduceBatchRequest", success={207: "ProduceBatchResponse"},
            errors=(415,),
        ),
        Operation(
            method="GET", path=f"{TOPIC}/records", answer=events.read_records, action=READ, of="topic_name",
            summary="Read records as they come: server-sent events, or JSON lines", parameters=STREAM_PARAMETERS,
            success={200: None}, answer_types=(events.LINES, events.EVENTS, *events.LINE_TYPES[1:]), errors=(406,),
        ),
    ]  # fmt: skip


def operations() -> Sequence[Operation]:
    """Fixed words before parameters: the first route that fits answers."""
    return [*_cluster(), *_groups(), *_topics(), *_records()]

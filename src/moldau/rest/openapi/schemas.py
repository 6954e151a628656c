"""What requests and answers look like, in JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.rest.calls import Json
from moldau.rest.v3.acls import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES

STRING: Json = {"type": "string"}
NAME: Json = {"type": "string", "minLength": 1, "maxLength": 249}
INTEGER: Json = {"type": "integer", "minimum": 0, "maximum": (1 << 31) - 1}
OFFSET: Json = {"type": "integer", "minimum": 0, "maximum": (1 << 63) - 2}
NUMBER: Json = {"type": "integer"}
BOOLEAN: Json = {"type": "boolean"}
LINK: Json = {"$ref": "#/components/schemas/Relationship"}
ANY: Json = {}
FORMATS = ["BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF"]


def nullable(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def array(items: Json, least: int = 0) -> Json:
    return {"type": "array", "items": items, **({"minItems": least} if least else {})}


def words(*allowed: str) -> Json:
    return {"type": "string", "enum": [*allowed]}


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def fields(**schemas: Json) -> Json:
    """A name that ends in an underscore may be left out."""
    properties = {name.removesuffix("_"): schema for name, schema in schemas.items()}
    required = [name for name in schemas if not name.endswith("_")]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def resource(**own: Json) -> Json:
    metadata = fields(self=STRING, resource_name_=nullable(STRING))
    return fields(kind=STRING, metadata=metadata, cluster_id=STRING, **own)


def collection(name: str) -> Json:
    metadata = fields(self=STRING, next_=nullable(STRING))
    return fields(kind=STRING, metadata=metadata, data=array(ref(name)))


_SOURCE = words(
    "DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_LOGGER_CONFIG", "DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG", "DEFAULT_CONFIG", "UNKNOWN",
)  # fmt: skip
_CONFIG: Mapping[str, Json] = {
    "name": STRING,
    "value": nullable(STRING),
    "is_default": BOOLEAN,
    "is_read_only": BOOLEAN,
    "is_sensitive": BOOLEAN,
    "source": _SOURCE,
    "synonyms": array(fields(name=STRING, value=nullable(STRING), source=_SOURCE)),
}
_PARTITION: Mapping[str, Json] = {"topic_name": STRING, "partition_id": INTEGER}
_MEMBER: Mapping[str, Json] = {"consumer_id": STRING, "instance_id": nullable(STRING), "client_id": STRING}
_GROUP: Mapping[str, Json] = {"consumer_group_id": STRING}
_DATA: Json = fields(
    type_=words(*FORMATS),
    subject_=nullable(STRING),
    subject_name_strategy_=nullable(words("TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME")),
    schema_id_=nullable(INTEGER),
    schema_version_=nullable(INTEGER),
    schema_=nullable(STRING),
    data_=ANY,
)
_RECORD: Mapping[str, Json] = {
    "partition_id_": nullable(INTEGER),
    "headers_": array(fields(name=STRING, value_=nullable({"type": "string", "format": "byte"}))),
    "key_": nullable(ref("ProduceRequestData")),
    "value_": nullable(ref("ProduceRequestData")),
    "timestamp_": nullable({"type": "string", "format": "date-time"}),
}
_WRITTEN: Json = fields(
    type=nullable(words(*FORMATS)), size=INTEGER, subject_=STRING, schema_id_=INTEGER, schema_version_=INTEGER
)
_DELIVERED: Mapping[str, Json] = {
    "cluster_id_": STRING,
    "topic_name_": STRING,
    "partition_id_": INTEGER,
    "offset_": NUMBER,
    "timestamp_": nullable(STRING),
    "key_": _WRITTEN,
    "value_": _WRITTEN,
}
_CHANGE: Json = fields(name=NAME, value_=nullable(STRING), operation_=nullable(words("SET", "DELETE")))
_ACL: Mapping[str, Json] = {
    "resource_type": words(*RESOURCE_TYPES[1:]),
    "resource_name": STRING,
    "pattern_type": words(*PATTERN_TYPES[1:]),
    "principal": STRING,
    "host": STRING,
    "operation": words(*OPERATIONS[1:]),
    "permission": words(*PERMISSIONS[1:]),
}

V3: Mapping[str, Json] = {
    "Error": fields(error_code=INTEGER, message=nullable(STRING)),
    "Empty": {"type": "object"},
    "Relationship": fields(related=STRING),
    "ClusterData": resource(
        controller_=LINK, acls=LINK, brokers=LINK, broker_configs=LINK, consumer_groups=LINK, topics=LINK,
        partition_reassignments=LINK,
    ),
    "BrokerData": resource(
        broker_id=INTEGER, host=nullable(STRING), port=nullable(INTEGER), rack=nullable(STRING), configs=LINK,
        partition_replicas=LINK,
    ),
    "TopicData": resource(
        topic_name=STRING, is_internal=BOOLEAN, replication_factor=INTEGER, partitions_count=INTEGER,
        partitions=LINK, configs=LINK, partition_reassignments=LINK, authorized_operations_=array(STRING),
    ),
    "PartitionData": resource(**_PARTITION, leader_=LINK, replicas=LINK, reassignment=LINK),
    "PartitionWithOffsetsData": resource(**_PARTITION, earliest_offset=OFFSET, latest_offset=OFFSET),
    "ReplicaData": resource(
        **_PARTITION, broker_id=INTEGER, is_leader=BOOLEAN, is_in_sync=BOOLEAN, broker=LINK
    ),
    "ReassignmentData": resource(
        **_PARTITION, adding_replicas=array(INTEGER), removing_replicas=array(INTEGER), replicas=LINK
    ),
    "TopicConfigData": resource(topic_name=STRING, **_CONFIG),
    "BrokerConfigData": resource(broker_id=INTEGER, **_CONFIG),
    "ClusterConfigData": resource(config_type=words("BROKER"), **_CONFIG),
    "ConsumerGroupData": resource(
        **_GROUP, is_simple=BOOLEAN, partition_assignor=STRING, state=STRING, type=STRING,
        is_mixed_consumer_group=BOOLEAN, coordinator=LINK, consumers=LINK, lag_summary=LINK,
    ),
    "ConsumerData": resource(**_GROUP, **_MEMBER, assignments=LINK),
    "ConsumerAssignmentData": resource(**_GROUP, consumer_id=STRING, **_PARTITION, partition=LINK, lag=LINK),
    "ConsumerLagData": resource(
        **_GROUP, **_PARTITION, current_offset=NUMBER, log_end_offset=NUMBER, lag=NUMBER, **_MEMBER
    ),
    "ConsumerGroupLagSummaryData": resource(
        **_GROUP, max_lag_consumer_id=STRING, max_lag_instance_id=nullable(STRING), max_lag_client_id=STRING,
        max_lag_topic_name=STRING, max_lag_partition_id=INTEGER, max_lag=NUMBER, total_lag=NUMBER,
        max_lag_consumer=LINK, max_lag_partition=LINK,
    ),
    "AclData": resource(**{**_ACL, "resource_type": STRING, "operation": STRING}),
    "DeletedAcls": fields(data=array(ref("AclData"))),
    **{
        f"{name}DataList": collection(f"{name}Data")
        for name in (
            "Cluster", "Broker", "Topic", "Partition", "Replica", "Reassignment", "TopicConfig", "BrokerConfig",
            "ClusterConfig", "ConsumerGroup", "Consumer", "ConsumerAssignment", "ConsumerLag", "Acl",
        )
    },
    "ProduceRequestData": _DATA,
    "ProduceRequest": fields(**_RECORD),
    "ProduceResponse": fields(error_code=INTEGER, message_=STRING, **_DELIVERED),
    "ProduceBatchRequest": fields(
        entries={
            **array(fields(id={"type": "string", "pattern": "^[0-9a-zA-Z_-]{1,80}$"}, **_RECORD), 1),
            "maxItems": 10,
        }
    ),
    "ProduceBatchResponse": fields(
        successes=array(fields(id=STRING, **_DELIVERED)),
        failures=array(fields(id=STRING, error_code=INTEGER, message_=STRING)),
    ),
    "CreateTopicRequest": fields(
        topic_name=NAME, partitions_count_=nullable(INTEGER), replication_factor_=nullable(INTEGER),
        replicas_assignments_=nullable({"type": "object", "additionalProperties": array(INTEGER)}),
        configs_=array(fields(name=STRING, value_=nullable(STRING))), validate_only_=BOOLEAN,
    ),
    "UpdatePartitionCountRequest": fields(partitions_count=INTEGER),
    "UpdateConfigRequest": fields(value_=nullable(STRING)),
    "AlterConfigBatchRequest": fields(data=array(_CHANGE), validate_only_=BOOLEAN),
    "AlterTopicsConfigsRequest": fields(
        data=array(fields(topic_name=NAME, configs_=array(_CHANGE))), validate_only_=BOOLEAN
    ),
    "CreateAclRequest": fields(**_ACL),
    "CreateAclBatchRequest": fields(data=array(ref("CreateAclRequest"))),
}  # fmt: skip

_PLACE: Mapping[str, Json] = {"topic": NAME, "partition": INTEGER}
_REPLICA = fields(broker=INTEGER, leader=BOOLEAN, in_sync=BOOLEAN)

V2: Mapping[str, Json] = {
    "TopicNames": array(STRING),
    "PartitionV2": fields(partition=INTEGER, leader=NUMBER, replicas=array(_REPLICA)),
    "PartitionsV2": array(ref("PartitionV2")),
    "TopicV2": fields(
        name=STRING, configs={"type": "object", "additionalProperties": nullable(STRING)},
        partitions=ref("PartitionsV2"),
    ),
    "PartitionOffsetsV2": fields(beginning_offset=OFFSET, end_offset=OFFSET),
    "BrokersV2": fields(brokers=array(INTEGER)),
    "ProduceRequestV2": fields(
        records=array(fields(key_=ANY, value_=ANY, partition_=nullable(INTEGER)), 1),
        key_schema_=nullable(STRING), key_schema_id_=nullable(INTEGER),
        value_schema_=nullable(STRING), value_schema_id_=nullable(INTEGER),
    ),
    "ProduceResponseV2": fields(
        offsets=array(
            fields(
                partition=nullable(INTEGER), offset=nullable(NUMBER), error_code=nullable(INTEGER),
                error=nullable(STRING),
            )
        ),
        key_schema_id=nullable(INTEGER), value_schema_id=nullable(INTEGER),
    ),
    "NewInstance": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "pattern": "^[A-Za-z0-9._:@+=,~-]{1,249}$"},
            "format": words("binary", "json", "avro", "jsonschema", "protobuf"),
            "auto.offset.reset": words("earliest", "latest", "none"),
            "auto.commit.enable": words("true", "false"),
            "fetch.min.bytes": {"type": "integer", "minimum": -1, "maximum": 10_000_000},
            "consumer.request.timeout.ms": {"type": "integer", "minimum": 1, "maximum": 3_600_000},
        },
    },
    "InstanceMade": fields(instance_id=STRING, base_uri=STRING),
    "Subscription": fields(topics_=array(NAME), topic_pattern_=STRING),
    "Subscribed": fields(topics=array(STRING)),
    "Places": fields(partitions=array(fields(**_PLACE))),
    "Positions": fields(
        offsets_=array(fields(**_PLACE, offset=OFFSET, metadata_=nullable(STRING))),
        timestamps_=array(
            fields(**_PLACE, timestamp={"type": "string", "format": "date-time"}, metadata_=nullable(STRING))
        ),
    ),
    "OffsetsV2": fields(offsets=array(fields(**_PLACE, offset=OFFSET, metadata_=nullable(STRING)))),
    "RecordsV2": array(fields(topic=STRING, key=ANY, value=ANY, partition=INTEGER, offset=NUMBER)),
}  # fmt: skip

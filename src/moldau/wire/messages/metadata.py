"""Metadata (3): the brokers of the cluster, and where the partitions of topics are.

In version 0 no topics means all topics; from 1 on that is null, and an empty list is none. 4 lets the client forbid
creation of topics, 7 adds leader epochs, 8 authorised operations, 9 is flexible, 10 adds topic ids, 12 lets topics be
asked for by id alone, 13 brings an error of the whole request.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, Uuid, nullable, since, within


class MetadataRequestTopic(Struct, gc=False):
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    name: Annotated[str | None, nullable(10)] = ""


class MetadataRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.METADATA
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE_FROM: ClassVar[int] = 9

    topics: Annotated[list[MetadataRequestTopic] | None, nullable(1)] = []
    allow_auto_topic_creation: Annotated[bool, since(4)] = True
    include_cluster_authorized_operations: Annotated[bool, within(8, 10)] = False
    include_topic_authorized_operations: Annotated[bool, since(8)] = False


class MetadataResponseBroker(Struct, gc=False):
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: Annotated[str | None, since(1), IGNORABLE] = None


class MetadataResponsePartition(Struct, gc=False):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Annotated[Int32, since(7), IGNORABLE] = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    offline_replicas: Annotated[list[Int32], since(5), IGNORABLE] = []


class MetadataResponseTopic(Struct, gc=False):
    error_code: Int16 = 0
    name: Annotated[str | None, nullable(12)] = ""
    topic_id: Annotated[Uuid, since(10), IGNORABLE] = ZERO_UUID
    is_internal: Annotated[bool, since(1), IGNORABLE] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[Int32, since(8)] = -(2**31)


class MetadataResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.METADATA
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE_FROM: ClassVar[int] = 9

    throttle_time_ms: Annotated[Int32, since(3), IGNORABLE] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[str | None, since(2), IGNORABLE] = None
    controller_id: Annotated[Int32, since(1), IGNORABLE] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[Int32, within(8, 10)] = -(2**31)
    error_code: Annotated[Int16, since(13), IGNORABLE] = 0

"""Produce (0): append record batches to partitions.

Versions 0 to 2 carried older message formats and are gone; a broker still lists them, because librdkafka takes their
absence for a broker without compression. 3 brings transactions, 7 zstd, 8 errors per record, 9 is flexible, 10 tells
where the leader went, 11 lets a transaction be aborted on error, 12 adds partitions to a transaction on the way, and 13
names topics by id.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from moldau.wire.schema import IGNORABLE, Int16, Int32, Int64, Records, Uuid, since, tagged, until


class PartitionProduceData(Struct, gc=False):
    index: Int32 = 0
    records: Records | None = None


class TopicProduceData(Struct, gc=False):
    name: Annotated[str, until(12), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(13), IGNORABLE] = ZERO_UUID
    partition_data: list[PartitionProduceData] = []


class ProduceRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.PRODUCE
    VERSIONS: ClassVar[tuple[int, int]] = (3, 13)
    FLEXIBLE_FROM: ClassVar[int] = 9

    transactional_id: str | None = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Struct, gc=False):
    batch_index: Int32 = 0
    batch_index_error_message: str | None = None


class PartitionProduceResponse(Struct, gc=False):
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, since(5), IGNORABLE] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8), IGNORABLE] = []
    error_message: Annotated[str | None, since(8), IGNORABLE] = None
    current_leader: Annotated[LeaderIdAndEpoch, tagged(0, since=10)] = LeaderIdAndEpoch()


class TopicProduceResponse(Struct, gc=False):
    name: Annotated[str, until(12), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(13), IGNORABLE] = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = []


class ProduceResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.PRODUCE
    VERSIONS: ClassVar[tuple[int, int]] = (3, 13)
    FLEXIBLE_FROM: ClassVar[int] = 9

    responses: list[TopicProduceResponse] = []
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=10)] = []

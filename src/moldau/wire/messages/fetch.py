"""Fetch (1): read record batches from partitions, by consumers and by followers.

4 is the first with today's batches. 5 adds the log start offset, 7 fetch sessions, 9 the leader epoch, 10 zstd, 11
racks, 12 is flexible and finds diverging logs, 13 names topics by id, 15 moves the follower's identity into a tagged
field, 16 tells where the leader went, 17 adds the follower's directory and 18 its high watermark.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from moldau.wire.schema import IGNORABLE, Int8, Int16, Int32, Int64, Records, Uuid, since, tagged, until


class ReplicaState(Struct, frozen=True, gc=False):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Struct, gc=False):
    partition: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(9), IGNORABLE] = -1
    fetch_offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5), IGNORABLE] = -1
    partition_max_bytes: Int32 = 0
    replica_directory_id: Annotated[Uuid, tagged(0, since=17), IGNORABLE] = ZERO_UUID
    high_watermark: Annotated[Int64, tagged(1, since=18), IGNORABLE] = 2**63 - 1


class FetchTopic(Struct, gc=False):
    topic: Annotated[str, until(12), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(13), IGNORABLE] = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Struct, gc=False):
    topic: Annotated[str, until(12), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(13), IGNORABLE] = ZERO_UUID
    partitions: list[Int32] = []


class FetchRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.FETCH
    VERSIONS: ClassVar[tuple[int, int]] = (4, 18)
    FLEXIBLE_FROM: ClassVar[int] = 12

    cluster_id: Annotated[str | None, tagged(0, since=12), IGNORABLE] = None
    replica_id: Annotated[Int32, until(14)] = -1
    replica_state: Annotated[ReplicaState, tagged(1, since=15)] = ReplicaState()
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 2**31 - 1
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, since(7), IGNORABLE] = 0
    session_epoch: Annotated[Int32, since(7), IGNORABLE] = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7)] = []
    rack_id: Annotated[str, since(11), IGNORABLE] = ""


class EpochEndOffset(Struct, frozen=True, gc=False):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class SnapshotId(Struct, frozen=True, gc=False):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Struct, gc=False):
    producer_id: Int64 = 0
    first_offset: Int64 = 0


class PartitionData(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, since(5), IGNORABLE] = -1
    diverging_epoch: Annotated[EpochEndOffset, tagged(0, since=12)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, tagged(1, since=12)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, tagged(2, since=12)] = SnapshotId()
    aborted_transactions: list[AbortedTransaction] | None = []
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    records: Records | None = None


class FetchableTopicResponse(Struct, gc=False):
    topic: Annotated[str, until(12), IGNORABLE] = ""
    topic_id: Annotated[Uuid, since(13), IGNORABLE] = ZERO_UUID
    partitions: list[PartitionData] = []


class FetchResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.FETCH
    VERSIONS: ClassVar[tuple[int, int]] = (4, 18)
    FLEXIBLE_FROM: ClassVar[int] = 12

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(7), IGNORABLE] = 0
    session_id: Annotated[Int32, since(7)] = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=16)] = []

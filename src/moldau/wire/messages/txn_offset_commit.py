"""TxnOffsetCommit (28): offsets of a group that count when their transaction commits.

2 adds the leader epoch, 3 is flexible and names the member, so that one of an old generation is refused. 4 lets a
transaction be aborted on error, 5 also adds the group to the transaction and so spares an AddOffsetsToTxn.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, Int64, since


class TxnOffsetCommitRequestPartition(Struct, gc=False):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(2), IGNORABLE] = -1
    committed_metadata: str | None = ""


class TxnOffsetCommitRequestTopic(Struct, gc=False):
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []


class TxnOffsetCommitRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.TXN_OFFSET_COMMIT
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 3

    transactional_id: str = ""
    group_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Annotated[Int32, since(3)] = -1
    member_id: Annotated[str, since(3)] = ""
    group_instance_id: Annotated[str | None, since(3)] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class TxnOffsetCommitResponseTopic(Struct, gc=False):
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []


class TxnOffsetCommitResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.TXN_OFFSET_COMMIT
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 3

    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []

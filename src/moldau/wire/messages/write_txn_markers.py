"""WriteTxnMarkers (27): the coordinator has the leaders write, into every partition, how a transaction ended.

1 is the oldest left and flexible, 2 adds the version of transactions that the producer was using.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int8, Int16, Int32, Int64, since


class WritableTxnMarkerTopic(Struct, gc=False):
    name: str = ""
    partition_indexes: list[Int32] = []


class WritableTxnMarker(Struct, gc=False):
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: Int32 = 0
    transaction_version: Annotated[Int8, since(2), IGNORABLE] = 0


class WriteTxnMarkersRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.WRITE_TXN_MARKERS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int] = 1

    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class WritableTxnMarkerTopicResult(Struct, gc=False):
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


class WritableTxnMarkerResult(Struct, gc=False):
    producer_id: Int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


class WriteTxnMarkersResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.WRITE_TXN_MARKERS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE_FROM: ClassVar[int] = 1

    markers: list[WritableTxnMarkerResult] = []

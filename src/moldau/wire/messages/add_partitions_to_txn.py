"""AddPartitionsToTxn (24): a transaction is about to write to partitions.

2 tells a fenced producer so, 3 is flexible and the last that clients speak. 4 is for brokers: many transactions at
once, and the question whether partitions are in a transaction already. 5 lets a transaction be aborted on error.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, Int64, since, until


class AddPartitionsToTxnTopic(Struct, gc=False):
    name: str = ""
    partitions: list[Int32] = []


class AddPartitionsToTxnTransaction(Struct, gc=False):
    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = []


class AddPartitionsToTxnRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ADD_PARTITIONS_TO_TXN
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 3

    transactions: Annotated[list[AddPartitionsToTxnTransaction], since(4)] = []
    v3_and_below_transactional_id: Annotated[str, until(3)] = ""
    v3_and_below_producer_id: Annotated[Int64, until(3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, until(3)] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], until(3)] = []


class AddPartitionsToTxnPartitionResult(Struct, gc=False):
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


class AddPartitionsToTxnTopicResult(Struct, gc=False):
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


class AddPartitionsToTxnResult(Struct, gc=False):
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = []


class AddPartitionsToTxnResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ADD_PARTITIONS_TO_TXN
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_FROM: ClassVar[int] = 3

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(4), IGNORABLE] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], since(4)] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], until(3)] = []

"""AlterPartition (56): a leader asks the controller for another ISR.

3 has the epochs of the brokers in it, so that one that started anew is not taken for the one before. Every version is
flexible, and partitions go by the id of their topic.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int8, Int16, Int32, Int64, Uuid, since, until


class BrokerState(Struct, gc=False):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


class IsrOfPartition(Struct, gc=False):
    partition_index: Int32 = 0
    leader_epoch: Int32 = 0
    new_isr: Annotated[list[Int32], until(2)] = []
    new_isr_with_epochs: Annotated[list[BrokerState], since(3)] = []
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32 = 0


class IsrOfTopic(Struct, gc=False):
    topic_id: Annotated[Uuid, IGNORABLE] = ZERO_UUID
    partitions: list[IsrOfPartition] = []


class AlterPartitionRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_PARTITION
    VERSIONS: ClassVar[tuple[int, int]] = (2, 3)
    FLEXIBLE_FROM: ClassVar[int] = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    topics: list[IsrOfTopic] = []


class PartitionData(Struct, gc=False):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    isr: list[Int32] = []
    leader_recovery_state: Annotated[Int8, IGNORABLE] = 0
    partition_epoch: Int32 = 0


class TopicData(Struct, gc=False):
    topic_id: Annotated[Uuid, IGNORABLE] = ZERO_UUID
    partitions: list[PartitionData] = []


class AlterPartitionResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_PARTITION
    VERSIONS: ClassVar[tuple[int, int]] = (2, 3)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[TopicData] = []

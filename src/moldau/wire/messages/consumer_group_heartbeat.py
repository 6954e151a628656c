"""ConsumerGroupHeartbeat (68): all that a member of a consumer group says, from joining to leaving, and its assignment.

A null in the request means that nothing changed since the last one; a null assignment in the answer means the same. 1
adds subscription by regular expression, and has members make up their own ids.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32, Uuid, since


class TopicPartitions(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []


class ConsumerGroupHeartbeatRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CONSUMER_GROUP_HEARTBEAT
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 0

    group_id: str = ""
    member_id: str = ""
    member_epoch: Int32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: Annotated[str | None, since(1)] = None
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None


class Assignment(Struct, gc=False):
    topic_partitions: list[TopicPartitions] = []


class ConsumerGroupHeartbeatResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CONSUMER_GROUP_HEARTBEAT
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None

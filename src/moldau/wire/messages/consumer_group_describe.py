"""ConsumerGroupDescribe (69): the state and the members of consumer groups, with what each has and is to have.

1 adds which protocol a member speaks, since classic members may be in such a group too.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct, field

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int8, Int16, Int32, Uuid, since


class ConsumerGroupDescribeRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CONSUMER_GROUP_DESCRIBE
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 0

    group_ids: list[str] = []
    include_authorized_operations: bool = False


class TopicPartitions(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[Int32] = []


class Assignment(Struct, gc=False):
    topic_partitions: list[TopicPartitions] = []


class Member(Struct, gc=False):
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: Int32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: str | None = None
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    member_type: Annotated[Int8, since(1), IGNORABLE] = -1


class DescribedGroup(Struct, gc=False):
    error_code: Int16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: str = ""
    members: list[Member] = []
    authorized_operations: Int32 = -(2**31)


class ConsumerGroupDescribeResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CONSUMER_GROUP_DESCRIBE
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = []

"""CreateTopics (19): make topics, with a number of partitions or an assignment by hand.

4 allows -1 for the broker's defaults, 5 is flexible and returns the new topic's configuration, 6 may answer that a
quota is exceeded, 7 returns the topic id.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int8, Int16, Int32, Uuid, since, tagged


class CreatableReplicaAssignment(Struct, gc=False):
    partition_index: Int32 = 0
    broker_ids: list[Int32] = []


class CreatableTopicConfig(Struct, gc=False):
    name: str = ""
    value: str | None = ""


class CreatableTopic(Struct, gc=False):
    name: str = ""
    num_partitions: Int32 = 0
    replication_factor: Int16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


class CreateTopicsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CREATE_TOPICS
    VERSIONS: ClassVar[tuple[int, int]] = (2, 7)
    FLEXIBLE_FROM: ClassVar[int] = 5

    topics: list[CreatableTopic] = []
    timeout_ms: Int32 = 60000
    validate_only: bool = False


class CreatableTopicConfigs(Struct, gc=False):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False


class CreatableTopicResult(Struct, gc=False):
    name: str = ""
    topic_id: Annotated[Uuid, since(7), IGNORABLE] = ZERO_UUID
    error_code: Int16 = 0
    error_message: str | None = ""
    topic_config_error_code: Annotated[Int16, tagged(0, since=5), IGNORABLE] = 0
    num_partitions: Annotated[Int32, since(5), IGNORABLE] = -1
    replication_factor: Annotated[Int16, since(5), IGNORABLE] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, since(5), IGNORABLE] = []


class CreateTopicsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CREATE_TOPICS
    VERSIONS: ClassVar[tuple[int, int]] = (2, 7)
    FLEXIBLE_FROM: ClassVar[int] = 5

    throttle_time_ms: Int32 = 0
    topics: list[CreatableTopicResult] = []

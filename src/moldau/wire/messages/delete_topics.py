"""DeleteTopics (20): remove topics, by name or, from 6 on, by id.

4 is flexible, and 5 adds error messages.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.core.ids import ZERO_UUID
from moldau.wire.api import ApiKey
from moldau.wire.schema import IGNORABLE, Int16, Int32, Uuid, nullable, since, until


class DeleteTopicState(Struct, gc=False):
    name: str | None = None
    topic_id: Uuid = ZERO_UUID


class DeleteTopicsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DELETE_TOPICS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 6)
    FLEXIBLE_FROM: ClassVar[int] = 4

    topics: Annotated[list[DeleteTopicState], since(6)] = []
    topic_names: Annotated[list[str], until(5), IGNORABLE] = []
    timeout_ms: Int32 = 0


class DeletableTopicResult(Struct, gc=False):
    name: Annotated[str | None, nullable(6)] = ""
    topic_id: Annotated[Uuid, since(6), IGNORABLE] = ZERO_UUID
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(5), IGNORABLE] = None


class DeleteTopicsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DELETE_TOPICS
    VERSIONS: ClassVar[tuple[int, int]] = (1, 6)
    FLEXIBLE_FROM: ClassVar[int] = 4

    throttle_time_ms: Int32 = 0
    responses: list[DeletableTopicResult] = []

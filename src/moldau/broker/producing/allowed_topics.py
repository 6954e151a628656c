"""What a client may write of what its Produce brings. Denied topics are as good as not here, but for the error."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from moldau.broker.rights import TOPIC, TRANSACTIONAL_ID, WRITE
from moldau.core.errors import ErrorCode
from moldau.replication.partition import Partition
from moldau.wire.batch import TRANSACTIONAL
from moldau.wire.messages import ProduceRequest

if TYPE_CHECKING:
    from moldau.broker.context import Context
    from moldau.broker.handlers.produce import Work
    from moldau.broker.topics.partitions import Partitions

TOPIC_IDS_SINCE = 13
ATTRIBUTES_LOW_AT = 22


class AllowedPartitions:
    """Of the partitions that are here, those of topics that the client may write to."""

    __slots__ = ("_denied", "_partitions")

    def __init__(self, partitions: Partitions, denied: Set[str]) -> None:
        self._partitions = partitions
        self._denied = denied

    def get(self, topic: str, index: int) -> Partition | None:
        return None if topic in self._denied else self._partitions.get(topic, index)

    def get_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        partition = self._partitions.get_by_id(topic_id, index)
        return None if partition is None or partition.topic in self._denied else partition


def restrict_produce(request: ProduceRequest, work: Work, context: Context) -> ErrorCode | None:
    """Leave out what is denied; the error if all of it is, because of the transaction."""
    if _is_transactional(request):
        named = request.transactional_id
        if named is None or not context.may(WRITE, TRANSACTIONAL_ID, named):
            work.has_refusal = True
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    denied = context.denied(WRITE, TOPIC, written_topics(request, context))
    if denied:
        work.denied = denied
        work.partitions = AllowedPartitions(context.services.partitions, denied)
    return None


def written_topics(request: ProduceRequest, context: Context) -> list[str]:
    if context.version < TOPIC_IDS_SINCE:
        return [topic.name for topic in request.topic_data]
    ids = context.services.controller.image.topic_ids
    return [name for topic in request.topic_data if (name := ids.get(topic.topic_id)) is not None]


def _is_transactional(request: ProduceRequest) -> bool:
    """Whether any batch is, and not only the first: a right to write to topics is none to end transactions."""
    return any(
        data.records is not None
        and len(data.records) > ATTRIBUTES_LOW_AT
        and data.records[ATTRIBUTES_LOW_AT] & TRANSACTIONAL
        for topic in request.topic_data
        for data in topic.partition_data
    )

"""Whether records may enter a partition as part of a transaction: its coordinator must know that they do.

A partition that the coordinator does not know of gets no marker, and its readers would wait for ever.
"""

from __future__ import annotations

from asyncio import Future, ensure_future
from collections.abc import Mapping

from moldau.broker.context import Services
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import NO_LEADER, TopicPartition
from moldau.core.topic_names import TRANSACTION_STATE_TOPIC
from moldau.transactions.transaction import ProducerIdAndEpoch

# Coordinators that aren't ready: a producer knows nothing of them, so it hears something that it tries again after.
_NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
ADMISSION_S_MAX = 30.0  # Apache Kafka's request.timeout.ms between brokers; the producer tries again then
ADDED_BY_WRITING_SINCE = 12  # of Produce: the second protocol
ABORTABLE_IS_KNOWN_SINCE = 11  # an error that ends only the transaction


def admission(
    services: Services, transactional_id: str, producer: ProducerIdAndEpoch, where: TopicPartition, *, adds: bool
) -> ErrorCode | Future[ErrorCode]:
    """The coordinator's answer, at once unless it is on another broker, or replicas or the disk have to be waited for.

    `adds` for clients of the second protocol: what they write to becomes part of the transaction.
    """
    if not adds and not services.config.flag("transaction.partition.verification.enable"):
        return ErrorCode.NONE
    answer = services.transactions.admit(transactional_id, producer, frozenset({where}), adds=adds)
    if isinstance(answer, Future):
        return ensure_future(_answered(answer, where))
    if answer[where] is ErrorCode.NOT_COORDINATOR and services.remote_admission is not None:
        coordinator = _coordinator(services, transactional_id)
        if coordinator == NO_LEADER:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if coordinator != services.broker_id:  # else it is about to lead there
            elsewhere = services.remote_admission.admit(coordinator, transactional_id, producer, where, adds=adds)
            return ensure_future(_told_elsewhere(elsewhere))
    return _told(answer[where])


def _coordinator(services: Services, transactional_id: str) -> int:
    topic = services.controller.image.topics.get(TRANSACTION_STATE_TOPIC)
    return NO_LEADER if topic is None else topic.partitions[services.transactions.index_of(transactional_id)].leader


async def _told_elsewhere(answer: Future[ErrorCode]) -> ErrorCode:
    return _told(await answer)


async def _answered(answer: Future[Mapping[TopicPartition, ErrorCode]], where: TopicPartition) -> ErrorCode:
    return _told((await answer)[where])


def _told(error: ErrorCode) -> ErrorCode:
    return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error


def check_admitted(error: ErrorCode, *, version: int) -> None:
    """Raises what the producer is to hear in its version of Produce."""
    if error is ErrorCode.NONE:
        return
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_IS_KNOWN_SINCE:
        error = ErrorCode.INVALID_TXN_STATE
    if error is ErrorCode.INVALID_TXN_STATE:
        raise ApiError(error, "Partition was not added to the transaction")
    is_concurrent = error is ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDED_BY_WRITING_SINCE
    if error in _NOT_READY or is_concurrent:
        raise ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {error.name}",
        )
    raise ApiError(error)

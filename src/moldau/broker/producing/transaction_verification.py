"""Whether records may enter a partition as part of a transaction: its coordinator must know that they do.

A partition that the coordinator does not know of gets no marker, and its readers would wait for ever.
"""

from __future__ import annotations

from moldau.broker.context import Services
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicPartition
from moldau.transactions.transaction import ProducerIdAndEpoch

# Coordinators that aren't ready: a producer knows nothing of them, so it hears something that it tries again after.
_NOT_READY = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)


def admission_error(
    services: Services, transactional_id: str, producer: ProducerIdAndEpoch, where: TopicPartition, *, adds: bool
) -> ErrorCode:
    """`adds` for clients of the second protocol: what they write to becomes part of the transaction."""
    if not adds and not services.config.flag("transaction.partition.verification.enable"):
        return ErrorCode.NONE
    error = services.transactions.admit(transactional_id, producer, frozenset({where}), adds=adds)[where]
    return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error


def check_produced(
    services: Services, transactional_id: str, producer: ProducerIdAndEpoch, where: TopicPartition, *, version: int
) -> None:
    """Raises what the producer is to hear. Versions of Produce: 11 knows of errors that end only the transaction, and
    12 is of the second protocol.
    """
    adds = version >= 12
    error = admission_error(services, transactional_id, producer, where, adds=adds)
    if error is ErrorCode.NONE:
        return
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < 11:
        error = ErrorCode.INVALID_TXN_STATE
    if error is ErrorCode.INVALID_TXN_STATE:
        raise ApiError(error, "Partition was not added to the transaction")
    if error in _NOT_READY or (error is ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
        raise ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {error.name}",
        )
    raise ApiError(error)

"""Where a reader that followed another history than this log's must go back to (KIP-320, KIP-595)."""

from __future__ import annotations

from moldau.broker.fetching.fetch_sessions import Wanted
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import NO_PARTITION_LEADER_EPOCH
from moldau.replication.partition import Partition
from moldau.wire.messages.fetch import EpochEndOffset


def diverging_epoch(one: Wanted, partition: Partition) -> EpochEndOffset | None:
    """Where a reader that followed another history must go back to; it says of which epoch it read last."""
    if one.last_epoch == NO_PARTITION_LEADER_EPOCH:
        return None
    epoch, end = partition.epoch_end(one.last_epoch)
    if end < 0:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch == one.last_epoch and one.offset <= end:
        return None
    if one.offset < partition.log.log_start_offset:  # it can't go on here, wherever the histories part
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
    return EpochEndOffset(epoch=epoch, end_offset=end)

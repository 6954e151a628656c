"""The topics and groups of the simulated world, and what is copied from where to where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from moldau.core.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC


class Kind(Enum):
    """Which members a group has."""

    CLASSIC = "of the classic protocol"
    NEW = "of the new protocol"
    MIXED = "of both, so that it goes from one to the other"


@dataclass(frozen=True)
class Pipeline:
    """From an input of known values to an output, by a group's offsets."""

    group_id: str
    source: str
    target: str
    source_count: int
    target_count: int
    records: int
    """In each partition of the source."""
    has_members: bool
    """Partitions are shared out by the group; else each belongs to one transactional id for ever."""

    def value(self, partition: int, offset: int) -> str:
        return f"{self.source}-{partition}:{offset}"


SHARED = Pipeline("copiers", "orders", "copies", 3, 2, 6, has_members=True)
ALONE = Pipeline("loners", "bills", "letters", 2, 2, 6, has_members=False)
COMMITTERS = "committers"  # a group that commits outside of transactions
SUBSCRIBERS = "subscribers"  # and another one, of the new protocol
COUNTS: Mapping[str, int] = MappingProxyType(
    {
        SHARED.source: SHARED.source_count,
        SHARED.target: SHARED.target_count,
        ALONE.source: ALONE.source_count,
        ALONE.target: ALONE.target_count,
        GROUP_METADATA_TOPIC: 2,
        TRANSACTION_STATE_TOPIC: 2,
    }
)

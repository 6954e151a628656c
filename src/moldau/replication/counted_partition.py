"""A partition of a broker with metrics: it counts what is appended, and changes of its ISR."""

from __future__ import annotations

from typing import Any

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.log.partition_log import Appended
from moldau.replication.assignment import Assignment, IsrChange
from moldau.replication.partition import Partition
from moldau.replication.traffic import Traffic


class CountedPartition(Partition):
    __slots__ = ("_all", "_traffic")

    def __init__(self, topic: str, index: int, *, traffic: Traffic, **rest: Any) -> None:
        self._all = traffic
        self._traffic = traffic.of(topic)
        super().__init__(topic, index, **rest)

    def append(self, records: memoryview, **how: Any) -> Appended:
        """As in Apache Kafka a batch that a producer sent again counts again, although it is not stored again."""
        appended = super().append(records, **how)
        traffic = self._traffic
        traffic.bytes_in += len(records)
        traffic.messages_in += appended.last_offset - appended.first_offset + 1
        return appended

    def append_own(self, records: memoryview, **how: Any) -> Appended:
        appended = super().append_own(records, **how)
        traffic = self._traffic
        traffic.bytes_in += len(records)
        traffic.messages_in += appended.last_offset - appended.first_offset + 1
        return appended

    def follow_high_watermark(self, offset: Offset, size_bytes: int) -> None:
        self._traffic.replicated_in += size_bytes
        super().follow_high_watermark(offset, size_bytes)

    def isr_changed(self, change: IsrChange, assignment: Assignment, *, now_ms: int) -> None:
        if change.joining is None:
            self._all.isr_shrinks += 1
        else:
            self._all.isr_expands += 1
        super().isr_changed(change, assignment, now_ms=now_ms)

    def isr_refused(self, change: IsrChange, error: ErrorCode) -> bool:
        self._all.failed_isr_updates += 1
        return super().isr_refused(change, error)

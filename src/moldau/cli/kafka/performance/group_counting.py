"""A member of a group whose records are counted: librdkafka is the member, and we fetch what the member is to read.

librdkafka for Python makes an object of each record, which for small records is all that it does. So its partitions are
paused, and it does the rest of a consumer's work: joining, heartbeats, commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from moldau.cli.failures import CommandFailed
from moldau.cli.librdkafka import kafka_error
from moldau.client.cluster import Cluster
from moldau.client.counting import Batches, Counted, count, find_batches
from moldau.client.listing import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from moldau.client.reading import Failed, Limits, Reader
from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation
from moldau.core.ids import TopicPartition

# Not to be given out, and what was counted is what is committed.
MEMBER_SETTINGS: Mapping[str, object] = {"enable.auto.offset.store": False}
JOINING_POLL_S = 0.005  # a poll goes on after partitions were assigned, until there is a record or its time is up
RESETS = {
    "smallest": EARLIEST, "earliest": EARLIEST, "beginning": EARLIEST,
    "largest": LATEST, "latest": LATEST, "end": LATEST,
}  # fmt: skip


class GroupCounting:
    """Whoever opens it closes it, and the consumer and the cluster after it."""

    def __init__(self, consumer: Consumer, cluster: Cluster, config: Mapping[str, Any]) -> None:
        self._consumer = consumer
        self._cluster = cluster
        self._reset = RESETS.get(str(config["auto.offset.reset"]))
        committed = str(config.get("isolation.level", "")).lower() == "read_committed"
        self._reader = Reader(
            cluster,
            decode=find_batches,
            isolation=READ_COMMITTED if committed else READ_UNCOMMITTED,
            limits=_limits(config),
        )
        self._assigned: list[Place] = []
        self._timeout_s = cluster.timeout_s

    def close(self) -> None:
        self._reader.close()

    def subscribe(self, topics: Sequence[str], *, on_assign: Callable[[], None], on_revoke: Callable[[], None]) -> None:
        def assigned(_consumer: Consumer, places: list[Place]) -> None:
            self._assigned += places
            on_assign()

        def revoked(_consumer: Consumer, places: list[Place]) -> None:
            self._reader.drop(map(_ours, places))
            on_revoke()

        self._consumer.subscribe([*topics], on_assign=assigned, on_revoke=revoked, on_lost=revoked)

    def next(self, *, timeout_s: float, records_max: int) -> Counted | None:
        """What one answer held; None if nothing came in that time."""
        # Without partitions only the group can bring something.
        told = self._consumer.poll(0 if self._reader.positions else min(timeout_s, JOINING_POLL_S))
        if told is not None and told.error() is not None:
            raise KafkaException(told.error())
        if self._assigned:
            self._begin()
        if not self._reader.positions:
            return None
        event = self._reader.next(timeout_s=timeout_s)
        if event is None:
            return None
        if isinstance(event, Failed):
            self._go_on_behind(event)
            return None
        return self._counted(event.records, records_max)

    def _begin(self) -> None:
        """At what the group has committed, or where its setting says."""
        places, self._assigned = self._assigned, []
        self._consumer.pause(places)
        known = {_ours(each): each.offset for each in self._consumer.committed(places, timeout=self._timeout_s)}
        missing = [place for place, offset in known.items() if offset < 0]
        self._reader.add({**known, **self._offsets_of(missing)})

    def _offsets_of(self, missing: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        if not missing:
            return {}
        if self._reset is None:
            raise CommandFailed(f"{missing[0]}: the group has no offset, and auto.offset.reset is no place to begin")
        return list_offsets(self._cluster, dict.fromkeys(missing, self._reset))

    def _go_on_behind(self, failed: Failed) -> None:
        """What was deleted under the reader is passed over, as a consumer does."""
        if failed.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise CommandFailed(f"{failed.place}: {failed.told}")
        self._reader.add(self._offsets_of([failed.place]))

    def _counted(self, batches: Batches, records_max: int) -> Counted:
        try:
            found = count(batches, records_max=records_max)
        except (ApiError, ProtocolViolation) as damaged:
            raise CommandFailed(f"{batches.place}: {damaged}") from None
        try:
            self._consumer.store_offsets(offsets=[Place(*batches.place, found.next_offset)])
        except KafkaException as wrong:
            if kafka_error(wrong).code() != KafkaError._STATE:  # it was taken away in the meantime
                raise
        return found


def _ours(place: Place) -> TopicPartition:
    return TopicPartition(place.topic, place.partition)


def _limits(config: Mapping[str, Any]) -> Limits:
    """As a consumer has them; librdkafka has looked at the values before."""
    usual = Limits()
    return Limits(
        answer_bytes=int(config.get("fetch.max.bytes", usual.answer_bytes)),
        partition_bytes=int(config["max.partition.fetch.bytes"]),
        bytes_min=int(config.get("fetch.min.bytes", usual.bytes_min)),
        wait_ms=int(config.get("fetch.wait.max.ms", usual.wait_ms)),
        socket_bytes=int(config["socket.receive.buffer.bytes"]) or None,
    )

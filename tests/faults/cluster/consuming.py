"""Members of a group, and readers of all partitions from their beginnings."""

from __future__ import annotations

import time
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tests.faults.cluster import history as h
from tests.faults.cluster.history import Read
from tests.faults.cluster.worker import GROUP, PLAIN, TOPICS, Sessions, World

POLL_RECORDS_MAX = 500
POLL_S = 0.2
QUIET_S = 2.0


def reads(messages: Iterable[Message]) -> list[Read]:
    return [
        (message.topic(), message.partition(), message.offset(), (message.value() or b"").decode(errors="replace"))
        for message in messages
        if message.error() is None
    ]


def note_errors(world: World, name: str, messages: Iterable[Message]) -> None:
    for message in messages:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            world.history.note(name, "poll", "fail", error=str(error))


def follow_ends(ends: set[tuple[str | None, int | None]], messages: Iterable[Message]) -> None:
    """Which partitions were read to their ends, as the client tells.

    Consumer.position() would tell, too, but it waits for locks of the client without letting other threads go on, one
    of which may have them: a whole process of clients once stood still for it.
    """
    for message in messages:
        place, error = (message.topic(), message.partition()), message.error()
        if error is None:
            ends.discard(place)
        elif error.code() == KafkaError._PARTITION_EOF:
            ends.add(place)


class GroupMember:
    """Reads its part of a topic and commits what it has read: all members together must see everything."""

    def __init__(self, world: World, name: str, seed: int) -> None:
        self.world = world
        self.name = name
        self._sessions = Sessions(name)

    def is_done(self) -> bool:
        return self.world.stopping.is_set()

    def session(self) -> None:
        world, name = self.world, self._sessions.next()
        world.history.note(name, h.VIEW, h.INVOKE, viewer=GROUP, topics=[PLAIN])
        consumer = Consumer(
            world.client(
                group_id=GROUP, enable_auto_commit=False, auto_offset_reset="earliest", check_crcs=True,
                isolation_level="read_uncommitted", session_timeout_ms=10_000,
            )
        )  # fmt: skip

        def moved(_: Consumer, partitions: list[TopicPartition]) -> None:
            owned = [(each.topic, each.partition) for each in partitions]
            world.history.note(name, h.ASSIGN, h.OK, viewer=GROUP, partitions=owned)

        consumer.subscribe([PLAIN], on_assign=moved, on_revoke=moved, on_lost=moved)
        try:
            while not self.is_done():
                messages = consumer.consume(POLL_RECORDS_MAX, POLL_S)
                note_errors(world, name, messages)
                records = reads(messages)
                if records:
                    world.history.note(name, h.POLL, h.OK, viewer=GROUP, records=records)
                    consumer.commit(asynchronous=True)
        finally:
            consumer.close()


class Reader:
    """All partitions of all topics from offset 0; it says so when it has come to their ends, once all senders ended."""

    def __init__(self, world: World, name: str, seed: int, *, committed: bool) -> None:
        self.world = world
        self.name = name
        self._committed = committed
        self._sessions = Sessions(name)

    def is_done(self) -> bool:
        return self.world.stopping.is_set()

    def session(self) -> None:
        world, name = self.world, self._sessions.next()
        world.history.note(
            name, h.VIEW, h.INVOKE, viewer=self.name, topics=list(TOPICS), committed=self._committed
        )  # fmt: skip
        level = "read_committed" if self._committed else "read_uncommitted"
        consumer = Consumer(
            world.client(
                group_id=f"{name} alone", enable_auto_commit=False, auto_offset_reset="error", check_crcs=True,
                isolation_level=level, enable_partition_eof=True,
            )
        )  # fmt: skip
        everything = [TopicPartition(topic, index, 0) for topic in TOPICS for index in range(world.partitions)]
        consumer.assign(everything)
        world.history.note(
            name, h.ASSIGN, h.OK, viewer=self.name, offset=0,
            partitions=[(each.topic, each.partition) for each in everything],
        )  # fmt: skip
        try:
            self._read(consumer, name, count=len(everything))
        finally:
            consumer.close()

    def _read(self, consumer: Consumer, name: str, *, count: int) -> None:
        world, quiet_since_s, is_told = self.world, time.monotonic(), False
        ends: set[tuple[str | None, int | None]] = set()
        while not self.is_done():
            messages = consumer.consume(POLL_RECORDS_MAX, POLL_S)
            note_errors(world, name, messages)
            follow_ends(ends, messages)
            records = reads(messages)
            if records:
                quiet_since_s = time.monotonic()
                world.history.note(
                    name, h.POLL, h.OK, viewer=self.name, committed=self._committed, records=records
                )  # fmt: skip
            is_at_the_end = len(ends) == count and time.monotonic() - quiet_since_s > QUIET_S
            if world.draining.is_set() and is_at_the_end and not is_told:
                is_told = True
                world.history.note(name, h.VIEW, h.OK, viewer=self.name)

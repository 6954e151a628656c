"""Transactional copiers: each record of a topic to another one exactly once, with the offsets in the transaction."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from itertools import count
from queue import Empty, SimpleQueue

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.faults.cluster import history as h
from tests.faults.cluster.consuming import note_errors, reads
from tests.faults.cluster.history import Read
from tests.faults.cluster.producing import Sending, abort, commit, transactional_producer
from tests.faults.cluster.worker import COPIED, COPIERS, PLAIN, Sessions, World

BATCH_MAX = 300
POLL_S = 0.3
ANSWER_S_MAX = 45.0


def within(timeout_s: float, call: Callable[[], None]) -> None:
    """As the call itself, but for one that never returns: its client is given up then.

    librdkafka's send_offsets_to_transaction sometimes waits without end after its connections broke.
    """
    outcomes: SimpleQueue[BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            call()
        except BaseException as wrong:
            outcomes.put(wrong)
        else:
            outcomes.put(None)

    threading.Thread(target=work, daemon=True).start()
    try:
        wrong = outcomes.get(timeout=timeout_s)
    except Empty:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the client does not return")) from None
    if wrong is not None:
        raise wrong


class Copier:
    def __init__(self, world: World, name: str, seed: int) -> None:
        self.world = world
        self.name = name
        self._sessions = Sessions(name)
        self._numbers = count(1)

    def is_done(self) -> bool:
        return self.world.stopping.is_set()

    def session(self) -> None:
        world, name = self.world, self._sessions.next()
        world.history.note(name, h.VIEW, h.INVOKE, viewer=COPIERS, topics=[PLAIN], committed=True)
        # Its initialisation ends what an earlier session left open, before offsets are asked for.
        producer = transactional_producer(world, self.name)
        sending = Sending(world, name, producer)
        consumer = Consumer(
            world.client(
                group_id=COPIERS, enable_auto_commit=False, auto_offset_reset="earliest", check_crcs=True,
                isolation_level="read_committed", session_timeout_ms=10_000,
            )
        )  # fmt: skip

        def moved(_: Consumer, partitions: list[TopicPartition]) -> None:
            self._note_moved(name, [(each.topic, each.partition) for each in partitions])

        consumer.subscribe([PLAIN], on_assign=moved, on_revoke=moved, on_lost=moved)
        try:
            while not self.is_done():
                messages = consumer.consume(BATCH_MAX, POLL_S)
                note_errors(world, name, messages)
                records = reads(messages)
                if records:
                    world.history.note(name, h.POLL, h.OK, viewer=COPIERS, committed=True, records=records)
                    self._copy(sending, producer, consumer, records)
        finally:
            try:
                sending.close()
            finally:  # a producer that failed for good may raise; a member that stays would hold the group up
                consumer.close()

    def _note_moved(self, name: str, partitions: list[tuple[str, int]]) -> None:
        self.world.history.note(name, h.ASSIGN, h.OK, viewer=COPIERS, partitions=partitions)

    def _copy(self, sending: Sending, producer: Producer, consumer: Consumer, records: list[Read]) -> None:
        txn = f"{self.name}/{next(self._numbers)}"
        producer.begin_transaction()
        next_offsets: dict[tuple[str, int], int] = {}
        first_offsets: dict[tuple[str, int], int] = {}
        for topic, partition, offset, value in records:
            sending.send(COPIED, partition, txn=txn, source=value)
            next_offsets[topic, partition] = offset + 1
            first_offsets.setdefault((topic, partition), offset)
        offsets = [TopicPartition(*each, offset) for each, offset in next_offsets.items()]
        try:
            metadata = consumer.consumer_group_metadata()
            within(ANSWER_S_MAX, lambda: producer.send_offsets_to_transaction(offsets, metadata, 30))
        except KafkaException as wrong:
            if not wrong.args[0].txn_requires_abort():
                raise
            abort(sending, txn)
            self._rewind(sending.name, consumer, first_offsets)
            return
        if not commit(sending, txn):
            self._rewind(sending.name, consumer, first_offsets)

    def _rewind(self, name: str, consumer: Consumer, first_offsets: dict[tuple[str, int], int]) -> None:
        """What was not committed is read again, unless another member got the partition."""
        self._note_moved(name, list(first_offsets))
        for each, offset in first_offsets.items():
            with contextlib.suppress(KafkaException):
                consumer.seek(TopicPartition(*each, offset))

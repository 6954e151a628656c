"""Idempotent producers, and writers of transactions that they commit or abort."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.faults.cluster import history as h
from tests.faults.cluster.worker import PLAIN, TXN, Pace, Sessions, World, outcome

WAITING_MAX = 2_000  # values on their way; beyond that a producer waits for answers
# When librdkafka gives up a message, or a later request of several under way is refused for its sequence, it goes on
# under a new epoch and sends what was under way again with new sequences. No broker can tell that from new messages:
# on Apache Kafka up to 180 records of a run were there twice. So: more time than any fault lasts, one at a time.
IDEMPOTENT = {"enable_idempotence": True, "max_in_flight_requests_per_connection": 1}
MESSAGE_TIMEOUT_MS = 600_000
FLUSH_S_MAX = 60.0
END_S_MAX = 60.0
ABORTED_SHARE = 0.2
OFTEN_PER_S = 5.0


class Sending:
    """One client's sends, each noted when it begins and when its answer, or the lack of one, is known."""

    def __init__(self, world: World, name: str, producer: Producer) -> None:
        self.world = world
        self.name = name
        self.producer = producer
        self.waiting = 0
        self.purged = 0
        self._ids = count(1)

    def send(self, topic: str, partition: int, *, txn: str = "", source: str = "", text: str = "") -> None:
        number = next(self._ids)
        value = f"{text or self.name}:{number}"
        history = self.world.history
        history.note(
            self.name, h.SEND, h.INVOKE, id=number, topic=topic, partition=partition, value=value, txn=txn,
            source=source,
        )  # fmt: skip
        try:
            self.producer.produce(topic, value.encode(), partition=partition, on_delivery=self._heard(number))
        except (BufferError, KafkaException):
            history.note(self.name, h.SEND, h.FAIL, id=number)  # it never left this process
            raise
        self.waiting += 1
        self.producer.poll(0)

    def _heard(self, number: int) -> Callable[[KafkaError | None, Message], None]:
        def heard(error: KafkaError | None, message: Message) -> None:
            self.waiting -= 1
            self.purged += error is not None and error.code() == KafkaError._PURGE_QUEUE
            offset = -1 if error is not None else message.offset()
            text = "" if error is None else str(error)
            self.world.history.note(self.name, h.SEND, outcome(error), id=number, offset=offset, error=text)

        return heard

    def close(self) -> None:
        """Whatever is not answered by now is unknown, and told so."""
        self.producer.flush(FLUSH_S_MAX)
        self.producer.purge()
        self.producer.flush(5)


class IdempotentProducer:
    def __init__(self, world: World, name: str, seed: int) -> None:
        self.world = world
        self.name = name
        self._chance = random.Random(seed)
        self._sessions = Sessions(name)

    def is_done(self) -> bool:
        return self.world.draining.is_set()

    def session(self) -> None:
        world, name = self.world, self._sessions.next()
        fatal: list[KafkaError] = []

        def noticed(error: KafkaError) -> None:
            if error.fatal():
                fatal.append(error)

        settings: dict[str, Any] = world.client(
            **IDEMPOTENT, acks="all", linger_ms=5, message_timeout_ms=MESSAGE_TIMEOUT_MS
        )
        producer = Producer({**settings, "error_cb": noticed})
        mine = Sending(world, name, producer)
        pace = Pace(world.sends_per_s)
        try:
            while not self.is_done() and not fatal:
                pace.wait(world.draining)
                if mine.waiting < WAITING_MAX:
                    mine.send(PLAIN, self._chance.randrange(world.partitions))
                else:
                    producer.poll(0.05)
        finally:
            mine.close()


class TransactionalWriter:
    """Some values to several partitions in each transaction, most of which are committed."""

    def __init__(self, world: World, name: str, seed: int) -> None:
        self.world = world
        self.name = name
        self._chance = random.Random(seed)
        self._sessions = Sessions(name)
        self._numbers = count(1)

    def is_done(self) -> bool:
        return self.world.draining.is_set()

    def session(self) -> None:
        world = self.world
        producer = transactional_producer(world, self.name)
        sending = Sending(world, self._sessions.next(), producer)
        pace = Pace(OFTEN_PER_S)
        try:
            while not self.is_done():
                pace.wait(world.draining)
                txn = f"{self.name}/{next(self._numbers)}"
                producer.begin_transaction()
                for _ in range(self._chance.randrange(1, 6)):
                    sending.send(TXN, self._chance.randrange(world.partitions), txn=txn)
                if self._chance.random() < ABORTED_SHARE:
                    if self._chance.random() < 0.8:
                        producer.flush(5)  # else most would never leave this process
                    abort(sending, txn)
                else:
                    commit(sending, txn)
        finally:
            sending.close()


def transactional_producer(world: World, transactional_id: str) -> Producer:
    settings = world.client(
        transactional_id=transactional_id, linger_ms=5, transaction_timeout_ms=30_000, message_timeout_ms=20_000
    )
    producer = Producer(settings)
    producer.init_transactions(END_S_MAX)
    return producer


def commit(sending: Sending, txn: str) -> bool:
    """Whether it was committed; one that can't be is aborted. Raises KafkaException when nobody knows."""
    history, name = sending.world.history, sending.name
    history.note(name, h.COMMIT, h.INVOKE, txn=txn)
    try:
        _until_answered(lambda: sending.producer.commit_transaction(10))
    except KafkaException as wrong:
        error = wrong.args[0]
        history.note(name, h.COMMIT, h.UNKNOWN, txn=txn, error=str(error))
        if not error.txn_requires_abort():
            raise
        abort(sending, txn)
        return False
    history.note(name, h.COMMIT, h.OK, txn=txn)
    return True


def abort(sending: Sending, txn: str) -> None:
    """Raises KafkaException when nobody knows, or when the client must not be used any more.

    librdkafka forgets messages that an abort finds in its queue, and gives their sequences to the next ones, in the
    same epoch. Those that it had sent before, and was about to send again, may have been written: then the broker takes
    the next ones for their duplicates, acknowledges them, and they are nowhere.
    """
    history, name = sending.world.history, sending.name
    history.note(name, h.ABORT, h.INVOKE, txn=txn)
    try:
        _until_answered(lambda: sending.producer.abort_transaction(10))
    except KafkaException as wrong:
        history.note(name, h.ABORT, h.UNKNOWN, txn=txn, error=str(wrong.args[0]))
        raise
    history.note(name, h.ABORT, h.OK, txn=txn)
    if sending.purged:
        raise KafkaException(KafkaError(KafkaError._PURGE_QUEUE, "sequences of purged messages would be used again"))


def _until_answered(end: Callable[[], None], tries: int = int(END_S_MAX / 10)) -> None:
    for left in range(tries - 1, -1, -1):
        try:
            end()
            return
        except KafkaException as wrong:
            if not (wrong.args[0].retriable() and left):
                raise

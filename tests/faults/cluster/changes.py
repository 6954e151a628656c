"""What operators do to a cluster under load: replicas and leaders move, topics come and go.

Each is a context like a fault. What is asked for is asked of the controller, whoever that is by then.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.faults.cluster import asking
from tests.faults.cluster.cluster import Broker, Cluster
from tests.faults.cluster.worker import CLIENT, PLAIN, TOPICS

if TYPE_CHECKING:
    from tests.faults.cluster.faults import Ground

CHANGE_S_MAX = 120.0
PASSING = "passing"
PASSING_PARTITIONS = 3
PASSING_RECORDS = 60
ELECT_EVERY_S = 1.5


@contextlib.contextmanager
def reassignment(ground: Ground, _: list[Broker]) -> Iterator[None]:
    """Every partition of a topic to other replicas, or fewer where there are no others, and back again."""
    cluster = ground.cluster
    before = {each: state for each, state in cluster.state().partitions.items() if each[0] == PLAIN}
    for (topic, partition), state in before.items():
        others = sorted(set(cluster.brokers) - set(state.replicas))
        wanted = [*state.replicas[1:], *others[:1]]
        _reassign(cluster, topic, partition, wanted)
    try:
        yield
    finally:
        for (topic, partition), state in before.items():
            wanted = list(state.replicas)
            _reassign(cluster, topic, partition, wanted)


@contextlib.contextmanager
def elections(ground: Ground, _: list[Broker]) -> Iterator[None]:
    """Another replica of every partition is preferred, and elected, again and again."""
    cluster = ground.cluster

    def elect() -> None:
        for (topic, partition), state in cluster.state().partitions.items():
            if topic in TOPICS:
                _reassign(cluster, topic, partition, [*state.replicas[1:], state.replicas[0]])
        _until_done(lambda: asking.elect_preferred(_controller(cluster)))

    with _again_and_again(elect, ELECT_EVERY_S):
        yield


@contextlib.contextmanager
def passing_topics(ground: Ground, _: list[Broker]) -> Iterator[None]:
    """Topics of two names are made, written to, read and deleted, again and again."""
    cluster, numbers = ground.cluster, count()

    def pass_by() -> None:
        name = f"{PASSING}-{next(numbers) % 2}"
        copies, config = cluster.shape.replication_factor, {"min.insync.replicas": "1"}
        _until_done(
            lambda: asking.create_topic(
                _controller(cluster), name, partitions=PASSING_PARTITIONS, replication_factor=copies, config=config
            )
        )  # fmt: skip
        try:
            _write_and_read(cluster, name)
        finally:
            _until_done(lambda: asking.delete_topic(_controller(cluster), name))

    with _again_and_again(pass_by, 0.2):
        yield
    deadline_s = time.monotonic() + CHANGE_S_MAX  # the broker that is asked may hear of it later than the controller
    while left := [topic for topic, _ in cluster.state().partitions if topic.startswith(PASSING)]:
        assert time.monotonic() < deadline_s, f"{left[0]} was deleted, and is there"
        time.sleep(0.5)


@contextlib.contextmanager
def _again_and_again(change: Callable[[], None], pause_s: float) -> Iterator[None]:
    """Until the block ends; a change that can't be made ends the fault with its reason."""
    ending, wrong = threading.Event(), list[Exception]()

    def work() -> None:
        while not ending.is_set() and not wrong:
            try:
                change()
            except (OSError, asking.Refused, AssertionError, KafkaException) as error:
                wrong.append(error)
            ending.wait(pause_s)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
    if wrong:
        raise AssertionError(f"a change failed: {wrong[0]}") from wrong[0]


def _write_and_read(cluster: Cluster, topic: str) -> None:
    client = {**cluster.client_settings(), **CLIENT}
    wrong: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            wrong.append(error)

    producer = Producer({**client, "acks": "all", "enable.idempotence": True, "message.timeout.ms": 60_000})
    for number in range(PASSING_RECORDS):
        producer.produce(topic, str(number).encode(), partition=number % PASSING_PARTITIONS, on_delivery=delivered)
    producer.flush(CHANGE_S_MAX)
    assert not wrong, f"{topic} does not take records: {wrong[0]}"
    consumer = Consumer({**client, "group.id": "passing", "auto.offset.reset": "error", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PASSING_PARTITIONS)])
    deadline_s, values = time.monotonic() + CHANGE_S_MAX, list[bytes]()
    try:
        while len(values) < PASSING_RECORDS:
            assert time.monotonic() < deadline_s, f"{topic} gave {len(values)} of {PASSING_RECORDS} records"
            values += [each.value() or b"" for each in consumer.consume(100, 0.5) if each.error() is None]
    finally:
        consumer.close()
    assert sorted(map(int, values)) == list(range(PASSING_RECORDS)), f"{topic} gave {sorted(map(int, values))}"


def _reassign(cluster: Cluster, topic: str, partition: int, wanted: list[int]) -> None:
    _until_done(lambda: asking.reassign(_controller(cluster), topic, partition, wanted))


def _controller(cluster: Cluster) -> str:
    controller = cluster.brokers.get(cluster.controller())
    if controller is None:
        raise ConnectionError("nobody controls the cluster")
    return controller.address


def _until_done(change: Callable[[], None]) -> None:
    deadline_s = time.monotonic() + CHANGE_S_MAX
    while True:
        try:
            change()
            return
        except (OSError, asking.Refused):
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.5)

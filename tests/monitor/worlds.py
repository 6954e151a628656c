"""What tests of the monitor share: a clock that is set, records with chosen times, and commits."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from moldau.client.cluster import Cluster
from moldau.monitor.judging import Rules
from moldau.monitor.rules import GroupVerdict, PartitionVerdict
from moldau.monitor.watching import Keeper, Wanted, Watch

COMMITTED_S_MAX = 30.0
NO_COORDINATOR_YET = (
    KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._WAIT_COORD,
)  # fmt: skip


@dataclass(slots=True)
class ShiftedClock:
    """The machine's clock, and as much later as a test says: brokers stamp commits by their own."""

    later_ms: int = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.later_ms

    def elapsed_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000 + self.later_ms


def watch_of(
    bootstrap: str,
    clock: ShiftedClock,
    *groups: str,
    rules: Rules | None = None,
    keeper: Keeper | None = None,
    read_commits: bool = True,
) -> Watch:
    """Of these groups only: a test's broker has others' groups, too."""
    import re

    return Watch(
        "local",
        lambda: Cluster(bootstrap, client_id="test", timeout_s=10.0),
        clock,
        rules or Rules(),
        interval_s=10.0,
        wanted=Wanted(allow=re.compile("|".join(f"^{each}$" for each in groups))),
        keeper=keeper,
        read_commits=read_commits,
    )


def produce(bootstrap: str, topic: str, times_ms: Mapping[int, list[int]], **settings: object) -> None:
    """Records by partition, each with its time."""
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for partition, times in times_ms.items():
        for number, time_ms in enumerate(times):
            producer.produce(topic, f"record {number}", partition=partition, timestamp=time_ms)
    assert producer.flush(20) == 0


def commit(bootstrap: str, group: str, topic: str, offsets: Mapping[int, int], **settings: object) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **settings})
    places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    deadline_s = time.monotonic() + COMMITTED_S_MAX
    try:
        while True:
            try:
                consumer.commit(offsets=places, asynchronous=False)
                return
            except KafkaException as wrong:  # the first group of a cluster waits for its coordinator
                if wrong.args[0].code() not in NO_COORDINATOR_YET or time.monotonic() > deadline_s:
                    raise
    finally:
        consumer.close()


def verdict(watch: Watch, group: str) -> GroupVerdict:
    assert watch.state is not None, watch.failure
    return watch.state.verdicts[group]


def looked(watch: Watch, group: str) -> GroupVerdict:
    assert watch.look(), watch.failure
    return verdict(watch, group)


def partition(found: GroupVerdict, number: int) -> PartitionVerdict:
    return next(each for each in found.partitions if each.partition == number)

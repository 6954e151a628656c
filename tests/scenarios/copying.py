"""Apache Kafka's TransactionsTest: its transactional copiers copy exactly once while they or brokers are bounced."""

from __future__ import annotations

import time
from collections import Counter
from itertools import cycle
from typing import Any

from confluent_kafka import Producer

from tests.scenarios.clients import JAVA, RDKAFKA, JavaTool, Member
from tests.scenarios.judging import Wrong
from tests.scenarios.trial import Trial

INPUT, OUTPUT = "input-topic", "output-topic"
MESSAGES = 100_000
TRANSACTION_SIZE = 750
TRANSACTION_TIMEOUT_MS = 40_000
PROGRESS = 0.2
CLIENT_BOUNCES = 3
COPY_S_MAX = 900.0
BROKERS, COPIERS = "brokers", "copiers"


class Copier:
    """Of one partition; bounced, it goes on where its last transaction ended."""

    def __init__(self, trial: Trial, partition: int) -> None:
        self._trial, self._partition = trial, partition
        self.transactions = 0
        self.is_done = False
        self._start()

    def _start(self) -> None:
        self._progress = 0.0
        self._processed = 0
        self.tool = JavaTool(
            self._trial.directory, f"copier-{self._partition}", "org.apache.kafka.tools.TransactionalMessageCopier",
            "--broker-list", self._trial.bootstrap, "--transactional-id", f"copier-{self._partition}",
            "--consumer-group", "copiers", "--input-topic", INPUT, "--input-partition", str(self._partition),
            "--output-topic", OUTPUT, "--transaction-size", str(TRANSACTION_SIZE),
            "--transaction-timeout", str(TRANSACTION_TIMEOUT_MS), "--enable-random-aborts", "--use-group-metadata",
        )  # fmt: skip
        self.tool.listen(self._hear)

    def _hear(self, event: dict[str, Any]) -> None:
        consumed, remaining = int(event["consumed"]), int(event["remaining"])
        self.transactions += consumed > self._processed
        self._processed = consumed
        self._progress = consumed / (consumed + remaining) if consumed + remaining else 1.0
        if event["stage"] == "ShutdownComplete" and remaining == 0:
            self.is_done = True

    def check(self) -> None:
        code = self.tool.process.poll()
        if code is not None and not self.is_done:
            time.sleep(1.0)  # its last line may be on its way
            if not self.is_done:
                raise Wrong(f"copier {self._partition} ended with {code}: {self.tool.tail()}")

    def bounce(self, *, clean: bool) -> bool:
        """Once it has made progress; gives whether it was not done before."""
        self._trial.until(self._has_progressed, f"copier {self._partition} makes no progress")
        if self.is_done:
            return False
        self.tool.end(kill=not clean)
        if self.is_done:
            return False
        self._start()
        return True

    def _has_progressed(self) -> bool:
        self.check()
        return self.is_done or self._progress >= PROGRESS

    def stop(self) -> None:
        self.tool.end(kill=True)


def copy(trial: Trial, *, target: str, clean: bool, partitions: int = 2, messages: int = MESSAGES) -> None:
    trial.create_topic(INPUT, partitions=partitions)
    trial.create_topic(OUTPUT, partitions=partitions)
    _seed(trial, partitions, messages)
    copiers = [Copier(trial, partition) for partition in range(partitions)]
    trial.clients += copiers  # type: ignore[arg-type]
    (beside,) = trial.join(JAVA, OUTPUT, group="beside", isolation="read_committed")
    bounces = _bounce_copiers(copiers, clean=clean) if target == COPIERS else _bounce_brokers(trial, copiers, clean)
    trial.until(lambda: _all_done(copiers), "the copiers are not done", timeout_s=COPY_S_MAX)
    trial.outcome.figures |= {
        "messages": str(messages),
        "transactions": str(sum(copier.transactions for copier in copiers)),
        "bounces": str(bounces),
    }
    (after,) = trial.join(RDKAFKA, OUTPUT, group="after", isolation="read_committed")
    _await_count(trial, beside, messages)
    _await_count(trial, after, messages)
    for name, reader in (("the reader beside", beside), ("the reader after", after)):
        _judge(trial, name, reader, messages, partitions)
    trial.compare_replicas()


def _seed(trial: Trial, partitions: int, messages: int) -> None:
    producer = Producer(
        {"bootstrap.servers": trial.bootstrap, "enable.idempotence": True, "linger.ms": 50, "log_level": 0}
    )
    wrong: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            wrong.append(error)

    for number in range(messages):
        producer.produce(INPUT, str(number), partition=number % partitions, on_delivery=delivered)
        if number % 1_000 == 0:
            producer.poll(0)
    if producer.flush(300) or wrong:
        raise Wrong(f"the messages could not be sent: {wrong[:3]}")


def _all_done(copiers: list[Copier]) -> bool:
    for copier in copiers:
        copier.check()
    return all(copier.is_done for copier in copiers)


def _bounce_brokers(trial: Trial, copiers: list[Copier], clean: bool) -> int:
    """Each of them once, and on until the copiers are done."""
    for bounced, broker in enumerate(cycle(trial.cluster.brokers.values())):
        if bounced >= len(trial.cluster.brokers) and _all_done(copiers):
            return bounced
        trial.restart(broker, clean=clean)
        trial.await_in_sync()
    raise AssertionError("a cycle has no end")


def _bounce_copiers(copiers: list[Copier], *, clean: bool) -> int:
    return sum(copier.bounce(clean=clean) for _ in range(CLIENT_BOUNCES) for copier in copiers)


def _await_count(trial: Trial, reader: Member, messages: int) -> None:
    trial.until(
        lambda: len(reader.records) >= messages, lambda: f"{len(reader.records)} of {messages} copies are read"
    )  # fmt: skip


def _judge(trial: Trial, name: str, reader: Member, messages: int, partitions: int) -> None:
    read = Counter(int(record.value) for record in reader.records)
    trial.outcome.forbid([each for each in range(messages) if each not in read], f"messages were lost for {name}")
    trial.outcome.forbid([each for each, count in read.items() if count > 1], f"messages were doubled for {name}")
    for partition in range(partitions):
        numbers = [int(record.value) for record in reader.records if record.partition == partition]
        late = [number for number, before in zip(numbers[1:], numbers, strict=False) if number < before]
        trial.outcome.forbid(late, f"messages came out of order for {name}")

"""Producers and consumers of scenarios: librdkafka's in threads here, Java's as Apache Kafka's own verifiable tools.

Both kinds keep what was acknowledged, refused, read and assigned, so that a scenario judges them alike. They have
their libraries' default retries.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests import apache_kafka

RDKAFKA, JAVA = "librdkafka", "java"
CLIENTS = (RDKAFKA, JAVA)
CLASSIC, CONSUMER = "classic", "consumer"
STOP_S_MAX = 150.0  # a producer gives a record up after 120 s
SESSION_MS = 30_000  # as in Apache Kafka's own test: longer than a broker's restart
POLL_S = 0.2
BATCH_MAX = 1_000
_EVERY_S = 0.01
SMALL_JVM = ("-Xmx192M", *apache_kafka.SHORT_LIVED_JVM[1:])


class Record(NamedTuple):
    value: str
    partition: int
    offset: int


class Progress:
    """What a producer was told, and the longest time without an acknowledgement."""

    def __init__(self) -> None:
        self.acknowledged: list[Record] = []
        self.failures: list[str] = []
        self.longest_wait_s = 0.0
        self._last_s: float | None = None

    def note(self, record: Record) -> None:
        now_s = time.monotonic()
        if self._last_s is not None:
            self.longest_wait_s = max(self.longest_wait_s, now_s - self._last_s)
        self._last_s = now_s
        self.acknowledged.append(record)


class Sender(Protocol):
    progress: Progress

    def stop(self) -> None:
        """Send nothing more, and wait for what is under way."""


class Member(Protocol):
    """A consumer of one group; its lists grow while it runs."""

    records: list[Record]
    assigned: set[int]
    assignments: int
    """How often it was told of an assignment."""
    complaints: list[str]

    def stop(self) -> None: ...


class JavaTool:
    """One of Apache Kafka's tools that tells what it does in lines of JSON."""

    def __init__(self, directory: Path, name: str, class_name: str, *arguments: str) -> None:
        self.name = name
        self.output = directory / f"{name}.txt"
        with self.output.open("ab") as errors:
            self.process = subprocess.Popen(
                apache_kafka.java_command(class_name, *arguments, jvm=SMALL_JVM),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            )  # fmt: skip

    def listen(self, hear: Callable[[dict[str, Any]], None]) -> None:
        self._thread = threading.Thread(target=self._listen, args=[hear], daemon=True)
        self._thread.start()

    def _listen(self, hear: Callable[[dict[str, Any]], None]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):  # what Java itself prints
                hear(json.loads(line))

    def end(self, *, kill: bool = False) -> int:
        """Gives its exit code; one that does not end in time is killed."""
        if self.process.poll() is None:
            if kill:
                self.process.kill()
            else:
                self.process.terminate()
        try:
            self.process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._thread.join(STOP_S_MAX)
        return self.process.wait()

    def tail(self) -> str:
        return self.output.read_text(errors="replace")[-1_500:]


class JavaSender:
    def __init__(self, directory: Path, bootstrap: str, topic: str, *, rate: int, idempotent: bool = True) -> None:
        self.progress = Progress()
        config = directory / f"sender-{topic}.properties"
        # The tool turns retries off; these are the library's defaults.
        config.write_text(f"retries=2147483647\nenable.idempotence={str(idempotent).lower()}\n")
        self._tool = JavaTool(
            directory, f"sender-{topic}", "org.apache.kafka.tools.VerifiableProducer",
            "--bootstrap-server", bootstrap, "--topic", topic, "--throughput", str(rate), "--acks", "-1",
            "--producer.config", str(config),
        )  # fmt: skip
        self._tool.listen(self._hear)

    def _hear(self, event: dict[str, Any]) -> None:
        if event.get("name") == "producer_send_success":
            self.progress.note(Record(event["value"], event["partition"], event["offset"]))
        elif event.get("name") == "producer_send_error":
            self.progress.failures.append(str(event.get("message")))

    def stop(self) -> None:
        self._tool.end()


class RdkafkaSender:
    def __init__(self, directory: Path, bootstrap: str, topic: str, *, rate: int, idempotent: bool = True) -> None:
        self.progress = Progress()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": idempotent, "log_level": 0}
        )
        self._topic, self._rate = topic, rate
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        begun_s, sent = time.monotonic(), 0
        while not self._stopping.is_set():
            due = int((time.monotonic() - begun_s) * self._rate)
            while sent < due:
                try:
                    self._producer.produce(self._topic, str(sent), on_delivery=self._delivered)
                except BufferError:
                    break
                sent += 1
            self._producer.poll(_EVERY_S)
        left = self._producer.flush(STOP_S_MAX)
        if left:
            self.progress.failures.append(f"{left} records are neither acknowledged nor refused")

    def _delivered(self, wrong: Any, message: Any) -> None:
        if wrong is not None:
            self.progress.failures.append(str(wrong))
        else:
            self.progress.note(Record(message.value().decode(), message.partition(), message.offset()))

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


class JavaMember:
    def __init__(
        self, directory: Path, bootstrap: str, topic: str, group: str, name: str, *, protocol: str = CLASSIC,
        isolation: str = "read_uncommitted",
    ) -> None:  # fmt: skip
        self.records: list[Record] = []
        self.assigned: set[int] = set()
        self.assignments = 0
        self.complaints: list[str] = []
        config = directory / f"{name}.properties"
        config.write_text(f"isolation.level={isolation}\n")
        session = ["--session-timeout", str(SESSION_MS)] if protocol == CLASSIC else []
        self._tool = JavaTool(
            directory, name, "org.apache.kafka.tools.VerifiableConsumer", "--bootstrap-server", bootstrap, "--topic",
            topic, "--group-id", group, "--group-protocol", protocol, "--verbose", "--consumer.config", str(config),
            *session,
        )  # fmt: skip
        self._tool.listen(self._hear)

    def _hear(self, event: dict[str, Any]) -> None:
        name = event.get("name")
        if name == "record_data":
            self.records.append(Record(event["value"], event["partition"], event["offset"]))
        elif name == "partitions_assigned":
            self.assigned |= {each["partition"] for each in event["partitions"]}
            self.assignments += 1
        elif name == "partitions_revoked":
            self.assigned -= {each["partition"] for each in event["partitions"]}
        elif name == "offsets_committed" and not event["success"]:
            self.complaints.append(f"a commit failed: {event.get('error')}")

    def stop(self) -> None:
        self._tool.end()


class RdkafkaMember:
    def __init__(
        self, directory: Path, bootstrap: str, topic: str, group: str, name: str, *, protocol: str = CLASSIC,
        isolation: str = "read_uncommitted",
    ) -> None:  # fmt: skip
        self.records: list[Record] = []
        self.assigned: set[int] = set()
        self.assignments = 0
        self.complaints: list[str] = []
        session = {"session.timeout.ms": SESSION_MS} if protocol == CLASSIC else {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap, "group.id": group, "client.id": name, "group.protocol": protocol,
                "auto.offset.reset": "earliest", "enable.auto.commit": False, "isolation.level": isolation,
                "check.crcs": True, "log_level": 0, **session,
            }
        )  # fmt: skip
        self._consumer.subscribe([topic], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._revoke)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned |= {each.partition for each in partitions}
        self.assignments += 1

    def _revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned -= {each.partition for each in partitions}

    def _run(self) -> None:
        while not self._stopping.is_set():
            read = [each for each in self._consumer.consume(BATCH_MAX, POLL_S) if each.error() is None]
            self.records += [Record(each.value().decode(), each.partition(), each.offset()) for each in read]
            if read:
                self._commit()
        self._consumer.close()

    def _commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as wrong:
            self.complaints.append(f"a commit failed: {wrong}")

    def stop(self) -> None:
        self._stopping.set()
        # librdkafka 2.16 may stand still in a commit for good, in a deadlock of its own.
        self._thread.join(STOP_S_MAX)


SENDERS: dict[str, type[JavaSender] | type[RdkafkaSender]] = {JAVA: JavaSender, RDKAFKA: RdkafkaSender}
MEMBERS: dict[str, type[JavaMember] | type[RdkafkaMember]] = {JAVA: JavaMember, RDKAFKA: RdkafkaMember}

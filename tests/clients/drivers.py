"""Clients of several languages behind one small protocol, so that a test is written once for all of them.

A driver is a process that gets a broker's address as its argument, reads a JSON object per line and answers each with
`{"ok": {...}}` or `{"error": {"code": Kafka's number or null, "name": ..., "message": ...}}`. Bytes travel as base64.
The operations, with what `ok` holds:

    produce            topic, acks, codec, idempotent, records      offsets, -1 where the client never learns it
    consume            topic, partition, offset, count              records, read by assigned partition
    list_offset        topic, partition, at                         offset; `at` is ms, earliest, latest, max_timestamp
    create_topic       topic, partitions, replication_factor, configs
    delete_topic       topic
    create_partitions  topic, total
    describe_topic     topic                                        partitions: [{id, leader}]
    list_topics                                                     topics
    describe_configs   resource, name                               configs: {name: value}
    alter_configs      resource, name, set
    delete_records     topic, partition, before                     low_watermark
    describe_cluster                                                brokers: [{id, host, port}], controller, cluster_id
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from tests.clients import toolchains

ROOT = Path(__file__).parents[2]
REPLY_S_MAX = 180.0  # a JVM takes a second to start, and far more on a busy machine
STOP_S_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Record:
    """What a producer says and a consumer hears; the offset is the broker's, and unknown before."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None
    partition: int = 0
    offset: int | None = None


class ClientError(Exception):
    """An operation failed in the client, with Kafka's number for the failure where the client knows it."""

    def __init__(self, code: int | None, name: str, message: str) -> None:
        super().__init__(f"{name} ({code}): {message}")
        self.code = code
        self.name = name


def is_readable(pipe: IO[bytes], timeout_s: float) -> bool:
    """Not by select(), which knows no descriptor above 1,023: a run of all tests has more of them now and then."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


class LineProcess:
    """A process that answers one line of JSON with one line of JSON.

    It starts with the first question. One that fails to answer is ended, lest its late answer be taken for the next.
    """

    def __init__(self, command: Callable[[], list[str]]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._received = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command(),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
            )
        try:
            answer: dict[str, Any] = json.loads(self._answer(self._process, json.dumps(request).encode() + b"\n"))
            return answer
        except BaseException:
            self._end(stop_s_max=0.0)
            raise

    def _answer(self, process: subprocess.Popen[bytes], line: bytes) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        left = memoryview(line)
        while left:  # a raw pipe takes what fits
            left = left[process.stdin.write(left) :]
        deadline = time.monotonic() + REPLY_S_MAX
        chunks = [self._received]
        while b"\n" not in chunks[-1]:
            readable = is_readable(process.stdout, max(0.0, deadline - time.monotonic()))
            chunk = os.read(process.stdout.fileno(), 1 << 20) if readable else b""
            if not chunk:
                reason = "ended" if readable else f"gave no answer in {REPLY_S_MAX:.0f} s"
                raise RuntimeError(f"{process.args!r} {reason} on {line[:200]!r}: {self._error_text()}")
            chunks.append(chunk)
        answer, _, self._received = b"".join(chunks).partition(b"\n")
        return answer

    def _error_text(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-4000:].decode(errors="replace")

    def close(self) -> None:
        self._end(stop_s_max=STOP_S_MAX)
        self._errors.close()

    def _end(self, *, stop_s_max: float) -> None:
        process, self._process, self._received = self._process, None, b""
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(stop_s_max)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Driver:
    """One client, with its operations as methods."""

    def __init__(self, process: LineProcess) -> None:
        self.process = process

    def perform(self, op: str, **arguments: object) -> dict[str, Any]:
        reply = self.process.ask({"op": op, **arguments})
        if "error" in reply:
            raise ClientError(**reply["error"])
        done: dict[str, Any] = reply["ok"]
        return done

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        acks: str = "all",
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        done = self.perform(
            "produce",
            topic=topic,
            acks=acks,
            codec=codec,
            idempotent=idempotent,
            records=[
                {
                    "partition": record.partition,
                    "key": to_text(record.key),
                    "value": to_text(record.value),
                    "headers": [[name, to_text(value)] for name, value in record.headers],
                    "timestamp": record.timestamp,
                }
                for record in records
            ],
        )
        return list(done["offsets"])

    def consume(self, topic: str, *, count: int, partition: int = 0, offset: int = 0) -> list[Record]:
        done = self.perform("consume", topic=topic, partition=partition, offset=offset, count=count)
        return [
            Record(
                value=to_bytes(found["value"]),
                key=to_bytes(found["key"]),
                headers=tuple((name, to_bytes(value)) for name, value in found["headers"]),
                timestamp=found["timestamp"],
                partition=partition,
                offset=found["offset"],
            )
            for found in done["records"]
        ]

    def list_offset(self, topic: str, at: int | str, *, partition: int = 0) -> int:
        return int(self.perform("list_offset", topic=topic, partition=partition, at=at)["offset"])

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: dict[str, str] | None = None,
    ) -> None:
        self.perform(
            "create_topic",
            topic=topic,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=configs or {},
        )

    def delete_topic(self, topic: str) -> None:
        self.perform("delete_topic", topic=topic)

    def create_partitions(self, topic: str, *, total: int) -> None:
        self.perform("create_partitions", topic=topic, total=total)

    def describe_topic(self, topic: str) -> list[dict[str, int]]:
        return list(self.perform("describe_topic", topic=topic)["partitions"])

    def list_topics(self) -> list[str]:
        return list(self.perform("list_topics")["topics"])

    def describe_configs(self, resource: str, name: str) -> dict[str, str]:
        return dict(self.perform("describe_configs", resource=resource, name=name)["configs"])

    def alter_configs(self, resource: str, name: str, *, set: dict[str, str]) -> None:
        self.perform("alter_configs", resource=resource, name=name, set=set)

    def delete_records(self, topic: str, *, before: int, partition: int = 0) -> int:
        return int(self.perform("delete_records", topic=topic, partition=partition, before=before)["low_watermark"])

    def describe_cluster(self) -> dict[str, Any]:
        return self.perform("describe_cluster")


@dataclass(frozen=True, slots=True)
class Client:
    """A client library: how to get its driver, and what the library itself cannot say or hear."""

    command: Callable[[], list[str]]
    cannot: frozenset[str] = field(default_factory=frozenset)


def python_driver(name: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.clients.python.{name}_driver"]


CLIENTS: dict[str, Client] = {
    "confluent": Client(python_driver("confluent")),
    "kafka-python": Client(
        python_driver("kafka_python"), frozenset({"write null headers", "hear errors of describe_configs"})
    ),
    "aiokafka": Client(python_driver("aiokafka"), frozenset({"max_timestamp"})),
    "kafkajs": Client(toolchains.javascript_driver, frozenset({"max_timestamp", "write null headers"})),
    "franz-go": Client(toolchains.go_driver),
    "java": Client(toolchains.java_driver),
    "java-3.9": Client(toolchains.spark_java_driver),
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Drivers:
    """The drivers of one broker, each started when a test first asks for it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._started: dict[str, Driver] = {}

    def __getitem__(self, name: str) -> Driver:
        if name not in self._started:
            command = CLIENTS[name].command
            self._started[name] = Driver(LineProcess(lambda: [*command(), self.bootstrap]))
        return self._started[name]

    def close(self) -> None:
        for driver in self._started.values():
            driver.process.close()


def to_text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def to_bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)

"""Brokers that meet in a service, each started for itself, as on machines of their own."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import moldau
from tests.cluster.asking import until
from tests.cluster.clients import consumer, producer, read


def chroot() -> str:
    return f"/tests/{uuid.uuid4().hex}"


def start_member(
    broker_id: int, folder: Path, connect: str, *, port: int = 0, service: str = "zookeeper", **settings: Any
) -> moldau.EmbeddedBroker:
    """`settings` are keys with underscores for dots."""
    keys = {name.replace("_", "."): value for name, value in settings.items()}
    overrides = {"node.id": broker_id, f"{service}.connect": connect, "offsets.topic.num.partitions": 3, **keys}
    return moldau.run(data_dir=folder / f"data-{broker_id}", overrides=overrides, port=port, timeout_s=60)


@contextmanager
def three_members(folder: Path, connects: Mapping[int, str], **settings: Any) -> Iterator[moldau.EmbeddedCluster]:
    """Broker ids, and the service that each of them connects with."""
    with ThreadPoolExecutor(len(connects)) as threads:
        starts = {each: threads.submit(start_member, each, folder, at, **settings) for each, at in connects.items()}
    with moldau.EmbeddedCluster(
        {each: start.result() for each, start in starts.items()}, data_dir=folder, scratch=folder / "scratch"
    ) as cluster:
        until(lambda: cluster.seen().broker_ids == set(connects))
        yield cluster


class Writing:
    """A producer that goes on all the time, in a thread, and knows what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: list[str] = []
        self._topic = topic
        self._is_over, self._is_done = threading.Event(), threading.Event()
        settings = {"enable.idempotence": True, "linger.ms": 5, "retry.backoff.ms": 50}
        settings["topic.metadata.refresh.interval.ms"] = 500  # brokers that came are found by it, every 5 min otherwise
        self._producer = producer(bootstrap, **settings)

    def run(self) -> None:
        number = 0
        while not self._is_over.wait(0.005):
            value = f"value-{number}"
            self._producer.produce(
                self._topic, value, on_delivery=lambda wrong, _, value=value: self._delivered(wrong, value)
            )
            self._producer.poll(0)
            number += 1
        assert self._producer.flush(60) == 0
        self._is_done.set()

    def is_done(self) -> bool:
        """After `stop`: all was acknowledged."""
        return self._is_done.is_set()

    def until_more(self, count: int = 50) -> None:
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) >= before + count)

    def stop(self) -> None:
        self._is_over.set()

    def _delivered(self, wrong: object, value: str) -> None:
        assert wrong is None
        self.acknowledged.append(value)


@contextmanager
def writing(bootstrap: str, topic: str) -> Iterator[Writing]:
    writes = Writing(bootstrap, topic)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(writes.run)
        try:
            writes.until_more()
            yield writes
        finally:
            writes.stop()
            running.result()


def values_of(cluster: moldau.EmbeddedCluster, topic: str, count: int) -> list[str]:
    """Of so many records, or of fewer if they do not come."""
    reader = consumer(cluster.bootstrap_servers, uuid.uuid4().hex)
    reader.subscribe([topic])
    found = [message.value().decode() for message in read(reader, count)]
    reader.close()
    return found

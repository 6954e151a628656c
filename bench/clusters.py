"""Clusters on this machine, Moldau's and Apache Kafka's, as the benchmarks see them: what runs, and what it costs."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import moldau
from bench.brokers import SERVER_JVM
from moldau.embedded.process import Address
from moldau.replication.channel import ChannelError
from moldau.wire.messages import MetadataRequest, MetadataResponse
from moldau.wire.messages.metadata import MetadataResponsePartition
from tests.apache_cluster import ApacheCluster
from tests.cluster.asking import ask_address

SETTLE_S = 300.0
LOOK_S = 0.005
METADATA_VERSION = 12
FIRST_ID = 1
# What both are given, beside where they listen and keep their data.
PROPERTIES = {"min.insync.replicas": "2", "default.replication.factor": "3", "group.initial.rebalance.delay.ms": "0"}


class Running(Protocol):
    """What `moldau.EmbeddedCluster` and `ApacheCluster` have in common."""

    @property
    def bootstrap_servers(self) -> str: ...

    def kill(self, broker_id: int, /) -> None: ...


@dataclass(slots=True)
class Side:
    """One of the two that are compared, while it runs."""

    name: str
    running: Running
    pids: Callable[[], list[int]]
    restart: Callable[[int], None]
    start_s: float
    figures: dict[str, list[float]] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return self.running.bootstrap_servers

    @property
    def broker_ids(self) -> list[int]:
        return [FIRST_ID + index for index in range(len(self.addresses))]

    @property
    def addresses(self) -> list[Address]:
        parts = [each.rpartition(":") for each in self.bootstrap.split(",")]
        return [Address(host, int(port)) for host, _, port in parts]

    def cpu_s(self) -> float:
        """User and system time of all brokers since they started."""
        ticks = 0
        for pid in self.pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory_mb(self, kind: str) -> float:
        """Of all brokers together; Pss counts what processes share once, Rss once for each."""
        rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self.pids()]
        found = [re.search(rf"^{kind}:\s+(\d+)", rollup, re.MULTILINE) for rollup in rollups]
        return sum(int(each[1]) for each in found if each is not None) / 1024

    def until(self, is_so: Callable[[MetadataResponse], bool]) -> None:
        """As every broker that runs sees it."""
        deadline_s = time.monotonic() + SETTLE_S
        for address in self.addresses:
            while (seen := seen_by(address)) is not None and not is_so(seen):
                assert time.monotonic() < deadline_s, f"{self.name}: it never came: {seen}"
                time.sleep(LOOK_S)

    def until_in_sync(self) -> None:
        """All brokers are there, and all replicas of all topics."""
        count = len(self.broker_ids)
        self.until(
            lambda seen: (
                len(seen.brokers) == count
                and all(
                    each.leader_id >= 0 and len(each.isr_nodes) == len(each.replica_nodes) for each in partitions(seen)
                )
            )
        )

    def leader_of(self, topic: str) -> int:
        """Of its first partition."""
        for address in self.addresses:
            seen = seen_by(address)
            if seen is not None:
                return next(each.leader_id for each in partitions(seen, topic) if each.partition_index == 0)
        raise AssertionError("no broker answers")


def seen_by(address: Address) -> MetadataResponse | None:
    """None where nobody listens, which is told without a channel: it would try again and again."""
    try:
        socket.create_connection((address.host, address.port), 1).close()
        seen: MetadataResponse = ask_address(address, MetadataRequest(topics=None), METADATA_VERSION)
    except (OSError, ChannelError):
        return None
    return seen


def partitions(seen: MetadataResponse, topic: str | None = None) -> list[MetadataResponsePartition]:
    return [row for found in seen.topics if topic in (None, found.name) for row in found.partitions]


@contextmanager
def ours(count: int = 3) -> Iterator[Side]:
    properties = {**PROPERTIES, "node.id": FIRST_ID} if count > 2 else {"node.id": FIRST_ID}
    begun = time.monotonic()
    with moldau.run(brokers=count, overrides=properties, timeout_s=SETTLE_S) as cluster:
        start_s = time.monotonic() - begun

        def pids() -> list[int]:
            return [broker.pid for broker in cluster.brokers.values() if broker.is_running]

        yield Side("ours", cluster, pids, partial(cluster.restart, timeout_s=SETTLE_S), start_s)


@contextmanager
def kafka() -> Iterator[Side]:
    """Formatting is no part of a start."""
    cluster = ApacheCluster(properties=PROPERTIES, jvm=SERVER_JVM)
    try:
        cluster.format()
        begun = time.monotonic()
        cluster.start()
        yield Side("kafka", cluster, lambda: cluster.pids, cluster.restart, time.monotonic() - begun)
    finally:
        cluster.close()

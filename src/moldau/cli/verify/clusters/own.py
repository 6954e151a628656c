"""Brokers of ours for the length of a run, in a temporary folder, on free ports."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from moldau.cli.failures import CommandFailed
from moldau.cli.verify.clusters.slow_writes import delay_file
from moldau.client.cluster import Node
from moldau.embedded.cluster import EmbeddedCluster, run_cluster
from moldau.embedded.process import BrokerFailed

FIRST_ID = 1
REPLICAS_MAX = 3
START_S_MAX = 120.0
LAG_MS = 3_000  # replica.lag.time.max.ms, Kafka's 30 s shortened: slow-disk and paused-broker wait for it
PROGRAM = "moldau.cli.verify.clusters.slow_writes"


class OwnCluster:
    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self.is_ours = True
        self.settings: Mapping[str, str] = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "client.id": "moldau-verify",
            "security.protocol": "plaintext",
        }
        self.nodes: Mapping[int, Node] = {
            number: Node(number, broker.host, broker.port) for number, broker in cluster.brokers.items()
        }

    def need(self, *actions: str) -> None:
        """All can be done."""

    def does_itself(self, _action: str) -> bool:
        return True

    def kill(self, broker: int) -> None:
        self._cluster.kill(broker)

    def start(self, broker: int) -> None:
        self._cluster.restart(broker, timeout_s=START_S_MAX)

    def restart(self, broker: int) -> None:
        self._cluster.stop(broker)
        self._cluster.restart(broker, timeout_s=START_S_MAX)

    def pause(self, broker: int) -> None:
        os.kill(self._cluster.brokers[broker].pid, signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        os.kill(self._cluster.brokers[broker].pid, signal.SIGCONT)

    def slow_disk(self, broker: int, delay_ms: int) -> None:
        delay_file(self._cluster.scratch, self._cluster.brokers[broker].pid).write_text(str(delay_ms))

    def heal_disk(self, broker: int) -> None:
        delay_file(self._cluster.scratch, self._cluster.brokers[broker].pid).unlink(missing_ok=True)


@contextmanager
def own_cluster(brokers: int, *, keep: Path | None) -> Iterator[OwnCluster]:
    """`keep` is the folder for its data, which stays; without it nothing stays."""
    copies = min(REPLICAS_MAX, brokers)
    overrides: dict[str, object] = {
        "node.id": FIRST_ID,
        "default.replication.factor": copies,
        "min.insync.replicas": min_insync(copies),
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": min_insync(copies),
        # Fewer than Kafka's 50: each takes a folder on each broker, and a run has a handful of groups.
        "offsets.topic.num.partitions": 6,
        "transaction.state.log.num.partitions": 6,
        "group.initial.rebalance.delay.ms": 0,
        "group.consumer.min.session.timeout.ms": 5_000,
        "replica.lag.time.max.ms": LAG_MS,
    }
    with ExitStack() as stack:
        try:
            cluster = run_cluster(brokers, overrides=overrides, data_dir=keep, timeout_s=START_S_MAX, program=PROGRAM)
        except BrokerFailed as wrong:
            raise CommandFailed(f"the cluster did not start: {wrong}") from None
        stack.callback(cluster.close)
        stack.callback(_let_go_on, cluster)
        yield OwnCluster(cluster)


def min_insync(copies: int) -> int:
    return 2 if copies > 2 else 1


def _let_go_on(cluster: EmbeddedCluster) -> None:
    """A process that is stopped takes no SIGTERM."""
    for broker in cluster.brokers.values():
        if broker.is_running:
            os.kill(broker.pid, signal.SIGCONT)

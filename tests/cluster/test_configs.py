"""Configurations of brokers that are changed while they run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import moldau
from moldau.core.errors import ErrorCode
from moldau.wire.messages import IncrementalAlterConfigsRequest
from moldau.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from tests.cluster.asking import ask, until
from tests.cluster.members import writing

ALTER, BROKER, SET, DELETE = 1, 4, 0, 1
ALL_BROKERS = ""


def alter(cluster: moldau.EmbeddedCluster, name: str, key: str, operation: int, value: str | None) -> None:
    resource = AlterConfigsResource(BROKER, name, [AlterableConfig(key, operation, value)])
    answer = ask(cluster.brokers[cluster.controller], IncrementalAlterConfigsRequest(resources=[resource]), ALTER)
    assert answer.responses[0].error_code == ErrorCode.NONE, answer.responses[0].error_message


@contextmanager
def changed(cluster: moldau.EmbeddedCluster, name: str, key: str, value: str) -> Iterator[None]:
    alter(cluster, name, key, SET, value)
    try:
        yield
    finally:
        alter(cluster, name, key, DELETE, None)


def test_a_broker_that_a_change_does_not_suit_follows_the_cluster_all_the_same(
    cluster: moldau.EmbeddedCluster,
) -> None:
    """Each of the two values is a good one by itself; together they are none for the broker that has both."""
    other = next(each for each in cluster.brokers if each != cluster.controller)
    topic = f"after-{uuid4()}"
    with (
        changed(cluster, str(other), "log.cleaner.dedupe.buffer.size", str(2 * 1024 * 1024)),
        changed(cluster, ALL_BROKERS, "log.cleaner.threads", "2"),
    ):
        until(lambda: "does not go with this broker's own" in cluster.brokers[other].output())
        cluster.create_topic(topic, partitions=3, replication_factor=3, config={"min.insync.replicas": 3})
        with writing(cluster.bootstrap_servers, topic):
            pass  # it has written to all replicas by now

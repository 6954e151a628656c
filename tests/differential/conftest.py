"""Two brokers for the length of the run: Apache Kafka as the judge, and the one that `--broker` names."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests import apache_kafka
from tests.apache_kafka import ApacheKafka
from tests.brokers import running_broker
from tests.differential.peer import Peer

# Both must give the same node id, for it is in many answers.
PROPERTIES = {"node.id": "1", "group.initial.rebalance.delay.ms": "0"}

Address = tuple[str, int]


@pytest.fixture(scope="session")
def judge() -> Iterator[Address]:
    if not apache_kafka.available():
        pytest.skip("Apache Kafka needs java, and Maven the first time")
    with ApacheKafka(properties=PROPERTIES) as apache:
        address = "127.0.0.1", apache.port
        until_producer_ids_are_there(address)
        yield address


@pytest.fixture(scope="session")
def candidate(broker_kind: str) -> Iterator[Address]:
    with running_broker(broker_kind, properties=PROPERTIES) as bootstrap:
        host, _, port = bootstrap.rpartition(":")
        until_producer_ids_are_there((host, int(port)))
        if broker_kind == "moldau":
            keep_minimum_in_sync_for_the_cluster((host, int(port)))
        yield host, int(port)


def until_producer_ids_are_there(address: Address) -> None:
    """Apache Kafka fetches its first block of ids when the first is wanted, and has none until then."""
    peer, deadline = Peer(address), time.monotonic() + 30
    while True:
        answer = peer.ask("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1_000)
        if isinstance(answer, dict) and answer["error_code"] == 0:
            break
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
    peer.close()


def keep_minimum_in_sync_for_the_cluster(address: Address) -> None:
    """Apache Kafka writes this setting when it formats a cluster, so that it has a source of its own in answers."""
    setting = {"name": "min.insync.replicas", "config_operation": 0, "value": "1"}
    resource = {"resource_type": 4, "resource_name": "", "configs": [setting]}
    peer = Peer(address)
    answer = peer.ask("IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)
    peer.close()
    assert isinstance(answer, dict), answer
    assert answer["responses"][0]["error_code"] == 0, answer

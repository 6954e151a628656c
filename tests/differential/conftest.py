"""Two brokers for the length of the run: Apache Kafka as the judge, and the one that `--broker` names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import apache_kafka
from tests.apache_kafka import ApacheKafka
from tests.brokers import running_broker

# Both must give the same node id, for it is in many answers.
PROPERTIES = {"node.id": "1"}

Address = tuple[str, int]


@pytest.fixture(scope="session")
def judge() -> Iterator[Address]:
    if not apache_kafka.available():
        pytest.skip("Apache Kafka needs java, and Maven the first time")
    with ApacheKafka(properties=PROPERTIES) as apache:
        yield "127.0.0.1", apache.port


@pytest.fixture(scope="session")
def candidate(broker_kind: str) -> Iterator[Address]:
    with running_broker(broker_kind, properties=PROPERTIES) as bootstrap:
        host, _, port = bootstrap.rpartition(":")
        yield host, int(port)

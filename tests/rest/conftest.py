"""One proxy before a Moldau and one before an Apache Kafka for all tests; both have to answer alike.

`--broker moldau*3` makes a cluster of three of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests import apache_kafka
from tests.brokers import count_of, running_broker
from tests.rest.proxies import Proxy, running_proxy

PROPERTIES = {"consumer.request.timeout.ms": 1_000, "streams.heartbeat.ms": 500, "streams.per.user.max": 5}
KAFKA = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}


@pytest.fixture(scope="session", params=["moldau", "apache"])
def kafka(request: pytest.FixtureRequest, broker_kind: str) -> Iterator[str]:
    if request.param == "apache" and not apache_kafka.available():
        pytest.skip("needs Java and Apache Kafka's jars")
    with running_broker(f"{request.param}*{count_of(broker_kind)}", properties=KAFKA) as bootstrap:
        yield bootstrap


@pytest.fixture(scope="session")
def proxy(kafka: str) -> Iterator[Proxy]:
    with running_proxy(kafka, properties=PROPERTIES) as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"t-{uuid4()}"

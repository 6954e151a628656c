"""A broker that lets members have short sessions, and a scenario of its own for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.brokers import running_broker
from tests.rebalance.scenario import Scenario

PROPERTIES = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "offsets.topic.num.partitions": "4",
}


@pytest.fixture(scope="package")
def quick_bootstrap(broker_kind: str) -> Iterator[str]:
    with running_broker(broker_kind, properties=PROPERTIES) as address:
        yield address


@pytest.fixture
def scenario(quick_bootstrap: str) -> Iterator[Scenario]:
    made = Scenario(quick_bootstrap)
    yield made
    made.close()

"""Drivers against the broker of this test run, and topics with names that no other test has."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.brokers import running_broker
from tests.clients.drivers import Drivers

NewTopic = Callable[..., str]


@pytest.fixture(scope="session")
def drivers(bootstrap: str) -> Iterator[Drivers]:
    started = Drivers(bootstrap)
    yield started
    started.close()


@pytest.fixture(scope="session")
def strict_drivers(broker_kind: str) -> Iterator[Drivers]:
    """Drivers against a broker that creates no topic unless it is told to."""
    with running_broker(broker_kind, properties={"auto.create.topics.enable": "false"}) as address:
        started = Drivers(address)
        yield started
        started.close()


@pytest.fixture(scope="session")
def new_topic(drivers: Drivers) -> NewTopic:
    """Creates a topic and gives its name; keyword arguments are those of `Driver.create_topic`."""

    def create(**settings: object) -> str:
        topic = unique_name()
        drivers["confluent"].create_topic(topic, **settings)  # type: ignore[arg-type]
        return topic

    return create


def unique_name() -> str:
    return f"clients-{uuid.uuid4().hex[:12]}"

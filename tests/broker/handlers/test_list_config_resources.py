from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import ListConfigResourcesRequest, ListConfigResourcesResponse
from tests.broker.handlers.wire import Wire

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def resources(wire: Wire, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(kinds))
    response = wire.ask(request, version, ListConfigResourcesResponse)
    assert response.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in response.config_resources]


def test_the_oldest_version_is_about_client_metrics_alone(wire: Wire) -> None:
    assert resources(wire, version=0) == []


def test_topics(wire: Wire, name: str) -> None:
    wire.create_topic(name)
    assert (TOPIC, name) in resources(wire, TOPIC)


def test_brokers_and_their_loggers(wire: Wire, broker_id: int) -> None:
    assert sorted(resources(wire, BROKER, BROKER_LOGGER)) == [(BROKER, str(broker_id)), (BROKER_LOGGER, str(broker_id))]


def test_no_kind_means_every_kind(wire: Wire, name: str, broker_id: int) -> None:
    wire.create_topic(name)
    found = resources(wire)
    assert {(TOPIC, name), (BROKER, str(broker_id)), (BROKER_LOGGER, str(broker_id))} <= set(found)


@pytest.mark.parametrize("kind", [0, 3, 99, -1])
def test_a_kind_that_does_not_exist(wire: Wire, kind: int) -> None:
    request = ListConfigResourcesRequest(resource_types=[TOPIC, kind])
    response = wire.ask(request, 1, ListConfigResourcesResponse)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])

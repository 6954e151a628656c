from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from moldau.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from tests.broker.handlers.config_resources import await_value
from tests.broker.handlers.wire import Wire

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def resources(wire: Wire, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(kinds))
    response = wire.ask(request, version, ListConfigResourcesResponse)
    assert response.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in response.config_resources]


def test_the_oldest_version_is_about_client_metrics_alone(wire: Wire, name: str) -> None:
    wire.create_topic(name)
    assert all(kind == CLIENT_METRICS for kind, _ in resources(wire, version=0))
    set_metrics(wire, name, "*")
    await_value(wire, CLIENT_METRICS, name, "metrics", "*")
    assert (CLIENT_METRICS, name) in resources(wire, version=0)
    assert (CLIENT_METRICS, name) in resources(wire, CLIENT_METRICS)
    set_metrics(wire, name, None)
    await_value(wire, CLIENT_METRICS, name, "metrics", "")
    assert (CLIENT_METRICS, name) not in resources(wire, CLIENT_METRICS)


def set_metrics(wire: Wire, name: str, text: str | None) -> None:
    config = AlterableConfig(name="metrics", config_operation=1 if text is None else 0, value=text)
    resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (response,) = wire.ask(request, 1, IncrementalAlterConfigsResponse).responses
    assert response.error_code == ErrorCode.NONE


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

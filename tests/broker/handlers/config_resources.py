"""Reading back what a test changed, and waiting for it: Apache Kafka says that a change is made before it is seen."""

from __future__ import annotations

from time import monotonic

from moldau.wire.messages import DescribeConfigsRequest, DescribeConfigsResponse
from moldau.wire.messages.describe_configs import DescribeConfigsResource
from tests.broker.handlers.wire import ANSWER_WAIT_S, Wire

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
ALL_BROKERS = ""
Synonyms = list[tuple[str, str | None, int]]


def synonyms(wire: Wire, kind: int, name: str, key: str) -> tuple[str | None, Synonyms]:
    """The value of a key, and where it is set, strongest first."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[key])
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = wire.ask(request, 4, DescribeConfigsResponse).results
    assert result.error_code == 0, result
    if not result.configs:
        return None, []
    (found,) = result.configs
    return found.value, [(each.name, each.value, each.source) for each in found.synonyms]


def value(wire: Wire, kind: int, name: str, key: str) -> str | None:
    return synonyms(wire, kind, name, key)[0]


def await_value(wire: Wire, kind: int, name: str, key: str, expected: str | None) -> None:
    deadline_s = monotonic() + ANSWER_WAIT_S
    while (found := value(wire, kind, name, key)) != expected:
        assert monotonic() < deadline_s, f"{key} is {found}, not {expected}"

from __future__ import annotations

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.messages import DescribeClusterRequest, DescribeClusterResponse
from tests.broker.handlers.wire import Wire

BROKERS, CONTROLLERS = 1, 2
NOT_ASKED = -(2**31)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_brokers_and_where_they_are(wire: Wire, bootstrap: str, version: int) -> None:
    found = wire.ask(DescribeClusterRequest(), version, DescribeClusterResponse)
    (broker,) = found.brokers
    assert f"{broker.host}:{broker.port}" == bootstrap
    assert (found.error_code, found.error_message, found.endpoint_type) == (ErrorCode.NONE, None, BROKERS)
    assert found.controller_id == broker.broker_id
    assert (broker.rack, broker.is_fenced) == (None, False)
    assert len(found.cluster_id) == 22, "a uuid in Kafka's notation"
    assert found.cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", [0, 2])
def test_without_an_authorizer_everything_is_allowed(wire: Wire, version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert wire.ask(request, version, DescribeClusterResponse).cluster_authorized_operations == 8096


def test_a_broker_does_not_speak_for_controllers(wire: Wire) -> None:
    found = wire.ask(DescribeClusterRequest(endpoint_type=CONTROLLERS), 2, DescribeClusterResponse)
    assert (found.error_code, found.cluster_id, found.controller_id, found.brokers) == (
        ErrorCode.MISMATCHED_ENDPOINT_TYPE, "", -1, []
    )  # fmt: skip


@pytest.mark.parametrize("endpoint_type", [-1, 0, 3])
def test_other_endpoints_are_unknown(wire: Wire, endpoint_type: int) -> None:
    found = wire.ask(DescribeClusterRequest(endpoint_type=endpoint_type), 1, DescribeClusterResponse)
    assert found.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    assert found.error_message == f"Unsupported endpoint type {endpoint_type}"

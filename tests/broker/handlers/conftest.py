"""A connection to the broker of this test run. The tests hold for Apache Kafka too: `--broker apache` shows it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from moldau.wire.messages import DescribeClusterRequest, DescribeClusterResponse
from tests.broker.handlers.wire import Wire


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Wire]:
    connection = Wire(bootstrap)
    yield connection
    connection.close()


@pytest.fixture
def name() -> str:
    """A topic name that no other test has."""
    return f"topic-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def broker_id(wire: Wire) -> int:
    return wire.ask(DescribeClusterRequest(), 0, DescribeClusterResponse).brokers[0].broker_id


@pytest.fixture
def moldau_only(broker_kind: str) -> None:
    """For what Apache Kafka has and we don't, or answers worse: docs/compatibility.md says why."""
    if broker_kind != "moldau":
        pytest.skip("a difference that docs/compatibility.md names")

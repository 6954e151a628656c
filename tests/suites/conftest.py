"""The tools of Apache Kafka against the broker of this test run; `--broker apache` holds Kafka to the same."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from tests import apache_kafka
from tests.clients.drivers import LineProcess
from tests.clients.toolchains import tool_host
from tests.faults.clients import create_topic
from tests.suites.tools import Tools

NewTopic = Callable[..., str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = pytest.mark.skipif(not apache_kafka.available(), reason="needs java, and Maven the first time")
    for item in items:
        if "/tests/suites/" in str(item.path):
            item.add_marker(here)


@pytest.fixture(scope="session")
def tool_process() -> Iterator[LineProcess]:
    with LineProcess(tool_host) as host:
        yield host


@pytest.fixture(scope="session")
def tools(bootstrap: str, tool_process: LineProcess) -> Tools:
    return Tools(tool_process, bootstrap)


@pytest.fixture
def new_topic(bootstrap: str) -> NewTopic:
    def create(partitions: int = 1) -> str:
        name = f"topic-{uuid.uuid4().hex[:10]}"
        create_topic(bootstrap, name, partitions=partitions)
        return name

    return create


@pytest.fixture
def group_id() -> str:
    return f"group-{uuid.uuid4().hex[:10]}"

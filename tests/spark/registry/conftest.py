from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from tests.spark.registries import running_registry


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One registry for all of them, in the process that has the session."""
    for item in items:
        if "registry_url" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def registry_url(bootstrap: str) -> Iterator[str]:
    with running_registry(bootstrap) as url:
        yield url


@pytest.fixture(scope="session")
def registry(registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_url}) as client:
        yield client

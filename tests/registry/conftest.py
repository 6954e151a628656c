"""One registry for the tests of this package, and subjects of a test's own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.registry.running import RunningRegistry, running_registry


@pytest.fixture(scope="package")
def registry(bootstrap: str) -> Iterator[RunningRegistry]:
    name = uuid.uuid4().hex[:8]
    with running_registry(bootstrap, "--topic", f"_schemas-{name}") as found:
        yield found


@pytest.fixture
def subject() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"

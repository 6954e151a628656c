"""The OpenAPI document against the server: requests made of it get no 500, and no status that it does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from tests.registry.running import WAIT_S_MAX, RunningRegistry, running_registry

EXAMPLES, EXAMPLES_LONG = 2, 200
OPERATIONS = 40
CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]
UNHURRIED = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
pytestmark = pytest.mark.xdist_group("registry")


@pytest.fixture(scope="module")
def played_with(bootstrap: str) -> Iterator[RunningRegistry]:
    """One whose modes and levels may become anything."""
    with running_registry(bootstrap, "--topic", "_schemas-openapi") as found:
        yield found


def ask_everything(registry: RunningRegistry, examples: int) -> int:
    """How many operations there are."""
    schema: Any = schemathesis.openapi.from_url(f"{registry.url}/openapi.json")
    count = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        count += 1

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=UNHURRIED,
        )
        @given(case=operation.as_strategy())
        def judge(case: Any) -> None:
            case.call_and_validate(checks=CHECKS, timeout=WAIT_S_MAX)

        judge()
    return count


def test_a_few_requests_to_every_operation(played_with: RunningRegistry) -> None:
    assert ask_everything(played_with, EXAMPLES) == OPERATIONS


@pytest.mark.long
@pytest.mark.timeout(3_000)
def test_many_requests_to_every_operation(played_with: RunningRegistry) -> None:
    assert ask_everything(played_with, EXAMPLES_LONG) == OPERATIONS

"""A broker for every test that asks for one; `--broker` says whose."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.brokers import running_broker


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker",
        default="moldau",
        help="which broker the tests over the wire talk to: moldau, apache, or the HOST:PORT of one that runs already",
    )


@pytest.fixture(scope="session")
def broker_kind(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--broker"))


@pytest.fixture(scope="session")
def bootstrap(broker_kind: str) -> Iterator[str]:
    """A broker with its default configuration, one per test run."""
    with running_broker(broker_kind) as address:
        yield address

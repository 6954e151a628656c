"""Fixtures that every project with Moldau installed has: a real broker in a test, in a fraction of a second.

Everything is imported inside the fixtures: pytest loads this module in every project, also where nobody uses them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from moldau.embedded import EmbeddedBroker, EmbeddedCluster
    from moldau.embedded.services import Service

    Brokers = list[EmbeddedBroker | EmbeddedCluster]

REPORTED_LINES_MAX = 100  # the last lines of a broker's log in the report of a failed test
REPORTED_CHARACTERS_MAX = 20_000
STARTED_BY_TEST = pytest.StashKey["Brokers"]()


@pytest.hookimpl(hookwrapper=True)  # the older kind of wrapper, which pytest 7 has too
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """A failed test's report shows the end of the log of every broker that the test's fixtures hold."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for broker in _brokers_of(item):
            report.sections.append((f"Moldau broker {broker!r}", _last_lines(broker.output())))


def _brokers_of(item: pytest.Item) -> Brokers:
    embedded = sys.modules.get("moldau.embedded")
    if embedded is None:
        return []
    held = getattr(item, "funcargs", {}).values()
    brokers = [value for value in held if isinstance(value, embedded.EmbeddedBroker | embedded.EmbeddedCluster)]
    started = item.stash.get(STARTED_BY_TEST, [])
    return list(
        {id(broker): broker for broker in [*brokers, *started]}.values()
    )  # a fixture may hand on what moldau_run started


def _last_lines(output: str) -> str:
    lines = output.splitlines()
    shown = "\n".join(lines[-REPORTED_LINES_MAX:])[-REPORTED_CHARACTERS_MAX:]
    return shown if shown == "\n".join(lines) else f"[the last of {len(lines)} lines]\n{shown}"


@pytest.fixture(scope="session")
def moldau_options() -> dict[str, Any]:
    """The arguments of `moldau.run` for `moldau_broker`; a project overrides this in its conftest.py."""
    return {}


@pytest.fixture(scope="session")
def moldau_broker(moldau_options: dict[str, Any]) -> Iterator[EmbeddedBroker]:
    """One broker for the whole run of tests (with pytest-xdist: one for each worker)."""
    from moldau.embedded import run

    with run(**moldau_options) as broker:
        yield broker


@pytest.fixture(scope="session")
def moldau_secure_broker(moldau_options: dict[str, Any]) -> Iterator[EmbeddedBroker]:
    """One broker with TLS, logins and an authorizer for the whole run; its `clients` are the admin's settings."""
    from moldau.embedded import run

    with run(**{**moldau_options, "secure": True}) as broker:
        yield broker


@pytest.fixture(scope="session")
def moldau_registry(moldau_broker: EmbeddedBroker) -> Service:
    """A schema registry beside `moldau_broker` for the whole run: `SchemaRegistryClient(moldau_registry.settings)`."""
    return _beside(moldau_broker, "registry")


@pytest.fixture(scope="session")
def moldau_rest(request: pytest.FixtureRequest, moldau_broker: EmbeddedBroker) -> Service:
    """A REST proxy beside `moldau_broker` and `moldau_registry` for the whole run; it answers at its `url`."""
    request.getfixturevalue("moldau_registry")
    return _beside(moldau_broker, "rest")


def _beside(broker: EmbeddedBroker, name: str) -> Service:
    from moldau.embedded.running import SERVICE_START_S_MAX, check_services

    check_services()
    if name not in broker.services:
        broker.services.start(name, broker.clients, host=broker.host, timeout_s=SERVICE_START_S_MAX)
    return broker.services[name]


@pytest.fixture(scope="session")
def moldau_bootstrap_servers(moldau_broker: EmbeddedBroker) -> str:
    return moldau_broker.bootstrap_servers


@pytest.fixture
def moldau_topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test has, so that tests can share a broker."""
    import re
    from uuid import uuid4

    test = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:80]
    return f"{test}-{uuid4().hex[:8]}"


@pytest.fixture
def moldau_run(request: pytest.FixtureRequest) -> Iterator[Callable[..., EmbeddedBroker]]:
    """`moldau.run` for one test: what it starts ends with the test."""
    from contextlib import ExitStack

    from moldau.embedded import run

    started = request.node.stash.setdefault(STARTED_BY_TEST, [])
    with ExitStack() as brokers:

        def start(**options: Any) -> EmbeddedBroker:
            broker: EmbeddedBroker = brokers.enter_context(run(**options))
            started.append(broker)
            return broker

        yield start


@pytest.fixture
def moldau_cluster(moldau_options: dict[str, Any]) -> Iterator[EmbeddedCluster]:
    """Three brokers for one test, which may kill and restart them."""
    from moldau.embedded import run

    with run(**{"brokers": 3, **moldau_options}) as cluster:
        yield cluster

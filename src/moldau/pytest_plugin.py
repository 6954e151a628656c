"""Fixtures that every project with Moldau installed has: a real broker in a test, in a fraction of a second.

Everything is imported inside the fixtures: pytest loads this module in every project, also where nobody uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from moldau.embedded import EmbeddedBroker


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
def moldau_run() -> Iterator[Callable[..., EmbeddedBroker]]:
    """`moldau.run` for one test: what it starts ends with the test."""
    from contextlib import ExitStack

    from moldau.embedded import run

    with ExitStack() as brokers:
        yield lambda **options: brokers.enter_context(run(**options))

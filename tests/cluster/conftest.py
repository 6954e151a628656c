"""Three brokers that share their metadata, for tests that leave all of them running."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import moldau


@pytest.fixture(scope="session")
def cluster() -> Iterator[moldau.EmbeddedCluster]:
    with moldau.run(brokers=3, overrides={"offsets.topic.num.partitions": 6}) as running:
        yield running

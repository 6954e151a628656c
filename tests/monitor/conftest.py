"""Topics of a test's own, and names for groups."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka.admin import AdminClient, NewTopic


@pytest.fixture
def topic(bootstrap: str) -> str:
    """With two partitions."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(20)
    return name


@pytest.fixture
def group() -> str:
    return f"billing-{uuid.uuid4().hex[:8]}"

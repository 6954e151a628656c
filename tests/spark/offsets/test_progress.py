"""Which query a task works for, by what Spark tells its tasks."""

from __future__ import annotations

import pytest

from moldau.spark.offsets.progress import QueryIdentity, identity_of


@pytest.mark.parametrize(
    ("query_id", "description", "identity"),
    [
        ("1-2", "orders\n<br/>id = 1-2<br/>runId = 3<br/>batch = 0", QueryIdentity("1-2", "orders")),
        ("1-2", "\nid = 1-2<br/>runId = 3<br/>batch = init", QueryIdentity("1-2", None)),
        ("1-2", None, QueryIdentity("1-2", None)),
        (None, "orders", None),
    ],
)
def test_identity(query_id: str | None, description: str | None, identity: QueryIdentity | None) -> None:
    assert identity_of(query_id, description) == identity


def test_a_query_without_a_name_is_called_by_its_id() -> None:
    assert QueryIdentity("1-2", None).label == "1-2"
    assert QueryIdentity("1-2", "orders").label == "orders"

from __future__ import annotations

import pytest

from moldau.coordinator.placement import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("g1", 3242),
        ("simple", -902286926),
        ("polygenelubricants", -(2**31)),
        ("grün", 3185949),
        ("😀", 1772899),
    ],
)
def test_the_hash_is_that_of_java(text: str, code: int) -> None:
    assert java_hash(text) == code


@pytest.mark.parametrize(("group_id", "partition"), [("g1", 42), ("simple", 26), ("polygenelubricants", 0), ("", 0)])
def test_groups_are_where_apache_kafka_puts_them(group_id: str, partition: int) -> None:
    assert partition_for(group_id, 50) == partition
